"""A copy of a workbook in memory that holds what openpyxl is asked for: the named sheets without cells that are only formatted.

A sheet that was formatted to its last row has millions of such cells, and openpyxl makes an object of each. The copy has no macros,
links, names, pictures or other sheets, so none of them can be the reason that a workbook is not read.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from xml.sax.saxutils import quoteattr

from lib.qrels.sheets.ooxml import MAIN, RELATION, Container, chunks

_CHUNK = 4 << 20
_CELL = rb'<c r="[A-Z]{1,3}[0-9]{1,7}"(?: s="[0-9]+")?/>'
_EMPTY_ROW = re.compile(rb'<row r="[0-9]{1,7}"[^<>]*(?:/>|>(?:' + _CELL + rb")*</row>)")
_EMPTY_CELL = re.compile(_CELL)
_SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def filled(data: Iterable[bytes]) -> Iterator[bytes]:
    """The XML of a sheet, in chunks, without the cells and rows that hold nothing.

    Where cells or rows stand without an address, or the XML is unusual, it stays as it is; ValueError where it becomes so further down.
    """
    decided, rest = False, b""
    for chunk in data:
        xml = rest + chunk
        cut = xml.rfind(b"<row ")
        cut = cut if cut > 0 else xml.rfind(b">") + 1
        xml, rest = xml[:cut], xml[cut:]
        slim = _without_empty(xml)
        if not decided and _unusual(slim):
            yield xml + rest
            yield from data
            return
        decided = decided or b"<row" in xml
        yield _usual(slim)
    yield _usual(_without_empty(rest))


def _without_empty(xml: bytes) -> bytes:
    return _EMPTY_CELL.sub(b"", _EMPTY_ROW.sub(b"", xml))


def _unusual(xml: bytes) -> bool:
    # the place of a cell without an address is that of the one before plus one, also where that one is empty
    cells, rows = (sum(xml.count(b"<%b%b" % (name, end)) for end in (b" ", b">", b"/")) for name in (b"c", b"row"))
    return b"<!" in xml or cells != xml.count(b'<c r="') or rows != xml.count(b'<row r="')


def _usual(xml: bytes) -> bytes:
    if _unusual(xml):
        raise ValueError("its sheet has cells with and without addresses, or sections that no spreadsheet program writes")
    return xml


def copy(container: Container, parts: Iterable[str]) -> BytesIO:
    """The copy, with the sheets of these parts, each named as its part; the workbook itself is written anew."""
    kinds = {part: "worksheet" for part in parts} | {part: kind for kind, part in container.shared.items()}
    kept = {part: "xl/styles.xml" if kind == "styles" else part for part, kind in kinds.items()}  # openpyxl looks for the styles there
    numbered = list(enumerate(kinds.items(), 1))
    links = [f'<Relationship Id="r{i}" Type="{RELATION}/{kind}" Target={quoteattr("/" + kept[part])}/>' for i, (part, kind) in numbered]
    sheets = [f'<sheet name={quoteattr(part)} sheetId="{i}" r:id="r{i}"/>' for i, (part, kind) in numbered if kind == "worksheet"]
    types = [f'<Override PartName={quoteattr("/" + part)} ContentType="{_SPREADSHEET}.{kind}+xml"/>'
             for part, kind in [("xl/workbook.xml", "sheet.main"), *((kept[part], kind) for part, kind in kinds.items())]]
    written = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{"".join(types)}</Types>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATION}"><sheets>{"".join(sheets)}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(links)}</Relationships>',
    }
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, text in written.items():
            archive.writestr(name, text)
        for part, kind in kinds.items():
            data = chunks(container.archive, part, _CHUNK)
            with archive.open(kept[part], "w", force_zip64=True) as stream:
                for chunk in filled(data) if kind == "worksheet" else data:
                    stream.write(chunk)
    return out
