"""Ids are text through every file, and a document id has two spellings."""

import csv
import json
import sys

import nbformat
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from lib import contracts, ids, paths

CASE_32 = json.loads((paths.ROOT / "tests/cases/32-ids-stay-text.json").read_text())
IDS = CASE_32["input"]["ids"]


@given(st.integers(0, 99_999), st.integers(0, 10**7))
@example(45, 7)
@example(45, 99_999)
@example(45, 100_000)
def test_both_spellings_come_back_from_each_other(shard, sequence):
    short, padded = f"shard_{shard:05d}_{sequence}", f"shard_{shard:05d}_{sequence:05d}"
    assert ids.analysis(short) == padded and ids.api(padded) == short
    assert ids.api(short) == short and ids.analysis(padded) == padded


@given(st.text())
@example("shard_00045_06622\n")
@example("shard_\u0664_\u0662")
@example("xshard_00045_7")
@example("shard_00045_7_8")
@example("007")
def test_a_spelling_is_stable_and_other_ids_stay_as_they_are(docid):
    assert ids.api(ids.analysis(docid)) == ids.api(docid) and ids.analysis(ids.api(docid)) == ids.analysis(docid)
    if not docid.startswith("shard_") or not docid.isascii() or docid.endswith("\n"):
        assert ids.api(docid) == ids.analysis(docid) == docid


def test_the_number_of_the_shard_is_left_alone():
    assert ids.api("shard_045_00007") == "shard_045_7"
    assert ids.analysis("shard_00045_0") == "shard_00045_00000"


@pytest.mark.parametrize("value, why", [
    (7, "is a int, not text"), (None, "is a NoneType, not text"), (True, "is a bool, not text"), ("", "is empty"),
    ("d 1", "holds the character U+0020"), ("d\u00a0", "holds the character U+00A0"), ("\u3000d", "holds the character U+3000"),
    ("d\x00", "holds the character U+0000"), ("d\x85", "holds the character U+0085"), ("d\u2028", "holds the character U+2028"),
    ("d\udc80", "holds the character U+DC80"), ("d\x7f", "holds the character U+007F"),
])
def test_an_illegal_id_is_told_why(value, why):
    assert ids.fault(value) == why


@pytest.mark.parametrize("value", [*IDS, "\u00fc", "\U0001d465", "a\u200bb", "\u00e9", "e\u0301", "#", "'", '"', "\ufeff"])
def test_any_other_text_is_a_legal_id(value):
    assert ids.fault(value) is None


def test_every_character_that_python_calls_white_space_is_refused():
    spaces = [chr(n) for n in range(sys.maxunicode + 1) if chr(n).isspace()]
    assert len(spaces) == 29 and all(ids.fault(f"a{space}b") for space in spaces)


def through_csv(folder):
    with open(folder / "ids.csv", "w", newline="", encoding="utf-8") as handle:
        csv.writer(handle, lineterminator="\n").writerows([["qid"], *[[value] for value in IDS]])
    with open(folder / "ids.csv", newline="", encoding="utf-8") as handle:
        return [row["qid"] for row in csv.DictReader(handle)]


def through_jsonl(folder):
    (folder / "ids.jsonl").write_text("".join(json.dumps({"qid": value}) + "\n" for value in IDS))
    return [json.loads(line)["qid"] for line in (folder / "ids.jsonl").read_text().split("\n")[:-1]]


def labels(values):
    n = len(values)
    same = {"query_evaluable": True, "judge": "j", "version": "v", "stage": "s", "round": 0, "model": "m"}
    empty = dict.fromkeys(["label", "llm_label", "student_score", "prompt_sha256"])
    columns = {name: [value] * n for name, value in (same | empty).items()}
    return contracts.table("labels", columns | {"qid": values, "docid": values})


def through_parquet(folder):
    line = contracts.write("labels", labels(IDS), folder / "part-00000.parquet")
    contracts.finish(folder, [line])
    return contracts.read("labels", folder)["docid"].to_pylist()


def through_a_parquet_folder_split_by_id(folder):
    """Parts stand in folders named by an id; the name of a folder is never read as a column."""
    back = []
    for n, value in enumerate(IDS):
        split = folder / f"docid={n:05d}"
        contracts.finish(split, [contracts.write("labels", labels([value]), split / "part-00000.parquet")])
        table = contracts.read("labels", split)
        assert table.schema.field("docid").type == pa.string()
        back += table["docid"].to_pylist()
    return back


def through_a_workbook_cell(folder):
    book = openpyxl.Workbook()
    for row, value in enumerate(IDS, start=1):
        cell = book.active.cell(row, 1)
        cell.value, cell.data_type = value, "s"  # else "=1+1" becomes a formula
    book.save(folder / "ids.xlsx")
    return [cell.value for cell in openpyxl.load_workbook(folder / "ids.xlsx").active["A"]]


def through_a_notebook_parameter(folder):
    back = []
    for value in IDS:
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": "p"}})
        notebook.cells = [nbformat.v4.new_code_cell('qid = "q"', metadata={"tags": ["parameters"]})]
        nbformat.write(notebook, folder / "n.ipynb")
        filled = parameterize_notebook(load_notebook_node(str(folder / "n.ipynb")), {"qid": value})
        names = {}
        exec(filled.cells[-1].source, names)
        back.append(names["qid"])
    return back


@pytest.mark.parametrize("through", [
    through_csv, through_jsonl, through_parquet, through_a_parquet_folder_split_by_id, through_a_workbook_cell, through_a_notebook_parameter,
], ids=CASE_32["input"]["through"])
def test_case_32_ids_stay_text(tmp_path, through):
    assert through(tmp_path) == CASE_32["right_answer"]["ids_back"]


def test_case_32_a_folder_named_by_an_id_is_no_number_in_a_part(tmp_path):
    path = tmp_path / "shard=00045" / "part-00000.parquet"
    contracts.write("labels", labels(["00045"]), path)
    assert contracts.read_part("labels", path).schema.names == contracts.TABLES["labels"].names
    assert pq.read_table(tmp_path).schema.field("shard").type != pa.string()  # what a reader that guesses makes of it


@pytest.mark.parametrize("value", CASE_32["input"]["refused"])
def test_case_32_an_id_with_blanks_is_refused(value):
    assert ids.fault(value)
