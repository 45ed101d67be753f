"""The combined label of two judges and a third, and the overlap of judge and model, on a run folder written by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import contracts
from lib.stats import combination, overlap
from lib.stats.agreement import labels_table, measures_table
from lib.stats.combination import Replies, combine

GAP = "timeout"


def write(folder, name, *parts):
    lines = [contracts.write(name, contracts.table(name, rows), folder / f"part-{i:05d}{'-00' if name == 'scores' else ''}.parquet") for i, rows in enumerate(parts)]
    contracts.finish(folder, lines)


def answer(query, doc, stage, said):
    """A row of answers; `said` is a label, None for unevaluable, or a class."""
    word = said if isinstance(said, str) else "unevaluable" if said is None else "ok"
    return {"query": query, "doc": doc, "version": "v1", "stage": stage, "round": 1, "reason": "r", "rank": 6, "key": "k", "task_id": "t", "answer": word, "max_chars": 9,
            "score": None if isinstance(said, str) else said, "query_evaluable": None if isinstance(said, str) else said is not None, "prompt_sha256": None, "model": None}


def answers(run, name, *parts):
    columns = contracts.TABLES["answers"].names
    write(run / "answers" / name, "answers", *[[{c: row[c] for c in columns} for row in rows] for rows in parts])


# pair (query, document): first, second and third judge
SAMPLE = [
    ((0, 1), 1, 1, "never sent"), ((0, 2), 0, 1, "never sent"), ((0, 3), 1, 0, "never sent"), ((0, 4), 0, 2, 1), ((1, 1), 2, 1, 2), ((1, 2), 1, 2, None),
    ((1, 3), 2, 0, GAP), ((1, 4), 1, None, 1), ((1, 5), 1, GAP, "never sent"), ((1, 6), 2, 2, "never sent"),
]  # fmt: skip


@pytest.fixture
def judged(tmp_path):
    by_part = [[row for row in SAMPLE if row[0][0] == query] for query in (0, 1)]
    answers(tmp_path, "v1", *[[answer(*pair, "pick", first) for pair, first, _, _ in rows] + [answer(rows[0][0][0], 9, "dense_1_5", 0)] for rows in by_part])
    answers(tmp_path, "second", *[[answer(*pair, "pick", second) for pair, _, second, _ in rows] for rows in by_part])
    answers(tmp_path, "arbiter", *[[answer(*pair, "pick", third) for pair, _, _, third in rows if third != "never sent"] for rows in by_part])
    return tmp_path


def test_the_combined_label_and_its_reason_of_each_pair(judged):
    sample = combination.load(judged)
    found = combine(sample.first, sample.second, sample.third)
    nan = float("nan")
    assert found.label.tolist() == pytest.approx([1, 0, 0, 1, 2, nan, nan, 1, nan, 2], nan_ok=True)
    assert found.reason.tolist() == [
        "equal", "0 against 1", "0 against 1", "third judge", "third judge", "third judge", combination.WAITING_THIRD, "third judge", combination.WAITING, "equal",
    ]  # fmt: skip
    assert combine(sample.first, sample.second, sample.third, "lenient").label[1:3].tolist() == [1, 1]


def test_every_column_of_the_second_judge_has_its_own_n(judged):
    table = combination.second_judge_table(combination.load(judged)).set_index("judge")
    assert table["pairs"].tolist() == [10, 8, 7] and (table["pairs"] + table["unevaluable"] + table["no reply"] == 10).all()
    assert table.loc["LLM judge alone", ["0", "1", "2"]].tolist() == [0.2, 0.5, 0.3]
    assert table.loc["second judge", ["0", "1", "2"]].tolist() == [2 / 8, 3 / 8, 3 / 8]
    assert table.loc["combined", ["0", "1", "2"]].tolist() == pytest.approx([2 / 7, 3 / 7, 2 / 7])
    assert table.loc["combined", "at least partially relevant"] == pytest.approx(5 / 7)
    assert table.loc["combined", ["unevaluable", "no reply"]].tolist() == [1, 2]


def test_the_facts_of_the_combination_name_what_they_are_of(judged):
    table = combination.combination_table(combination.load(judged))
    assert table[["fact", "pairs", "of"]].to_numpy().tolist() == [
        ["valid replies of the second judge", 9, 10], ["two labels", 8, 9], ["equal labels", 2, 8], ["0 against 1", 2, 8], ["1 against 2", 2, 8],
        ["0 against 2", 2, 8], ["sent to the third judge", 5, 9], ["valid replies of the third judge", 4, 5], ["combined label", 7, 10],
    ]  # fmt: skip
    assert combination.judges(combination.load(judged)).unevaluable == 1


CODES = st.sampled_from([0, 1, 2, None, GAP])


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), CODES, CODES), max_size=30))
def test_the_combined_label_is_the_policy_in_words(rows):
    def plain(first, second, third):
        if second == GAP:
            return "waits"
        if first == second:
            return first
        if {first, second} == {0, 1}:
            return 0
        return "waits" if third == GAP else third

    replies = [Replies(np.array([np.nan if v in (None, GAP) else float(v) for v in values]), np.array([v != GAP for v in values], bool))
               for values in ([row[i] for row in rows] for i in range(3))]
    found = combine(*replies)
    for row, label, reason in zip(rows, found.label, found.reason, strict=True):
        expected = plain(*row)
        assert (label == expected) if expected in (0, 1, 2) and not isinstance(expected, str) and expected is not None else np.isnan(label)
        assert (expected == "waits") == (reason in (combination.WAITING, combination.WAITING_THIRD))


def test_an_empty_sample_has_dashes_and_no_division(tmp_path):
    for name in ("v1", "second", "arbiter"):
        answers(tmp_path, name, [])
    sample = combination.load(tmp_path)
    assert combination.second_judge_table(sample)["0"].isna().all() and combination.combination_table(sample)["share"].isna().all()


def test_what_cannot_be_combined_is_refused(judged):
    sample = combination.load(judged)
    with pytest.raises(ValueError, match="the policy is 'mean'; it is one of strict, lenient"):
        combine(sample.first, sample.second, sample.third, "mean")
    with pytest.raises(ValueError, match="1 of 10 pairs have no valid reply of the first judge"):
        combine(Replies(sample.first.label, np.arange(10) != 3), sample.second, sample.third)
    answers(judged, "arbiter", [], [])
    with pytest.raises(ValueError, match="5 of 10 differ; route the arbiter again"):
        combination.load(judged)


QUERIES = ["Seen query", "other", "seen  QUERY", "third"]  # 0 and 2 are one text to the split
DOCUMENTS = ["d0", "d1", "d2", "d3", "d1", "D1", "d6", "d7", "d8"]  # 1 and 4 are one text, 5 is another


@pytest.fixture
def scored(tmp_path):
    run = tmp_path
    write(run / "documents", "documents", [{"docid": f"a{i}", "text": text, "n_chars": 2, "n_tokens": 1, "removed": False} for i, text in enumerate(DOCUMENTS)])
    rows = [{"qid": f"q{i}", "text": text, "source_docid": None, "source_doc": None, "keep": True} for i, text in enumerate(QUERIES)]
    write(run / "queries", "queries", rows[:2], rows[2:])
    answers(run, "source_page", [answer(0, 7, "source_page", 2), answer(1, 8, "source_page", 2)], [answer(2, 6, "source_page", 1)])
    answers(run, "v1",
            [answer(0, 1, "pick", 1), answer(0, 2, "pick", 0), answer(0, 3, "dense_1_5", 1), answer(0, 7, "pick", "withdrawn"), answer(1, 1, "pick", 2), answer(1, 1, "pick", 1), answer(1, 2, "pick", GAP), answer(1, 3, "long", None)],
            [answer(2, 4, "pick", 1), answer(2, 5, "pick", 2), answer(2, 0, "pick", 0), answer(3, 1, "long", 0)])
    answers(run, "v2_gap", [answer(1, 1, "pick", 0), answer(1, 2, "pick", 0)], [])  # of (1, 1) the first answer of the first set counts
    answers(run, "v2", [answer(1, 4, "trial", 0), answer(1, 6, "new_long_1_5", 1)], [])
    v1 = [[(0, 1, 1.2), (0, 2, 0.2), (0, 7, 1.4), (1, 1, 1.9), (1, 2, 0.6), (1, 3, 1.0), (1, 5, 0.1)], [(2, 4, 1.0), (2, 5, 1.0), (2, 0, 0.4), (3, 1, 2.0)]]
    for name, parts in (("v1", v1), ("v2", [[(1, 4, 0.3), (1, 7, 0.5)], []])):
        write(run / "scores" / name, "scores", *[[{"query": q, "doc": d, "score": s, "checkpoint": "larger/1", "gate": "g"} for q, d, s in rows] for rows in parts])
    write(run / "examples", "examples", [{"query": 0, "doc": 1, "label": 1, "held_out": False}, {"query": 1, "doc": 1, "label": 2, "held_out": True}], [])
    return run


def test_the_overlap_has_four_parts_and_counts_what_it_leaves_out(scored):
    found = overlap.parts(scored, overlap.seen(scored))
    table = overlap.overlap_table(found).set_index("part")
    # the training pair (0, 1); (2, 4) is its two texts again; (2, 5) has the query's text and another document
    assert table["pairs"].to_dict() == {"picks": 7, "long": 2, "source pages": 1, "trial": 1, "all": 11}
    assert table.loc["picks", ["null", "training pairs", "equal texts", "checked"]].tolist() == [0, 1, 1, 5]
    assert table.loc["long", ["null", "checked"]].tolist() == [1, 1]
    assert (table[["null", "training pairs", "equal texts", "checked"]].sum(axis=1) == table["pairs"]).all()
    # picks that are checked: (0, 2) 0-0, (1, 1) 2-2, (1, 2) 0-1, (2, 5) 2-1, (2, 0) 0-0; those of query 1 only are unseen
    assert table.loc["picks", "exact"] == 3 / 5 and table.loc["picks", "checked, no training query"] == 2
    assert table.loc["picks", "exact, no training query"] == 1 / 2
    assert table.loc["source pages", ["checked", "exact"]].tolist() == [1, 0.0]  # (0, 7): 2 against 1
    assert table.loc["source pages", "checked, no training query"] == 0 and pd.isna(table.loc["source pages", "exact, no training query"])
    assert table.loc["long", "0 against 2"] == 1.0 and table.loc["trial", "exact"] == 1.0
    assert table.loc["all", "checked"] == 8 and table.loc["all", "exact"] == 4 / 8
    # rows are the LLM's labels, columns the model's; null ones of queries that were seen in training are not among the others
    assert found["picks"].checked[overlap.CHECKED].table.tolist() == [[2, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert [found["long"].checked[name].unevaluable for name in (overlap.CHECKED, overlap.UNSEEN)] == [1, 1]
    assert overlap.together(found.values()).checked[overlap.UNSEEN].unevaluable == 1


def test_the_measures_of_the_overlap_are_tables_that_say_what_is_undefined(scored):
    found = overlap.parts(scored, overlap.seen(scored))
    named = {(part, name): one for part, of in found.items() for name, one in of.checked.items()}
    table = measures_table(named, ["part", "queries"])
    assert list(table.columns[:4]) == ["part", "queries", "n", "unevaluable"] and len(table) == 8
    assert table.loc[table["n"] == 0, "undefined"].tolist() == ["there are no pairs"] and "0 against 2" in table
    assert not table["exact"].isna().all() and json.dumps(table.iloc[-1]["undefined"]).startswith('"both give all pairs (n = 1) the one label 0')
    full = labels_table(named, ["part", "queries"])
    assert len(full) == 24 and full["n"].sum() == table["n"].sum() and (full[["0", "1", "2"]].sum(axis=1) == full["n"]).all()


def test_a_pair_of_both_that_belongs_to_no_part_is_refused(scored):
    lines = contracts.parts(scored / "scores" / "v2")
    more = [{"query": 0, "doc": 3, "score": 1.0, "checkpoint": "larger/1", "gate": "g"}]
    contracts.finish(scored / "scores" / "v2", [contracts.write("scores", contracts.table("scores", more), scored / "scores" / "v2" / lines[0]["part"]), lines[1]])
    with pytest.raises(ValueError, match="query 0, document 3 is scored by both and its stage dense_1_5 is no part of the overlap"):
        overlap.parts(scored, overlap.seen(scored))
