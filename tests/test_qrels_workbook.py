"""The reviewer's workbook is read with its cells' addresses, and whatever is not plainly a vote or a judgment is a fault, never a blank."""

import datetime
import hashlib
import json
import re
import shutil
import time

import pytest
import small_workbook as small
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.styles import Font
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

from lib import ids, paths
from lib.qrels import workbook
from lib.qrels.sheets import columns
from lib.qrels.refusals import Refused
from lib.qrels.sheets.sheet_table import SheetTable
from lib.qrels.workbook import HopRow, VoteRow, WorkbookError

HOPS = [("78", 1, "Who wrote it?", "Yes", None), ("78", 2, "When?", "No", "Not needed.")]
VOTES = [("78", 1, "shard_00045_06622", "He wrote", "Supports", None), ("78", 1, "d2", None, "Does not support", "no"),
         ("78", 2, "d3", None, None, None)]
CASE_32 = json.loads((paths.ROOT / "tests/cases/32-ids-stay-text.json").read_text())


def set_cells(**cells):
    """An edit that sets cells of the sheets, as votes_E2="maybe"."""
    def edit(book):
        for name, value in cells.items():
            sheet, address = name.split("_")
            book[sheet.capitalize()][address] = value
    return edit


def faults(path, **more):
    with pytest.raises(WorkbookError) as caught:
        workbook.read(path, **more)
    return caught.value.faults


def fault(path, **more):
    found = faults(path, **more)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("name, content_type", [("review.xlsx", None), ("review.xlsm", None), ("review.xlsm", small.macro_type)])
def test_votes_and_judgments_come_with_the_address_of_their_cell(tmp_path, name, content_type):
    path = small.write(tmp_path / name, HOPS, VOTES)
    if content_type:
        content_type(path)
    read = workbook.read(path)
    assert read == workbook.Workbook(
        name, hashlib.sha256(path.read_bytes()).hexdigest(),
        [HopRow("78", 1, "Who wrote it?", "Yes", None, "Hops!D2"), HopRow("78", 2, "When?", "No", "Not needed.", "Hops!D3")],
        [VoteRow("78", 1, "shard_00045_6622", "Supports", "Votes!E2"), VoteRow("78", 1, "d2", "Does not support", "Votes!E3"),
         VoteRow("78", 2, "d3", None, "Votes!E4")], [])


def test_case_32_ids_stay_text_through_a_workbook_cell(tmp_path):
    given_ids = CASE_32["input"]["ids"]
    path = small.write(tmp_path / "review.xlsx", [(qid, 1) for qid in given_ids], [(qid, 1, qid, None, "Supports") for qid in given_ids])
    read = workbook.read(path)
    shared = workbook.read(small.share_strings(path))
    assert (shared.hops, shared.votes) == (read.hops, read.votes)
    assert [row.qid for row in read.hops] == [row.qid for row in read.votes] == CASE_32["right_answer"]["ids_back"]
    assert [row.docid for row in read.votes] == [ids.api(docid) for docid in CASE_32["right_answer"]["ids_back"]]
    refused = [value for value in CASE_32["input"]["refused"] if value]
    for value in refused:
        small.write(path, [], [("78", 1, value, None, "Supports")])
        assert fault(path).startswith(f"Votes!C2 holds {value!r} as the document id, which holds the character")
    assert fault(small.write(path, [], [("78", 1, "", None, "Supports")])).startswith("Votes!C2 is blank, but its row has")


ID = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    lambda text: not ids.fault(text) and "_x" not in text and "\ufffe" not in text and "\uffff" not in text)  # XML has no U+FFFE


@given(st.lists(st.tuples(ID, st.integers(1, 99), ID, st.sampled_from([None, *workbook.VOTES])), max_size=6))
@settings(max_examples=30)
@example([("007", 1, "=1+1", "Supports"), ("=A1", 2, "#N/A", None)])
def test_what_was_written_is_read(tmp_path_factory, rows):
    votes = [(qid, hop, docid, None, vote) for qid, hop, docid, vote in rows]
    path = small.write(tmp_path_factory.mktemp("book") / "review.xlsx", [], votes)
    read = workbook.read(path)
    assert read.votes == [VoteRow(qid, hop, ids.api(docid), vote, f"Votes!E{row}") for row, (qid, hop, docid, vote) in enumerate(rows, 2)]


