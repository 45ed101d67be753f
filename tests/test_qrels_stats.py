"""The tables of the expanded qrels beside plain counts, their figures on paper, and the two steps that write them."""

import csv
import hashlib
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.qrels import charts, near_stats, stats
from lib.qrels.refusals import Refused
from lib.report import figures

ROOT = Path(__file__).resolve().parents[1]


def wilson(k: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The interval of Wilson (1927) as it is written."""
    middle, half = (k + z * z / 2) / (n + z * z), z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return middle - half, middle + half


def document(docid: str, hops: list[int], origin: str = "judged", level: int = 0) -> dict:
    return {"docid": docid, "hops": hops, "origin": origin, "round": level, "parent": None, "jaccard": None}


def question(qid: str, documents: list[dict], near: list[dict] = (), classes: list[dict] = (), live: tuple[bool, ...] = (True, True), votes=None) -> dict:
    votes = {"Supports": 1, "Partial support": 0, "Does not support": 1, "none": 2} if votes is None else votes
    return {"qid": qid, "workbook_sha256": "a" * 64, "hops": [{"hop": i, "text": "?", "live": alive} for i, alive in enumerate(live, 1)], "documents": documents,
            "votes": votes, "pairs": sum(votes.values()), "near": list(near), "classes": list(classes),
            "rounds": max((one["round"] for one in documents), default=0)}


ROWS = [
    question("78", [document("a", [1]), document("b", [1, 2], "exact"), document("c", [2], "near", 1), document("d", [2], "near", 2)],
             [{"docid": "c", "jaccard": 0.8, "hops": [2], "round": 1}, {"docid": "d", "jaccard": 0.7, "hops": [2], "round": 2},
              {"docid": "e", "jaccard": 0.7, "hops": [], "round": 1}, {"docid": "f", "jaccard": 1.0, "hops": [], "round": 1}], [{"docid": "a", "size": 2}]),
    question("007", [document("a", [1])], live=(True, False, True)),
    question("q", [document(f"d{i}", [1]) for i in range(25)], classes=[{"docid": "d1", "size": 7}, {"docid": "d2", "size": 2}]),
]


def test_the_documents_of_a_question_are_counted_before_and_after():
    table = stats.documents(ROWS)
    found = {(row.low, row.high): (row.before, row.after) for row in table.itertuples() if row.before or row.after}
    assert found == {(1, 2): (2, 1), (4, 5): (0, 1), (21, 30): (1, 1)}


@given(st.lists(st.integers(0, 450), min_size=1, max_size=12))
def test_every_question_lies_in_one_bucket_whatever_the_number_of_its_documents(numbers):
    table = stats.documents([question(str(i), [document(str(j), [1]) for j in range(n)]) for i, n in enumerate(numbers)])
    assert table["after"].tolist() == [sum(low <= n < high for n in numbers) for low, high in zip(table["low"], table["high"], strict=True)]
    assert sum(table["after"]) == len(numbers) and (table["low"][1:].to_numpy() == table["high"][:-1].to_numpy()).all()


def test_hops_are_counted_whole_live_and_supported():
    table = stats.hops(ROWS).set_index("number")
    assert table["hops"].to_dict() == {0: 0, 1: 0, 2: 2, 3: 1}
    assert table["live"].to_dict() == {0: 0, 1: 0, 2: 3, 3: 0}
    assert table["supported"].to_dict() == {0: 0, 1: 2, 2: 1, 3: 0}


def test_origins_and_votes_are_shares_of_a_named_whole():
    assert stats.origins(ROWS).values.tolist() == [["judged", 27, 27 / 30], ["exact", 1, 1 / 30], ["near", 2, 2 / 30]]
    assert stats.votes(ROWS).values.tolist() == [["Supports", 3, 3 / 12], ["Partial support", 0, 0], ["Does not support", 3, 3 / 12], ["none", 6, 6 / 12]]


def test_the_gain_of_the_expansion_is_a_distribution_over_questions():
    assert near_stats.gain(ROWS).values.tolist() == [[0, 2, 2 / 3], [3, 1, 1.0]]


def test_near_copies_are_accepted_by_bucket_of_jaccard_with_n_and_wilson_interval():
    table = near_stats.acceptance(ROWS)
    assert table["jaccard"].tolist() == ["[0.7, 0.75)", "[0.75, 0.8)", "[0.8, 0.85)", "[0.85, 0.9)", "[0.9, 0.95)", "[0.95, 1]"]
    assert table["judged"].tolist() == [2, 0, 1, 0, 0, 1] and table["accepted"].tolist() == [1, 0, 1, 0, 0, 0]
    assert table["share"].isna().tolist() == [False, True, False, True, True, False]
    for row in table[table["judged"] > 0].itertuples():
        assert (row.low, row.high) == pytest.approx(wilson(row.accepted, row.judged))


def test_a_copy_below_the_usual_jaccard_has_a_bucket_too():
    table = near_stats.acceptance([question("1", [document("a", [1])], [{"docid": "b", "jaccard": 0.65, "hops": [1], "round": 1}])])
    assert table["jaccard"].iloc[0] == "[0.65, 0.7)" and table["judged"].tolist() == [1, 0, 0, 0, 0, 0, 0]


def test_rounds_and_classes_are_counted():
    assert near_stats.rounds(ROWS).values.tolist() == [[0, 2], [1, 0], [2, 1]]
    assert near_stats.classes(ROWS).values.tolist() == [[2, 2], [7, 1]]


@pytest.mark.parametrize("rows", [ROWS, [question("1", [document("a", [1])])]], ids=["several questions", "one question without copies"])
def test_every_figure_is_as_wide_as_asked_and_holds_no_type_3_font(tmp_path, rows):
    tables = {name: made(rows) for name, made in {**stats.TABLES, **near_stats.TABLES}.items()}
    assert tables.keys() == charts.CHARTS.keys()
    for width in (3.25, 5.5) if rows is ROWS else (5.5,):
        for name, table in tables.items():
            figure = charts.draw(name, table, width)
            figures.save(figure, tmp_path, name, png=False)
            plt.close(figure)
            page = (tmp_path / f"{name}.pdf").read_bytes()
            left, bottom, right, top = map(float, re.search(rb"/MediaBox \[ ([\d. ]+) \]", page)[1].split())
            assert abs((right - left) / 72 - width) < 0.001 and abs((top - bottom) / 72 - figure.get_figheight()) < 0.001
            assert b"/Type3" not in page and b"/FontFile2" in page
    assert not list(tmp_path.glob("*.png"))


def step(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "lib.qrels", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_both_steps_write_csv_and_pdf_and_with_png_the_same_bytes_twice(tmp_path):
    source = tmp_path / "qrels_expanded.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for name, names in (("stats", stats.TABLES), ("near-dup", near_stats.TABLES)):
        written = []
        for out in (tmp_path / f"{name}-1", tmp_path / f"{name}-2"):
            done = step(name, str(source), "--outdir", str(out), "--png", "--figwidth", "3.4")
            assert done.returncode == 0, done.stderr
            written.append({path.name: path.read_bytes() for path in out.iterdir()})
        assert set(written[0]) == {f"{name}.json", *(f"{one}.{kind}" for one in names for kind in ("csv", "pdf", "png"))} and written[0] == written[1]
        sources = {"made from": {source.name: hashlib.sha256(source.read_bytes()).hexdigest()}, "workbooks": ["a" * 64]}
        assert json.loads(written[0][f"{name}.json"]) == sources
    with open(tmp_path / "near-dup-1" / "near_acceptance.csv", newline="") as handle:
        assert [row["share"] for row in csv.DictReader(handle)] == ["0.5", "", "1.0", "", "", "0.0"]


def test_a_file_that_is_not_expanded_and_a_width_that_is_none_are_refused(tmp_path):
    source = tmp_path / "qrels.jsonl"
    source.write_text(json.dumps({name: value for name, value in ROWS[0].items() if name != "near"}) + "\n")
    with pytest.raises(Refused, match="qrels.jsonl line 1 has no near; give the file that expand export wrote"):
        stats.write(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert step("stats", str(source), "--figwidth", "nan").returncode == 2
    assert step("stats", str(tmp_path / "absent.jsonl")).stderr.strip() == f"lib.qrels: {tmp_path}/absent.jsonl is not there; run expand export first"


def test_a_number_that_does_not_add_up_stops_the_figure():
    with pytest.raises(AssertionError, match="question 1 has 9 entries, and fewer votes"):
        stats.votes([question("1", []) | {"pairs": 9}])
    with pytest.raises(ValueError, match="not finite"):
        near_stats.acceptance([question("1", [], [{"docid": "b", "jaccard": np.nan, "hops": [1], "round": 1}])])
