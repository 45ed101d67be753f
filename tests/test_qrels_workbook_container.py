"""What is no workbook that can be read gets one sentence with the way out, and the sheet's XML is read as a stream."""

import io
import os
import random
import re
import zipfile
from xml.etree import ElementTree

import openpyxl
import pytest
import small_workbook as small
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.qrels import workbook
from lib.qrels.sheets import ooxml, sheet_xml, slim
from lib.qrels.workbook import WorkbookError

HOPS, VOTES = [("78", 1, "Who?", "Yes", None)], [("78", 1, "d1", None, "Supports")]
SAVE = "open it in Excel or LibreOffice and save it as Excel Workbook (.xlsx)"
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def said(path):
    with pytest.raises(WorkbookError) as caught:
        workbook.read(path)
    assert len(caught.value.faults) == 1 and str(caught.value) == f"{path}: {caught.value.faults[0]}" and "\n" not in str(caught.value)
    return caught.value.faults[0]


def archived(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize("data, sentence", [
    (b"", f"is empty (0 bytes); copy the workbook again, or {SAVE}"),
    (b"Question ID,Hop\n78,1\n", f"is no Excel workbook (it is no zip file); {SAVE}"),
    (COMPOUND + "EncryptedPackage".encode("utf-16-le"), "is encrypted; open it with its password, remove the password"),
    (COMPOUND + "Workbook".encode("utf-16-le"), f"is a legacy file of the time before .xlsx (.xls or the like); {SAVE}"),
    (b"PK\x03\x04", "is a damaged or truncated zip file ("),
])
def test_a_file_of_another_kind_gets_a_sentence(tmp_path, data, sentence):
    (tmp_path / "review.xlsx").write_bytes(data)
    assert said(tmp_path / "review.xlsx").startswith(sentence)


def test_a_missing_file_a_folder_and_a_file_that_may_not_be_read_get_a_sentence(tmp_path):
    assert said(tmp_path / "no.xlsx").startswith("is not there; name the reviewer's workbook")
    assert said(tmp_path).startswith("is a folder; name the reviewer's workbook in it")
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    assert said(tmp_path / "loop").startswith("cannot be read (")


def test_other_archives_get_a_sentence(tmp_path):
    path = tmp_path / "review.xlsx"
    assert said(archived(path, {"a.txt": "b"})) == f"is a zip file but no Excel workbook (it has no [Content_Types].xml); {SAVE}"
    assert said(archived(path, {"mimetype": "application/vnd.oasis.opendocument.spreadsheet"})).startswith("is an OpenDocument file")
    assert said(archived(path, {"[Content_Types].xml": "<Types/>", "xl/workbook.bin": "x"})).startswith("is a binary workbook (.xlsb)")
    assert said(archived(path, {"[Content_Types].xml": "<Types/>"})).startswith("has a damaged part [Content_Types].xml (it has no workbook part)")


def test_a_strict_workbook_gets_a_sentence(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    strict = {name: text.replace("http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main").replace(
        "http://schemas.openxmlformats.org/officeDocument/2006/", "http://purl.oclc.org/ooxml/officeDocument/") for name, text in parts.items()}
    assert said(archived(path, strict)).startswith(f"is a Strict Open XML workbook, which is not read; {SAVE}, not as Strict")


def test_a_truncated_workbook_is_an_error_at_every_length(tmp_path):
    data, path = small.write(tmp_path / "review.xlsx", HOPS, VOTES).read_bytes(), tmp_path / "cut.xlsx"
    for length in random.Random(0).sample(range(4, len(data) - 1), 40):
        path.write_bytes(data[:length])
        assert said(path).startswith("is a damaged or truncated zip file (")


def test_a_damaged_byte_is_an_error_or_changes_nothing(tmp_path):
    path, hurt = small.write(tmp_path / "review.xlsx", HOPS, VOTES), tmp_path / "hurt.xlsx"
    data, whole, refused = path.read_bytes(), workbook.read(path), 0
    for place in random.Random(1).sample(range(len(data)), 80):
        hurt.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1:])
        try:
            read = workbook.read(hurt)
        except WorkbookError:
            refused += 1
        else:
            assert (read.hops, read.votes) == (whole.hops, whole.votes)
    assert refused > 20


@pytest.mark.parametrize("part", ["xl/worksheets/sheet2.xml", "xl/sharedStrings.xml", "xl/styles.xml", "xl/workbook.xml", "[Content_Types].xml"])
def test_a_document_type_is_refused_in_every_part(tmp_path, part):
    path = small.share_strings(small.write(tmp_path / "review.xlsx", HOPS, VOTES))
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    small.patch(path, part, lambda xml: (head := re.match(r"(?:<\?xml.*?\?>)?", xml)[0]) + bomb + xml[len(head):])
    assert said(path).startswith(f"has a damaged part {part} (it declares a document type")


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/sharedStrings.xml", "w") as part:
        for _ in range(129):
            part.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20
    assert said(path).startswith("would unpack to 129 MiB, more than is read (512 MiB in all, 128 MiB in one part that is no sheet)")
    monkeypatch.setattr(ooxml, "LARGEST", 10)
    assert said(path).startswith("has more than 0 MiB")