@pytest.mark.parametrize("written, read", [
    ("supports", "Supports"), (" PARTIAL\u00a0\n support ", "Partial support"), ("Does\u2003not  support", "Does not support"),
    ("\uff33upports", "Supports"), ("", None), (" \u00a0\n", None), (None, None),
])
def test_a_vote_is_matched_after_folding_unicode_and_white_space(tmp_path, written, read):
    assert workbook.read(small.write(tmp_path / "review.xlsx", HOPS, [("78", 1, "d1", None, written)])).votes[0].vote == read


@pytest.mark.parametrize("hop, read", [(2, 2), (2.0, 2), ("2", 2), (" 2 ", 2)])
def test_a_hop_is_a_whole_number_in_digits_or_as_text(tmp_path, hop, read):
    assert workbook.read(small.write(tmp_path / "review.xlsx", [("78", hop)], [])).hops[0].hop == read


DAY = datetime.datetime(2026, 11, 30)
TYPED = "format the column as text and type it again"


@pytest.mark.parametrize("cells, said", [
    ({"votes_E2": "maybe"}, "Votes!E2 holds 'maybe', which is no vote; write Supports, Partial support, Does not support or leave the cell blank"),
    ({"votes_E2": "Supports?"}, "Votes!E2 holds 'Supports?', which is no vote"),
    ({"votes_E2": "\u200b"}, "Votes!E2 holds '\\u200b', which is no vote"),
    ({"votes_E2": 1}, "Votes!E2 holds 1, which is no vote"),
    ({"votes_E2": True}, "Votes!E2 holds True, which is no vote"),
    ({"votes_E2": "#N/A"}, "Votes!E2 holds the error #N/A"),
    ({"votes_C2": "#REF!"}, "Votes!C2 holds the error #REF!"),
    ({"hops_D2": "maybe"}, "Hops!D2 holds 'maybe', which is no judgment; write Yes, No"),
    ({"hops_D2": True}, "Hops!D2 holds True, which is no judgment"),
    ({"hops_E2": "#NAME?"}, "Hops!E2 holds the error #NAME?"),
    ({"hops_E2": 5}, "Hops!E2 holds the number 5 as the note"),
    ({"hops_C2": DAY}, "Hops!C2 holds the date or time 2026-11-30 00:00:00 as the sub-question"),
    ({"votes_E2": '="Sup"&"ports"'}, "Votes!E2 has a formula without a stored value"),
    ({"votes_E2": ArrayFormula("E2:E3", '="Supports"')}, "Votes!E2:E3 is filled by an array formula or a data table over the vote"),
    ({"votes_E2": DataTableFormula("E2:E3", r1="A1", dt2D=False)}, "Votes!E2:E3 is filled by an array formula or a data table over the vote"),
    ({"votes_A2": 78}, f"Votes!A2 holds the number 78 as the question id; {TYPED}"),
    ({"votes_C2": 45.5}, f"Votes!C2 holds the number 45.5 as the document id; {TYPED}"),
    ({"votes_C2": DAY}, f"Votes!C2 holds the date or time 2026-11-30 00:00:00 as the document id; {TYPED}"),
    ({"hops_A2": datetime.time(1, 2)}, f"Hops!A2 holds the date or time 01:02:00 as the question id; {TYPED}"),
    ({"hops_A2": False}, f"Hops!A2 holds the truth value False as the question id; {TYPED}"),
    ({"hops_A2": "78 "}, "Hops!A2 holds '78 ' as the question id, which holds the character U+0020"),
    ({"votes_C2": " "}, "Votes!C2 holds ' ' as the document id, which holds the character U+0020"),
    ({"votes_C2": "d\u00a01"}, "Votes!C2 holds 'd\\xa01' as the document id, which holds the character U+00A0"),
    ({"votes_C2": "d1_x000D_"}, "Votes!C2 holds 'd1\\r' as the document id, which holds the character U+000D"),
    ({"votes_B2": 2.5}, "Votes!B2 holds 2.5 as the hop; write a whole number from 1"),
    ({"votes_B2": 0}, "Votes!B2 holds 0 as the hop"),
    ({"votes_B2": -1}, "Votes!B2 holds -1 as the hop"),
    ({"votes_B2": True}, "Votes!B2 holds True as the hop"),
    ({"votes_B2": DAY}, "Votes!B2 holds 2026-11-30 00:00:00 as the hop"),
    ({"votes_B2": "two"}, "Votes!B2 holds 'two' as the hop"),
    ({"votes_B2": "1.0"}, "Votes!B2 holds '1.0' as the hop"),
    ({"votes_B2": 1e300}, "Votes!B2 holds 1e+300 as the hop"),
    ({"votes_C2": None}, "Votes!C2 is blank, but its row has the question in Votes!A2, hop in Votes!B2, vote in Votes!E2; write the document id"),
    ({"votes_A2": None}, "Votes!A2 is blank, but its row has the hop in Votes!B2, document in Votes!C2, vote in Votes!E2; write the question id"),
    ({"votes_B2": None}, "Votes!B2 is blank, but its row has the question in Votes!A2, document in Votes!C2, vote in Votes!E2; write the number of the hop"),
    ({"hops_A2": None}, "Hops!A2 is blank, but its row has the hop in Hops!B2, text in Hops!C2, judgment in Hops!D2"),
    ({"hops_B2": None}, "Hops!B2 is blank, but its row has the question in Hops!A2"),
    ({"votes_A9": "79"}, "Votes!B9 is blank, but its row has the question in Votes!A9"),
    ({"hops_A3": "78", "hops_B3": 1, "hops_C3": "Who wrote it?", "hops_D3": "Yes"},
     "Hops!D3 is of hop 1 of question 78, which stands at Hops!D2 with another note"),
    ({"hops_B3": 1}, "Hops!D3 is of hop 1 of question 78, which stands at Hops!D2 with another judgment ('Yes', here 'No')"),
    ({"votes_F1": "Vote"}, "Votes!E1 and F1 are both headers of the vote"),
    ({"hops_F1": "NOTES"}, "Hops!E1 and F1 are both headers of the note"),
])
def test_what_is_no_plain_answer_is_a_fault_with_its_cell(tmp_path, cells, said):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES, set_cells(**cells))
    assert fault(path).startswith(said)


