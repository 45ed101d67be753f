"""Which pairs the relevance model learns from, and which are held out."""

import hashlib

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_script import table
from small_training import answer, answers, make

from lib import corpus
from lib.corpus import imported, trec
from lib.corpus.lines import Place
from lib.student import examples

SPELLINGS = st.sampled_from(["x", "X", " x ", "x\ty", "x y", "X  Y\n", "straße", "STRASSE", "z", ""])


def held_out(texts: dict[int, str], n: int) -> set[int]:
    return examples.held_out(np.array(list(texts), int), examples.hashes(texts.values()), n)


@given(st.dictionaries(st.integers(0, 40), SPELLINGS), st.integers(0, 12))
@example({0: "a b", 1: "A\u00a0 B", 2: "c"}, 2)
@example({0: "a", 1: "a", 2: "a"}, 2)  # no text fits: nothing is held out
def test_equal_queries_never_stand_on_both_sides(texts, n):
    held = held_out(texts, n)
    sides = {True: set(), False: set()}
    for query, text in texts.items():
        sides[query in held].add(examples.normalised(text))
    assert sides[True].isdisjoint(sides[False])
    assert held <= set(texts) and len(held) <= n
    groups, expected = {}, set()
    for query, text in texts.items():
        groups.setdefault(hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest(), set()).add(query)
    for _, queries in sorted(groups.items()):
        expected |= queries if len(expected) + len(queries) <= n else set()
    assert held == expected
    left = [sum(examples.normalised(text) == one for text in texts.values()) for one in sides[False]]
    assert all(len(held) + size > n for size in left)  # nothing more would have fitted


def test_a_smaller_held_out_set_is_a_part_of_a_larger_one_and_row_numbers_do_not_matter():
    texts = {i: f"query {i}" for i in range(50)}
    small, large = held_out(texts, 5), held_out(texts, 20)
    assert small < large and len(large) == 20
    shifted = held_out({i + 7: text for i, text in texts.items()}, 5)
    assert {i - 7 for i in shifted} == small


@pytest.fixture
def run(tmp_path):
    return make(tmp_path / "run", texts=["What is x?", "y", " what IS\tx?", "z", "u", "v", "w", "not labelled"], pairs=0)


def test_valid_labels_of_picks_and_long_documents_are_the_examples_and_their_parts_sum_up(run):
    rows = [answer(query, doc, doc % 3, stage) for query in range(7) for doc, stage in ((9, "pick"), (2, "long"), (4, "dense_1_5"))]
    rows += [answer(0, 11, None, "pick", "unevaluable"), answer(1, 11, None, "long", "timeout"), answer(2, 11, None, "pick", "withdrawn")]
    answers(run, rows)
    counts = examples.write(run, held_queries=3)
    found = examples.read(run)
    assert [tuple(row.values())[:3] for row in found.to_pylist()] == [(query, doc, doc % 3) for query in range(7) for doc in (2, 9)]
    held = {row["query"] for row in found.to_pylist() if row["held_out"]}
    assert len(held) == 3 and ({0, 2} <= held or {0, 2}.isdisjoint(held))
    assert counts == {"training pairs": 8, "training queries": 4, "held-out pairs": 6, "held-out queries": 3} == examples.counts(run)
    assert examples.read(run, True).num_rows == 6 and set(examples.read(run, False)["query"].to_pylist()).isdisjoint(held)
    assert sum(counts[f"{side} pairs"] for side in ("training", "held-out")) == found.num_rows == pc.sum(pc.is_valid(found["label"])).as_py()


def test_imported_judgments_are_examples_too(run):
    lines = [("q3", "d1", 2), ("q0", "d7", 0), ("q0", "d1", 1), ("q6", "d29", 0)]
    imported.write_qrels(run, [trec.Judged(Place("f", i), *line) for i, line in enumerate(lines)], "planted")
    counts = examples.write(run, "qrels/planted", held_queries=1)
    rows = [(row["query"], row["doc"], row["label"]) for row in examples.read(run).to_pylist()]
    assert rows == [(0, 1, 1), (0, 7, 0), (3, 1, 2), (6, 29, 0)]
    assert counts["held-out queries"] == 1 and counts["training queries"] == 2


def labels(run, *given):
    """Judgments as a folder of `qrels/own`: of query, document and label."""
    common = dict.fromkeys(("llm_label", "student_score", "prompt_sha256")) | {"judge": "j", "version": "v", "stage": "s", "round": 1, "model": "m"}
    found = [common | {"qid": f"q{q}", "docid": f"d{d}", "label": label, "query_evaluable": label is not None} for q, d, label in given]
    parts = [[row for row in found if (int(row["qid"][1:]) < part.rows) == (part.first == 0)] for part in corpus.parts(run, "queries")]
    table(run, "labels", "qrels/own", parts)


def test_judgments_without_a_label_are_no_examples_and_a_label_of_another_scale_is_refused(run):
    labels(run, (0, 1, 1), (1, 1, None), (6, 2, 0))
    assert examples.write(run, "qrels/own", held_queries=1)["training pairs"] == 1
    assert [(row["query"], row["label"]) for row in examples.read(run).to_pylist()] == [(0, 1), (6, 0)]
    labels(run, (0, 1, 1), (6, 2, 3))
    with pytest.raises(ValueError, match=r"qrels/own/part-00001.parquet has the label 3 \(1 such rows\), and the model learns 0, 1 and 2"):
        examples.write(run, "qrels/own", held_queries=1)


def test_another_number_of_held_queries_or_other_answers_make_other_examples(run):
    answers(run, [answer(query, 1, 1) for query in range(7)])
    assert examples.write(run, held_queries=1)["held-out pairs"] == 1
    assert examples.write(run, held_queries=3)["held-out pairs"] == 3
    answers(run, [answer(query, doc, 1) for query in range(7) for doc in (1, 2)])
    assert examples.write(run, held_queries=3)["held-out pairs"] == 6
    assert len(corpus.parts(run, "queries")) == 2


@pytest.mark.parametrize("held", [0, 7, 8])
def test_there_must_be_queries_on_both_sides(run, held):
    answers(run, [answer(query, 1, 1) for query in range(7)])
    with pytest.raises(ValueError, match=f"answers/v1 has 7 queries with pairs to learn from and held_queries is {held}; hold out"):
        examples.write(run, held_queries=held)


def test_equal_texts_that_leave_nothing_to_hold_out_are_told(tmp_path):
    run = make(tmp_path / "run", texts=["a", "A", " a"])
    with pytest.raises(ValueError, match="held_queries is 2 and none can be held out: more queries share each text"):
        examples.write(run, held_queries=2)


@pytest.mark.parametrize("source", ["labels", "qrels/", "qrels/a/b", "../answers"])
def test_labels_from_nowhere_are_refused(run, source):
    with pytest.raises(ValueError, match="labels_from is .*; it is answers, or qrels/NAME"):
        examples.write(run, source, 1)
