"""A reviewer's workbook as people leave one: merged ids, a hidden row, a comment, a struck-through note, blank votes."""

import io
import re
import zipfile
from pathlib import Path
from typing import NamedTuple

from openpyxl import Workbook
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from lib import files

HOPS = ("Question ID", "Hop", "Sub-question", "Judgment", "Note")
VOTES = ("Question ID", "Hop", "Document ID", "Excerpt", "Vote", "Comment")
VOTE = ("Supports", "Partial support", "Does not support")
PLAIN = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
MACRO = "application/vnd.ms-excel.sheet.macroEnabled.main+xml"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip entry can have


class HopLine(NamedTuple):
    """A row of the sheet Hops."""

    qid: str
    hop: int
    text: str
    judgment: str | None
    note: str | None


class VoteLine(NamedTuple):
    """A row of the sheet Votes; a vote of None is a blank cell."""

    qid: str
    hop: int
    docid: str
    excerpt: str
    vote: str | None
    comment: str | None


def write(path: Path, hops: list[HopLine], votes: list[VoteLine]) -> None:
    """Write the workbook, the same bytes for the same rows, as a macro-enabled one (.xlsm).

    Hops and Votes are its second and third sheet. On Hops a question id stands in one cell merged down the question's
    rows. The last row of Votes that has a vote is hidden, the first vote has a comment, and the first note of a hop that
    is judged Yes is struck through.
    """
    book = Workbook()
    about = book.active
    about.title = "About"
    about["A1"] = "One row a hop on the sheet Hops, one row a candidate on the sheet Votes. Leave a vote blank where you did not read."
    _hops(book.create_sheet("Hops"), hops)
    _votes(book.create_sheet("Votes"), votes)
    plain = io.BytesIO()
    book.save(plain)
    with files.whole(path) as temporary:
        temporary.write_bytes(macro_enabled(plain.getvalue()))


def macro_enabled(workbook: bytes) -> bytes:
    """The workbook with the content type that .xlsm asks for, and without the times at which it was written."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename == "[Content_Types].xml":
                if (times := data.count(PLAIN.encode())) != 1:
                    raise ValueError(f"[Content_Types].xml names {PLAIN} {times} times; give a workbook that openpyxl wrote")
                data = data.replace(PLAIN.encode(), MACRO.encode())
            elif entry.filename == "docProps/core.xml":
                data = re.sub(rb"<dcterms:(created|modified)\b[^>]*>[^<]*</dcterms:\1>", b"", data)
            stamped = zipfile.ZipInfo(entry.filename, _EPOCH)
            stamped.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(stamped, data)
    return made.getvalue()


def _sheet(sheet: Worksheet, header: tuple[str, ...], widths: tuple[int, ...], rows: list) -> None:
    sheet.append(header)
    for cell, width in zip(sheet[1], widths, strict=True):
        cell.font = Font(bold=True)
        sheet.column_dimensions[cell.column_letter].width = width
    sheet.freeze_panes = "A2"
    for row in rows:
        sheet.append(tuple(row))
        for cell in sheet[sheet.max_row]:
            if header[cell.column - 1].endswith("ID"):
                cell.number_format = "@"
            elif isinstance(cell.value, str):
                cell.alignment = Alignment(wrap_text=True, vertical="top")


def _choice(sheet: Worksheet, words: tuple[str, ...], column: str) -> None:
    choice = DataValidation(type="list", formula1=f'"{",".join(words)}"', allow_blank=True)
    sheet.add_data_validation(choice)
    choice.add(f"{column}2:{column}{max(2, sheet.max_row)}")


def _hops(sheet: Worksheet, rows: list[HopLine]) -> None:
    _sheet(sheet, HOPS, (12, 6, 60, 10, 30), rows)
    _choice(sheet, ("Yes", "No"), "D")
    first = 2
    for number, row in enumerate(rows, 2):
        if number - 1 == len(rows) or rows[number - 1].qid != row.qid:
            if first < number:
                sheet.merge_cells(start_row=first, end_row=number, start_column=1, end_column=1)
            first = number + 1
    for number, row in enumerate(rows, 2):
        if row.judgment == "Yes" and row.note:
            sheet.cell(number, 5).font = Font(strike=True)
            break


def _votes(sheet: Worksheet, rows: list[VoteLine]) -> None:
    _sheet(sheet, VOTES, (12, 6, 20, 60, 18, 30), rows)
    _choice(sheet, VOTE, "E")
    sheet.auto_filter.ref = f"A1:F{max(2, sheet.max_row)}"
    voted = [number for number, row in enumerate(rows, 2) if row.vote]
    if voted:
        sheet.cell(voted[0], 5).comment = Comment("Read in full, twice.", "Reviewer")
        sheet.row_dimensions[voted[-1]].hidden = True