@pytest.mark.parametrize("sheet, merge, said", [
    ("Votes", "E2:E3", "Votes!E2:E3 is merged over the vote; unmerge it and fill in every cell"),
    ("Votes", "E3:F3", "Votes!E3:F3 is merged over the vote"),
    ("Votes", "C2:C3", "Votes!C2:C3 is merged over the document"),
    ("Votes", "A2:B2", "Votes!A2:B2 is merged over the question and hop"),
    ("Votes", "C1:D1", "Votes!C1:D1 is merged over the header of the document"),
    ("Hops", "D2:D3", "Hops!D2:D3 is merged over the judgment"),
    ("Hops", "E2:E3", "Hops!E2:E3 is merged over the note"),
])
def test_a_merge_over_a_vote_a_judgment_a_note_or_a_document_is_a_fault(tmp_path, sheet, merge, said):
    assert fault(small.write(tmp_path / "review.xlsx", HOPS, VOTES, lambda book: book[sheet].merge_cells(merge))).startswith(said)


def test_a_merged_question_or_hop_that_runs_down_stands_for_its_rows(tmp_path):
    def edit(book):
        book["Votes"].merge_cells("A2:A4")
        book["Votes"].merge_cells("B2:B3")
        book["Votes"].merge_cells("D2:D4")  # a column that is passed over

    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES, edit)
    small.patch(path, small.sheet_part("Hops"), lambda xml: re.sub(
        r'<c r="A3".*?</c>(.*)</sheetData>', r'\1</sheetData><mergeCells><mergeCell ref="A2:A1048576"/></mergeCells>', xml))
    read = workbook.read(path)
    assert [(row.qid, row.hop, row.docid) for row in read.votes] == [("78", 1, "shard_00045_6622"), ("78", 1, "d2"), ("78", 2, "d3")]
    assert [(row.qid, row.hop) for row in read.hops] == [("78", 1), ("78", 2)]
    assert read.notices == ["merged questions, hops or sub-questions were spread over their rows (3): Hops!A2:A1048576, Votes!A2:A4, Votes!B2:B3"]