@pytest.mark.parametrize("part, change", [
    ("xl/worksheets/sheet2.xml", lambda xml: xml.replace('<row r="2"', '<row r="1"')),
    ("xl/worksheets/sheet2.xml", lambda xml: xml.replace('r="C2"', 'r="B2"')),
    ("xl/worksheets/sheet2.xml", lambda xml: xml.replace('r="C2"', 'r="C3"')),
    ("xl/worksheets/sheet2.xml", lambda xml: xml.replace('r="C2"', 'r="c2"')),
    ("xl/worksheets/sheet2.xml", lambda xml: xml.replace("</sheetData>", "")),
    ("xl/worksheets/sheet2.xml", lambda xml: xml.replace('<row r="2"', '<row').replace("</sheetData>", '<row r="1"/></sheetData>')),
    ("xl/worksheets/sheet2.xml", lambda xml: re.sub(r'<c r="B2"[^>]*><v>1</v>', '<c r="B2"><v>one</v>', xml)),
    ("xl/worksheets/sheet2.xml", lambda xml: re.sub(r'<c r="B2"[^>]*><v>1</v>', '<c r="B2" t="s"><v>99</v>', xml)),
])
def test_a_sheet_that_no_program_writes_is_an_error_and_loses_no_cell(tmp_path, part, change):
    path = small.patch(small.write(tmp_path / "review.xlsx", HOPS, VOTES), part, change)
    assert "save it" in said(path)


def test_a_row_that_openpyxl_passes_over_is_a_fault(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    small.patch(path, "xl/worksheets/sheet2.xml", lambda xml: xml.replace('<row r="2"', '<row r="2" ht="9"><c r="A2" t="b"/></row><row r="2"'))
    with pytest.raises(WorkbookError):
        workbook.read(path)


def test_cells_and_rows_without_an_address_stand_beside_the_one_before(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, [*VOTES, ("78", 1, "d2", "x", "Supports")])
    vote = '<c t="inlineStr"><is><t>Supports'  # of the first row, where no excerpt stands before it
    small.patch(path, "xl/worksheets/sheet2.xml", lambda xml: re.sub(r'(<row|<c) r="\w+"', r"\1", xml).replace(vote, f"<c/>{vote}", 1))
    assert [row.cell for row in workbook.read(path).votes] == ["Votes!E2", "Votes!E3"]


def test_a_sheet_with_prefixed_names_is_read(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    small.patch(path, "xl/worksheets/sheet2.xml", lambda xml: re.sub(r"<(/?)(\w)", r"<\1x:\2", xml.replace("xmlns=", "xmlns:x=")))
    assert [row.cell for row in workbook.read(path).votes] == ["Votes!E2"]


BODY = {
    "empty": "/>", "styled": ' s="1"/>', "number": "><v>1</v></c>", "text": ' t="inlineStr"><is><t>&lt;c r="A1"/&gt;</t></is></c>',
    "formula": "><f>1+1</f><v>2</v></c>", "nothing stored": "><f>1+1</f><v></v></c>",
}
CELLS = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 40), st.sampled_from(sorted(BODY))), max_size=30)


def sheet(cells, hidden, implicit):
    """The XML of a sheet with these cells; with `implicit` no cell or row says where it stands."""
    filled, rows = {(row, column): kind for row, column, kind in cells}, []
    for row in range(1, 9):
        places = [column for column in range(1, 41) if (row, column) in filled]
        if implicit:
            places = range(1, max(places, default=0) + 1)
        starts = ["<c" if implicit else f'<c r="{sheet_xml.address(row, column)}"' for column in places]
        inner = "".join(start + BODY[filled.get((row, column), "empty")] for start, column in zip(starts, places, strict=True))
        start = "<row" if implicit else f'<row r="{row}"'
        rows.append(f"""{start}{' hidden="1"' if row in hidden else ""}>{inner}</row>""")
    return f'<worksheet xmlns="{small.MAIN}"><sheetData>{"".join(rows)}</sheetData></worksheet>'.encode()


def slow(xml):
    """The places that hold something, the formulas and the hidden rows, from the whole tree."""
    row, held, formulas, hidden, name = 0, {}, {}, set(), f"{{{small.MAIN}}}"
    for element in ElementTree.fromstring(xml).iter(f"{name}row"):
        row, column = int(element.get("r", row + 1)), 0
        for cell in element:
            column = sheet_xml.place(cell.get("r"))[1] if cell.get("r") else column + 1
            value, formula = cell.findtext(f"{name}v"), cell.find(f"{name}f")
            if value or formula is not None or cell.find(f"{name}is") is not None:
                held.setdefault(column, []).append(row)
                if element.get("hidden"):
                    hidden.add(row)
            if formula is not None:
                formulas[row, column] = bool(value)
    return held, formulas, hidden


@given(CELLS, st.sets(st.integers(1, 8)), st.booleans(), st.integers(20, 4000))
@settings(max_examples=60)
@example([(1, 1, "styled"), (2, 1, "number")], set(), True, 30)
def test_the_stream_without_empty_cells_tells_what_the_whole_tree_tells(cells, hidden, implicit, size):
    xml = sheet(cells, hidden, implicit)
    chunks = [xml[start:start + size] for start in range(0, len(xml), size)]
    slim_xml = b"".join(slim.filled(iter(chunks)))
    for one in (xml, slim_xml):
        found = sheet_xml.read([one])
        assert (found.rows, found.formulas, found.hidden_rows) == slow(xml)
    assert implicit or len(chunks) > 1 or not re.search(rb"<c [^<>]*/>|<row [^<>]*></row>", slim_xml)


@pytest.mark.parametrize("number, name", [(1, "A"), (26, "Z"), (27, "AA"), (702, "ZZ"), (703, "AAA"), (16_384, "XFD")])
def test_the_letters_of_a_column(number, name):
    assert sheet_xml.letters(number) == name == openpyxl.utils.get_column_letter(number)
    assert sheet_xml.place(f"{name}7") == (7, number)


def test_a_reader_of_a_workbook_needs_no_disk(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    with ooxml.opened(path) as container:
        path.unlink()
        copied = slim.copy(container, [found.part for found in container.sheets])
    assert isinstance(copied, io.BytesIO)
    assert openpyxl.load_workbook(copied, read_only=True).sheetnames == ["xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"]
