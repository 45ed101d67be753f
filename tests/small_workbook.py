"""Write small reviewer's workbooks, and patch what openpyxl cannot write into their zip."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl

HOPS = ("Question ID", "Hop", "Sub-question", "Judgment", "Note")
VOTES = ("Question ID", "Hop", "Document ID", "Excerpt", "Vote", "Comment")
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
XLSM = "application/vnd.ms-excel.sheet.macroEnabled.main+xml"


def write(path: Path, hops: list[tuple] = (), votes: list[tuple] = (), edit: Callable | None = None) -> Path:
    """A workbook with the sheets Hops and Votes, a header row each; `edit(book)` changes it before it is saved.

    A string stays text, also one that begins with `=`: write a formula in `edit`.
    """
    book = openpyxl.Workbook()
    book.active.title = "Hops"
    for sheet, header, rows in ((book["Hops"], HOPS, hops), (book.create_sheet("Votes"), VOTES, votes)):
        for number, row in enumerate([header, *rows], 1):
            for column, value in enumerate(row, 1):
                if value is not None:
                    cell = sheet.cell(number, column, value)
                    if isinstance(value, str):
                        cell.data_type = "s"
    if edit:
        edit(book)
    book.save(path)
    return path


def patch(path: Path, part: str, change: Callable[[str], str] | tuple[str, str]) -> Path:
    """Change the text of one part (a pattern and what replaces its first match, or a function), or add the part where it is missing."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    old = parts.get(part, b"").decode()
    new = change(old) if callable(change) else re.sub(change[0], lambda _: change[1], old, count=1, flags=re.DOTALL)
    assert new != old, f"{part} is what it was"
    parts[part] = new.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def macro_type(path: Path) -> Path:
    """Give a workbook the content type that .xlsm has and openpyxl does not write."""
    return patch(path, "[Content_Types].xml", (r"application/vnd\.openxmlformats-officedocument\.spreadsheetml\.sheet\.main\+xml", XLSM))


def sheet_part(name: str) -> str:
    return {"Hops": "xl/worksheets/sheet1.xml", "Votes": "xl/worksheets/sheet2.xml"}[name]


def share_strings(path: Path) -> Path:
    """Move the texts of the cells into the table of shared strings, where Excel keeps them and openpyxl does not."""
    texts = []

    def move(match: re.Match) -> str:
        texts.append(match[3])
        return f'<c r="{match[1]}"{match[2]} t="s"><v>{len(texts) - 1}</v></c>'

    inline = re.compile(r'<c r="(\w+)"((?: s="\d+")?) t="inlineStr"><is>(.*?)</is></c>', re.DOTALL)
    for name in ("Hops", "Votes"):
        patch(path, sheet_part(name), lambda xml: inline.sub(move, xml))
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    link = f'<Relationship Id="rIdS" Type="{kind}" Target="sharedStrings.xml"/>'
    patch(path, "xl/_rels/workbook.xml.rels", ("</Relationships>", f"{link}</Relationships>"))
    return patch(path, "xl/sharedStrings.xml", lambda _: f'<sst xmlns="{MAIN}">{"".join(f"<si>{text}</si>" for text in texts)}</sst>')