def test_a_row_that_only_a_merge_covers_is_no_row(tmp_path):
    def edit(book):
        book["Votes"].merge_cells("A2:A9")
        book["Votes"]["F9"] = "the end"

    path = small.write(tmp_path / "review.xlsx", [], VOTES[:2], edit)
    assert len(workbook.read(path).votes) == 2


def test_a_value_under_a_merge_is_a_fault(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    small.patch(path, small.sheet_part("Votes"), ("</sheetData>", '</sheetData><mergeCells count="1"><mergeCell ref="A2:A3"/></mergeCells>'))
    assert fault(path).startswith("Votes!A3 holds a value under the merge A2:A3, where nobody sees it")


def test_a_formula_is_read_by_its_stored_value_and_reported(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES, set_cells(votes_E2="=E3", votes_E3="=X1", hops_A2="=X2", votes_D2="=NA()"))
    small.patch(path, small.sheet_part("Votes"), (r'<c r="E2"><f>E3</f><v.*?</c>', '<c r="E2" t="str"><f>E3</f><v>Supports</v></c>'))
    small.patch(path, small.sheet_part("Votes"), (r'<c r="E3"><f>X1</f><v.*?</c>', '<c r="E3" t="str"><f>X1</f><v></v></c>'))
    assert fault(path).startswith("Hops!A2 has a formula without a stored value")
    small.patch(path, small.sheet_part("Hops"), (r'<c r="A2"><f>X2</f><v.*?</c>', '<c r="A2"><f>X2</f><v>78</v></c>'))
    assert fault(path).startswith("Hops!A2 holds the number 78 as the question id")
    small.patch(path, small.sheet_part("Hops"), ('<c r="A2"><f>', '<c r="A2" t="str"><f>'))
    read = workbook.read(path)
    assert [row.vote for row in read.votes] == ["Supports", None, None]
    assert read.notices == ["formulas were read by their stored values (3): Hops!A2, Votes!E2, Votes!E3"]


def test_an_array_formula_that_spills_into_a_column_of_the_table_is_a_fault(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES, lambda book: book["Votes"].__setitem__("D2", ArrayFormula("D2:E4", "=X1:Y3")))
    assert fault(path).startswith("Votes!D2:E4 is filled by an array formula")


def test_hidden_rows_comments_and_strike_through_are_reported_with_their_cells(tmp_path):
    def edit(book):
        votes, hops = book["Votes"], book["Hops"]
        votes.row_dimensions[3].hidden = True
        votes.row_dimensions[9].hidden = True  # holds nothing
        votes.column_dimensions["C"].hidden = True
        votes["E2"].comment = Comment("sure?", "a reviewer")
        votes["C2"].font = Font(strike=True)
        votes["D2"].font = Font(strike=True)  # a column that is passed over
        hops["E3"] = CellRichText(["Not ", TextBlock(InlineFont(strike=True), "needed.")])
        hops["C2"] = CellRichText([TextBlock(InlineFont(b=True), "Who wrote it?")])
        hops.sheet_state = "hidden"

    read = workbook.read(small.write(tmp_path / "review.xlsx", HOPS, VOTES, edit))
    assert len(read.votes) == 3 and read.hops[1].note == "Not needed." and read.hops[0].text == "Who wrote it?"
    assert read.notices == [
        "hidden sheets were read as if shown (1): Hops",
        "hidden rows were read as if shown (1): Votes row 3",
        "hidden columns were read as if shown (1): Votes column C",
        "comments were not read; look at them (1): Votes!E2",
        "cells with struck-through text were read as if it were not struck (2): Hops!E3, Votes!C2",
    ]


def test_strike_through_and_threads_of_comments_are_found_in_shared_strings_and_parts_of_their_own(tmp_path):
    path = small.share_strings(small.write(tmp_path / "review.xlsx", HOPS, VOTES))
    small.patch(path, "xl/sharedStrings.xml", (
        "<si><t>Not needed.</t></si>", "<si><r><t>Not </t></r><r><rPr><strike/></rPr><t>needed.</t></r></si>"))
    relations = ('<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
                 'Type="http://schemas.microsoft.com/office/2017/10/relationships/threadedComment" Target="../threadedComments/threadedComment1.xml"/>'
                 '<Relationship Id="rId2" Type="http://x/hyperlink" Target="http://elsewhere" TargetMode="External"/></Relationships>')
    small.patch(path, "xl/worksheets/_rels/sheet2.xml.rels", lambda _: relations)
    small.patch(path, "xl/threadedComments/threadedComment1.xml", lambda _: (
        '<ThreadedComments xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments">'
        '<threadedComment ref="E3" id="{1}"><text>sure?</text></threadedComment></ThreadedComments>'))
    read = workbook.read(path)
    assert read.hops[1].note == "Not needed."
    assert read.notices == ["comments were not read; look at them (1): Votes!E3",
                            "cells with struck-through text were read as if it were not struck (1): Hops!E3"]


def test_a_notice_names_the_first_five_cells_and_counts_the_rest(tmp_path):
    def edit(book):
        for row in range(2, 12):
            book["Votes"].row_dimensions[row].hidden = True

    read = workbook.read(small.write(tmp_path / "review.xlsx", HOPS, [("78", 1, f"d{i}") for i in range(10)], edit))
    assert read.notices == ["hidden rows were read as if shown (10): " + ", ".join(f"Votes row {row}" for row in range(2, 7)) + " and 5 more"]


def test_all_faults_come_in_one_error_and_the_first_twenty_are_told(tmp_path):
    path = small.write(tmp_path / "review.xlsx", [("78", 1, None, "perhaps")], [("78", 1, f"d{i}", None, "maybe") for i in range(30)])
    with pytest.raises(WorkbookError) as caught:
        workbook.read(path)
    lines = str(caught.value).splitlines()
    assert len(caught.value.faults) == 31 and len(lines) == 1 + 20 + 1
    assert lines[0].endswith("review.xlsx has 31 faults; mend them in the workbook and run again:") and lines[-1] == "... and 11 more"
    assert lines[1].startswith("Hops!D2 holds 'perhaps'") and lines[2].startswith("Votes!E2 holds 'maybe'")
    assert isinstance(caught.value, Refused)


def test_headers_and_sheets_are_matched_after_folding_and_below_a_title(tmp_path):
    def edit(book):
        book["Votes"].title = "  VOTES\u00a0"
        for sheet in book:
            sheet.insert_rows(1, 2)
            sheet["A1"] = "Review of the hops"
            sheet.merge_cells("A1:F1")
        book.worksheets[1]["C3"] = "document\u00a0\nID "
        book.worksheets[1]["E3"] = "\uff36ote\u200b"
        book["Hops"]["C3"] = "Sub\u2010Question"

    read = workbook.read(small.write(tmp_path / "review.xlsx", HOPS, VOTES, edit))
    assert [row.cell for row in read.votes] == ["'  VOTES\u00a0'!E4", "'  VOTES\u00a0'!E5", "'  VOTES\u00a0'!E6"] and len(read.hops) == 2


def test_a_missing_header_names_the_sheet_what_is_there_and_what_was_looked_for(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES, set_cells(votes_E1="Verdict", hops_D1=None))
    assert faults(path) == [
        "the sheet Hops has no row with all headers: row 1 has 'Question ID', 'Hop', 'Sub-question', 'Note'; looked for 'Judgment' or 'Judgement'; "
        "write the header so, or name yours in a columns file",
        "the sheet Votes has no row with all headers: row 1 has 'Question ID', 'Hop', 'Document ID', 'Excerpt', 'Verdict', 'Comment'; looked for 'Vote'; "
        "write the header so, or name yours in a columns file"]
    empty = small.write(path, [], [], lambda book: book["Votes"].delete_rows(1, 9))
    assert fault(empty).startswith("the sheet Votes is empty; looked for 'Question ID' or 'QID'")


def test_a_missing_an_ambiguous_and_a_chart_sheet_are_named(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES, lambda book: book.__delitem__("Votes"))
    assert fault(path) == "no sheet has the name (there are 'Hops'): looked for 'Votes'; rename the sheet, or name yours in a columns file"
    twice = small.write(path, HOPS, VOTES, lambda book: book.copy_worksheet(book["Votes"]).__setattr__("title", "votes "))
    assert fault(twice).startswith("more than one sheet has the name ('Votes', 'votes '): looked for 'Votes'")
    chart = small.write(path, HOPS, VOTES, lambda book: (book.__delitem__("Votes"), book.create_chartsheet("Votes")))
    assert fault(chart).startswith("the sheet 'Votes' is a chart or a dialog")


def one_sheet(book):
    sheet = book["Hops"]
    for column, header in enumerate(("Document ID", "Vote"), 6):
        sheet.cell(1, column, header)
    del book["Votes"]


def test_both_tables_may_lie_on_one_sheet(tmp_path):
    (tmp_path / "columns.json").write_text('{"votes": {"sheet": "Hops"}}')
    rows = [("78", 1, "Who?", "Yes", None, "d1", "Supports"), ("78", 1, None, None, None, "d2", None), ("78", 2, "When?", "No", "skip", None, None),
            ("79", 1, "Who?", None, "odd", "d1", None), ("79", 1, "WHO? ", None, "Odd", "d3", None)]
    path = small.write(tmp_path / "review.xlsx", rows, [], one_sheet)
    read = workbook.read(path, tmp_path / "columns.json")
    assert read == workbook.read(path, columns.read(tmp_path / "columns.json"))
    assert [(row.qid, row.hop, row.judgment, row.note, row.cell) for row in read.hops] == [
        ("78", 1, "Yes", None, "Hops!D2"), ("78", 2, "No", "skip", "Hops!D4"), ("79", 1, None, "odd", "Hops!D5")]
    assert [(row.qid, row.hop, row.docid, row.vote, row.cell) for row in read.votes] == [
        ("78", 1, "d1", "Supports", "Hops!G2"), ("78", 1, "d2", None, "Hops!G3"), ("79", 1, "d1", None, "Hops!G5"), ("79", 1, "d3", None, "Hops!G6")]
    assert read.notices == ["repeated rows of a hop say the same and count once (1): Hops!D6"]
    assert faults(small.write(path, [(78, 1, None, "Yes", None, "d1", "maybe")], [], one_sheet), columns=tmp_path / "columns.json") == [
        "Hops!A2 holds the number 78 as the question id; format the column as text and type it again",
        "Hops!G2 holds 'maybe', which is no vote; write Supports, Partial support, Does not support or leave the cell blank"]


def test_rows_of_the_votes_without_a_document_are_reported(tmp_path):
    read = workbook.read(small.write(tmp_path / "review.xlsx", HOPS, [*VOTES, ("79", 1)]))
    assert len(read.votes) == 3 and read.notices == ["rows of the votes name no document and no vote and were passed over (1): Votes row 5"]


def test_a_columns_file_names_other_sheets_and_headers(tmp_path):
    (tmp_path / "columns.json").write_text('{"votes": {"sheet": ["Ballots"], "vote": ["Verdict", "Answer"]}}')

    def edit(book):
        book["Votes"]["E1"] = "answer"
        book["Votes"].title = "Ballots"

    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES, edit)
    assert workbook.read(path, tmp_path / "columns.json").votes[0] == VoteRow("78", 1, "shard_00045_6622", "Supports", "Ballots!E2")


