"""A released set read back by ir_measures, pytrec_eval and ir_datasets, and every row that makes no set."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
import released
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.exports import card, export, formats
from lib.exports.rows import ExportError, Judged, by_question

NASTY = ["007", "7", "1e5", "NA", "nan", "None", "true", "=1+1", "+1", "-1", "@x", "d#1", "0", '"q"', "'", "a,b", "a|b", "<b>", "\\n", "é", "e\u0301",
         "日本", "😀", "\u200b", "shard_00045_6622", "shard_00045_06622", "x" * 300, "d/../d", "a\ufeff"]  # fmt: skip


def rows(pairs: dict[tuple[str, str], int]) -> list[tuple[str, str, int]]:
    return [(*pair, pairs[pair]) for pair in sorted(pairs)]


def texts(pairs) -> list[tuple[str, str]]:
    return [(qid, f"What is {qid}?\u2028\u0085\t\r\n") for qid in sorted({qid for qid, _ in pairs})]


def write(out: Path, pairs: dict[tuple[str, str], int], **more) -> export.Set:
    return export.write(out, rows(pairs), texts(pairs), lambda data: card.write("A set", "Of a test.", data, dict.fromkeys((0, 1, 2), "?"), [], ["none"]), **more)


def legal(an_id: str) -> bool:
    return an_id != "" and not an_id.startswith("\ufeff") and not any(character.isspace() for character in an_id)


IDS = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), max_size=8).filter(legal))


@settings(max_examples=60)
@given(st.dictionaries(st.tuples(IDS, IDS), st.integers(0, 2), min_size=1, max_size=30))
@example({(qid, docid): (at + other) % 3 for at, qid in enumerate(NASTY) for other, docid in enumerate(NASTY)})
@example({("q", "d"): 0})
@example({("\U0001f600", "\uffff"): 1, ("\uffff", "\U0001f600"): 2})  # sorted otherwise as UTF-16
def test_every_reader_finds_the_set_that_was_written(pairs):
    expected = released.nested(rows(pairs))
    with tempfile.TemporaryDirectory() as home:
        out = Path(home, "out")
        data = write(out, pairs, documents=[(docid, f"text of {docid}\u2029\n") for docid in sorted({docid for _, docid in pairs})])
        for reader, found in released.read_back(out).items():
            assert found == expected, reader
        assert released.queries(out) == dict(texts(pairs))
        assert sorted(released.contents(out)) == released.FILES
        for name in ("qrels.trec", "beir/qrels/test.tsv"):
            lines = [tuple(line.split()) for line in (out / name).read_bytes().splitlines()[name.endswith("tsv"):]]
            keys = [(line[0], line[-2]) for line in lines]
            assert keys == sorted(set(keys)), "sorted as bytes, each pair once"
        assert (data.questions, data.pairs, sum(data.grades.values())) == (len(expected), len(pairs), len(pairs))


def test_the_three_spellings_of_one_question():
    judged = Judged("007", [("d#1", 0), ("NA", 2)])
    assert formats.trec(judged) == "007 0 d#1 0\n007 0 NA 2\n"
    assert formats.BEIR_HEADER + formats.beir(judged) == "query-id\tcorpus-id\tscore\n007\td#1\t0\n007\tNA\t2\n"
    assert formats.jsonl(judged) == '{"qid": "007", "documents": [{"docid": "d#1", "grade": 0}, {"docid": "NA", "grade": 2}]}\n'
    assert formats.document("d", "a\u2028b\x85\x1e") == '{"_id": "d", "title": "", "text": "a\\u2028b\\u0085\\u001e"}\n'


def test_the_corpus_is_read_by_ir_datasets(tmp_path, monkeypatch):
    wanted = {docid: f"a {docid}\r\nb\u2028c\x85" for docid in NASTY}
    write(tmp_path / "out", {("q", docid): 1 for docid in NASTY}, documents=wanted.items())
    assert released.documents(tmp_path / "out", monkeypatch, tmp_path / "home") == wanted


def test_a_perfect_run_scores_1_on_what_pytrec_eval_reads(tmp_path):
    pairs = {("q1", "a"): 2, ("q1", "b"): 1, ("q1", "c"): 0, ("007", "=1+1"): 1, ("007", "NA"): 0}
    write(tmp_path / "out", pairs)
    qrels = released.read_back(tmp_path / "out")["pytrec_eval"]
    run = {qid: {docid: float(grade) for docid, grade in found.items()} for qid, found in qrels.items()}
    scores = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "map"}).evaluate(run)
    assert scores == {qid: {"ndcg": 1.0, "map": 1.0} for qid in ("q1", "007")}


@pytest.mark.parametrize("given, fault", [
    ([("q1", "d1", 1), ("q1", "d1", 1)], "the question 'q1' has 'd1' twice; a released pair stands once"),
    ([("q1", "d1", 2), ("q1", "d1", 0)], "the question 'q1' has 'd1' with the grades 2 and 0; settle which one holds"),
    ([("q1", "d2", 1), ("q1", "d1", 1)], "the question 'q1' has 'd1' after 'd2'; sort the rows"),
    ([("q2", "d1", 1), ("q1", "d1", 1)], "the question 'q1' comes after 'q2'; sort the rows"),
    ([("q1", "d1", 1), ("q2", "d1", 1), ("q1", "d2", 1)], "the question 'q1' comes after 'q2'"),
    ([("q1", "d1", 1.0)], "the question 'q1' has the grade 1.0 for 'd1', which is not the integer 0 or 1 or 2"),
    ([("q1", "d1", True)], "has the grade True for 'd1'"),
    ([("q1", "d1", np.int64(1))], "has the grade .*1.* for 'd1'"),
    ([("q1", "d1", None)], "has the grade None"),
    ([("q1", "d1", "1")], "has the grade '1'"),
    ([("q1", "d1", 3)], "has the grade 3"),
    ([("q1", "d1", -1)], "has the grade -1"),
    ([("q1", "d 1", 1)], r"the document id 'd 1' holds the character U\+0020"),
    ([("q\u00a01", "d1", 1)], r"the question id 'q\\xa01' holds the character U\+00A0"),
    ([("", "d1", 1)], "the question id '' is empty"),
    ([("q1", "d\x1c", 1)], r"holds the character U\+001C"),
    ([("q1", "\ud800", 1)], r"holds the character U\+D800"),
    ([("q1", 7, 1)], "the document id 7 is a int, not text"),
    ([("\ufeffq", "d1", 1)], r"the question id '\\ufeffq' begins with the character U\+FEFF"),
    ([], "there is no pair to release"),
])  # fmt: skip
def test_what_makes_no_set_is_named_and_nothing_is_left(tmp_path, given, fault):
    queries = [(qid, "?") for qid in dict.fromkeys(qid for qid, _, _ in given)]
    with pytest.raises(ExportError, match=fault):
        export.write(tmp_path / "out", given, queries, lambda data: "card\n")
    assert list(tmp_path.iterdir()) == []


def test_a_grade_that_the_set_does_not_have_is_refused():
    with pytest.raises(ExportError, match="the grade 0 for 'd1', which is not the integer 1; give integers"):
        list(by_question([("q1", "d1", 0)], (1,)))


@pytest.mark.parametrize("asked, fault", [
    (["q1"], "the question 'q2' has pairs and no text"),
    (["q1", "q2", "q3"], "the question 'q3' has a text and no pair"),
    (["q1", "q1a", "q2"], "the question 'q1a' has a text and no pair"),
    (["q2"], "the question 'q1' has pairs and no text"),
    ([], "the question 'q1' has pairs and no text"),
])  # fmt: skip
def test_questions_and_texts_are_the_same(tmp_path, asked, fault):
    with pytest.raises(ExportError, match=fault):
        export.write(tmp_path / "out", [("q1", "d1", 1), ("q2", "d1", 1)], [(qid, "?") for qid in asked], lambda data: "card\n")
    assert list(tmp_path.iterdir()) == []


def test_the_card_counts_what_was_written(tmp_path):
    write(tmp_path / "out", {("q1", "d1"): 0, ("q1", "d2"): 2, ("q2", "d1"): 2}, facts={"of": "a test"})
    written = (tmp_path / "out" / "README.md").read_text()
    assert "2 questions, 3 pairs." in written and "| 0 | 1 | ? |" in written and "| 1 | 0 | ? |" in written and "| 2 | 2 | ? |" in written
    assert "| `qrels.trec` | 3 |" in written and "| `qrels.jsonl` | 2 |" in written and "corpus.jsonl" not in written
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["counts"] == {"questions": 2, "pairs": 3, "grades": {"0": 1, "1": 0, "2": 2}} and manifest["of"] == "a test"


def test_a_table_of_the_card_keeps_its_columns():
    assert card.table(["a|b", "n"], [("x|y\nz", 1234), (None, 5)]) == "| a\\|b | n |\n| --- | ---: |\n| x\\|y z | 1,234 |\n| — | 5 |"


MILLIONS = """
import resource, sys
from lib.exports import export

def rows():
    for q in range(80_000):
        for d in range(25):
            yield f"q{q:06d}", f"shard_{d:05d}_{q:05d}", d % 3

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = export.write(sys.argv[1], rows(), ((f"q{q:06d}", "?") for q in range(80_000)), lambda data: "card\\n")
print(data.pairs, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_two_million_rows_take_no_memory(tmp_path):
    done = subprocess.run([sys.executable, "-c", MILLIONS, str(tmp_path / "out")], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    pairs, megabytes = map(int, done.stdout.split())
    assert pairs == 2_000_000 and megabytes < 20