@pytest.mark.parametrize("text, said", [
    ('{"votes": {"sheets": "x"}}', "votes.sheets is no field; votes has sheet, question, hop, document, vote"),
    ('{"ballots": {}}', "has the table 'ballots'; the tables are hops and votes"),
    ('{"votes": {"vote": []}}', "votes.vote is [], neither a name nor a list of names"),
    ('{"votes": {"vote": [" "]}}', "votes.vote is [' '], neither a name nor a list of names"),
    ('{"votes": {"vote": "hop"}}', "votes.vote and votes.hop share the name 'hop'; each field needs its own"),
    ('[]', "is no JSON object of objects"),
    ('{"votes": 1}', "is no JSON object of objects"),
    ('{"votes": {}, "votes": {}}', "is no strict JSON"),
])
def test_a_columns_file_that_says_something_else_is_refused(tmp_path, text, said):
    (tmp_path / "columns.json").write_text(text)
    with pytest.raises(Refused, match="columns.json") as caught:
        columns.read(tmp_path / "columns.json")
    assert said in str(caught.value)


class Counted(SheetTable):
    made = []

    def __init__(self, *given):
        super().__init__(*given)
        self.made.append(self)


@pytest.mark.parametrize("formatted", ["the last row", "every row"])
def test_a_sheet_formatted_to_row_1048576_is_read_as_far_as_it_holds_something(tmp_path, monkeypatch, formatted):
    monkeypatch.setattr(workbook, "SheetTable", Counted)
    monkeypatch.setattr(Counted, "made", [])
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    rows = range(9, 1_048_577) if formatted == "every row" else [1_048_576]
    small.patch(path, small.sheet_part("Votes"), lambda xml: xml.replace(
        "</sheetData>", "".join(f'<row r="{row}"><c r="E{row}" s="0"/></row>' for row in rows) + "</sheetData>"))
    start = time.process_time()
    assert len(workbook.read(path).votes) == 3
    assert time.process_time() - start < 2  # seconds of the processor: 0.4 here
    assert [table.visited for table in Counted.made] == [1 + 2, 1 + 3]


def test_the_file_is_read_once_and_left_as_it_is(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    path.chmod(0o444)
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    workbook.read(path)
    assert path.read_bytes() == before and path.stat().st_mtime_ns == stamp and [entry.name for entry in tmp_path.iterdir()] == ["review.xlsx"]


def test_macros_links_names_and_sheets_that_are_not_asked_for_do_not_matter(tmp_path):
    def edit(book):
        book.create_chartsheet("Chart", 0)
        book.create_sheet("Lists", 0).append(["=1+1"])
        book["Votes"].print_title_rows = "1:1"

    path = small.macro_type(small.write(tmp_path / "review.xlsm", HOPS, VOTES, edit))
    small.patch(path, "xl/vbaProject.bin", lambda _: "no macro at all")
    small.patch(path, "docProps/core.xml", lambda xml: xml.replace("dcterms:created", "dcterms:broken"))
    assert len(workbook.read(shutil.copy(path, tmp_path / "copy.xlsm")).votes) == 3


def test_what_stands_below_the_rows_of_a_sheet_is_not_read(tmp_path):
    path = small.write(tmp_path / "review.xlsx", HOPS, VOTES)
    below = '<dataValidations count="1"><dataValidation type="odd" sqref="A1"/></dataValidations>'
    small.patch(path, small.sheet_part("Votes"), ("</sheetData>", f"</sheetData>{below}"))
    assert len(workbook.read(path).votes) == 3
