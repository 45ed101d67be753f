"""Routing v2, the gaps of v1, the second judge and the arbiter, beside slow references on sets."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_script import intent, table

from lib import contracts, engine
from lib.draw import unit_hash
from lib.routing import RoutingError, route_arbiter, route_gaps, route_second, route_v2, stages
from lib.routing.agreement import to_arbiter, training_candidates
from lib.routing.gaps import asked
from lib.routing.v2 import new_candidates, trial_queries

CASE_13 = json.loads((Path(__file__).parent / "cases/13-cut-first-then-exclude-source-page.json").read_text())


def filled(*docs, places=20):
    """int32 lists of 20 places, -1 after the last."""
    return np.array([list(one) + [-1] * (places - len(one)) for one in docs], dtype=np.int32)


def test_case_13_the_list_is_cut_first_and_places_keep_their_numbers():
    given, right = CASE_13["input"], CASE_13["right_answer"]
    number = {name: row for row, name in enumerate(given["fused"])}
    fused, judged = filled([number[name] for name in given["fused"]]), filled([number[name] for name in given["already_judged"]])
    new = new_candidates(fused, judged, np.array([number[given["source_page"]]]), cut=given["cut"])[0]
    found = {given["fused"][place]: place + 1 for place in np.flatnonzero(new)}
    assert list(found) == right["new_candidates"] and found == right["positions"]


def slow_v2(query, fused, dense, long, source, trial):
    """(query, doc, judge, stage) of every row, by sets and loops."""
    rows = set()
    for q, order, known, own, tried in zip(query, fused.tolist(), dense.tolist(), source.tolist(), trial, strict=True):
        seen = set()
        for position, doc in enumerate(order, 1):
            if doc == -1 or doc in seen:
                continue
            seen.add(doc)
            if doc in known or doc == own:
                continue
            if doc not in long:
                rows.add((q, doc, "student", "new_short"))
            elif position <= 5:
                rows.add((q, doc, "llm", "new_long_1_5"))
            else:
                rows |= {(q, doc, "student", "new_long_6_20")} | ({(q, doc, "llm", "trial")} if tried else set())
    return sorted(rows)


def v2(query, fused, dense, long, source, trial):
    rank = np.where(fused % 2 == 0, 0, 21).astype(np.int16)
    return route_v2(query, fused, dense, rank, np.isin(fused, list(long)), source, trial, long_chars=99)


LIST = st.lists(st.integers(0, 30), max_size=20)
QUERY = st.tuples(LIST, LIST, st.integers(-1, 30), st.booleans())


@given(st.lists(QUERY, min_size=1, max_size=4), st.sets(st.integers(0, 30)))
@example([([], [], -1, True)], set())
@example([(list(range(20)), list(range(10, 30)), 3, True)], set(range(31)))  # all long, the source page among the fused
@example([([7, 9, 7, 5], [9, 9], 5, True), ([1], [1], 1, False)], {7})  # repeated documents in both lists
@example([([0] * 20, [], 0, False)], {0})
def test_routing_v2_agrees_with_sets(queries, long):
    fused, dense = (filled(*(one[at] for one in queries)) for at in (0, 1))
    source, trial = np.array([one[2] for one in queries], np.int32), np.array([one[3] for one in queries])
    query = np.arange(5, 5 + len(queries), dtype=np.int32)
    rows = v2(query, fused, dense, long, source, trial).to_pylist()
    assert sorted((r["query"], r["doc"], r["judge"], r["stage"]) for r in rows) == slow_v2(query, fused, dense, long, source, trial)
    for row in rows:
        assert (row["version"], row["round"], row["withdrawn"], row["rank"]) == ("v2", 1, False, 0 if row["doc"] % 2 == 0 else 21)
        assert row["max_chars"] == (99 if row["judge"] == "llm" else None) and row["reason"].startswith("new candidate")


def test_trial_queries_are_kept_ones_and_a_smaller_trial_is_a_part_of_a_larger():
    keep = np.arange(60) % 4 != 0
    ten, twenty = trial_queries(keep, 10, 0), trial_queries(keep, 20, 0)
    assert keep[twenty].all() and set(ten) <= set(twenty) and len(trial_queries(keep, 99, 0)) == 45
    assert len(trial_queries(keep, 0, 0)) == 0
    with pytest.raises(RoutingError, match="trial_queries is -1; it is at least 0"):
        trial_queries(keep, -1, 0)


SCORES = {"ok 0": 0, "ok 1": 1, "ok 2": 2}


def answer(sent: dict, said: str) -> dict:
    """The row of `answers` to an intent: 'ok 2', 'unevaluable', 'withdrawn' or the class of a gap."""
    valid = said in SCORES or said == "unevaluable"
    return {name: sent[name] for name in ("query", "doc", "version", "stage", "round", "reason", "rank")} | {
        "key": f"{sent['version']} {sent['query']} {sent['doc']}", "task_id": f"{sent['query']} {sent['doc']}", "answer": "ok" if said in SCORES else said,
        "score": SCORES.get(said), "query_evaluable": said in SCORES if valid else None, "prompt_sha256": "p" if valid else None, "model": "m" if valid else None}


def part(rows: list[tuple[dict, str]]):
    sent = [row for row, _ in rows]
    return asked(contracts.table("intents", sent), contracts.table("answers", [answer(row, said) for row, said in rows if row["judge"] == "llm"]))


def sent(query, doc, stage, **changed) -> dict:
    return intent(query, doc, stage=stage, withdrawn=changed.pop("withdrawn", False), max_chars=100 if stage == "long" else 30, **changed)


def test_a_gap_goes_again_in_its_stage_with_its_characters_and_says_why():
    v1 = part([
        (sent(0, 1, "dense_1_5", rank=3), "timeout"), (sent(0, 2, "dense_1_5"), "unevaluable"), (sent(0, 3, "pick", round=2), "refusal"),
        (sent(0, 3, "short", judge="student"), ""), (sent(0, 4, "long"), "budget stop"), (sent(0, 5, "pick", withdrawn=True), "withdrawn"), (sent(0, 6, "pick"), "ok 0"),
    ])  # fmt: skip
    pages = part([(sent(0, 5, "source_page"), "timeout"), (sent(1, 8, "source_page"), "timeout"), (sent(2, 8, "source_page"), "ok 2")])
    rows = route_gaps(v1, pages, np.arange(3, dtype=np.int32), filled([1, 2, 3, 4, 5, 6], [], [8]), filled([], [9], [])).to_pylist()
    assert [(r["query"], r["doc"], r["stage"], r["max_chars"], r["rank"]) for r in rows] == [
        (0, 1, "dense_1_5", 30, 3), (0, 3, "pick", 30, 1), (0, 4, "long", 100, 1), (0, 5, "source_page", 30, 1)]
    assert {(r["version"], r["round"], r["judge"], r["withdrawn"]) for r in rows} == {("v2 gap", 1, "llm", False)}
    assert rows[0]["reason"] == "no valid reply in v1, the last call ended in: timeout"


def test_a_failed_source_page_is_a_gap_where_it_stands_in_a_top_20_of_its_own_query():
    pages = part([(sent(q, 7, "source_page"), "timeout") for q in range(4)])
    dense, fused = filled([7], [], [], []), filled([], [3, 7], [], [])  # query 3 is not kept: its lists are empty
    rows = route_gaps(part([]), pages, np.arange(4, dtype=np.int32), dense, fused)
    assert rows["query"].to_pylist() == [0, 1]


def test_answers_to_other_intents_are_refused():
    rows = [sent(0, 1, "pick"), sent(0, 2, "pick")]
    told = contracts.table("answers", [answer(row, "ok 1") for row in rows[::-1]])
    with pytest.raises(RoutingError, match=r"the answers are not of these 2 intents \(their doc differs\); judge again"):
        asked(contracts.table("intents", rows), told)
    with pytest.raises(RoutingError, match="not of these 2 intents"):
        asked(contracts.table("intents", rows), told.slice(1))


def test_training_candidates_are_picks_and_long_ones_with_a_label():
    rows = [("pick", "ok 0"), ("long", "ok 2"), ("dense_1_5", "ok 1"), ("pick", "unevaluable"), ("long", "timeout"), ("pick", "withdrawn")]
    told = part([(sent(0, doc, stage), said) for doc, (stage, said) in enumerate(rows)]).told
    assert training_candidates(told).tolist() == [True, True, False, False, False, False]


REPLIES = ["ok 0", "ok 1", "ok 2", "unevaluable", "timeout"]


def test_the_arbiter_gets_every_disagreement_but_0_against_1():
    pairs = [(first, second) for first in REPLIES[:3] for second in REPLIES]
    v1 = part([(sent(0, doc, "long" if doc % 2 else "pick"), first) for doc, (first, _) in enumerate(pairs)])
    second = route_second(v1, training_candidates(v1.told))
    assert second["doc"].to_pylist() == list(range(len(pairs)))
    told = contracts.table("answers", [answer(row, said) for row, (_, said) in zip(second.to_pylist(), pairs, strict=True)])
    rows = route_arbiter(v1, told).to_pylist()
    assert {pairs[row["doc"]] for row in rows} == {
        ("ok 0", "ok 2"), ("ok 1", "ok 2"), ("ok 2", "ok 0"), ("ok 2", "ok 1"), ("ok 0", "unevaluable"), ("ok 1", "unevaluable"), ("ok 2", "unevaluable")}
    for row in rows:
        assert (row["version"], row["round"], row["judge"]) == ("arbiter", 1, "llm")
        assert (row["stage"], row["max_chars"]) == (("long", 100) if row["doc"] % 2 else ("pick", 30))
    assert rows[0]["reason"] == "one judge said 0, the second 2" and rows[1]["reason"] == "one judge said 0, the second unevaluable"


def test_two_unevaluable_replies_agree():
    nan = np.nan
    assert to_arbiter(np.array([nan, nan, 0, 1, 2, 0]), np.array([nan, 0, nan, 0, 2, 2])).tolist() == [False, True, True, False, False, True]


@pytest.fixture
def run(tmp_path):
    """Three query parts with 8 candidates each, of which every third has no label."""
    table(tmp_path, "queries", "queries", [[{"qid": f"q{q}", "text": "?", "source_docid": None, "source_doc": None, "keep": True}] for q in range(3)])
    rows = [[(sent(q, doc, "pick"), "timeout" if doc % 3 == 0 else "ok 1") for doc in range(8)] for q in range(3)]
    for name, at in (("intents", 0), ("answers", 1)):
        table(tmp_path, name, f"{name}/v1", [[row if at == 0 else answer(row, said) for row, said in part] for part in rows])
    return tmp_path


def drawn(run, n, seed=0):
    engine.map(stages.second, {"run": str(run), "second_pairs": n, "seed": seed})
    return [(row["query"], row["doc"]) for row in contracts.read("intents", run / "intents/second").to_pylist()]


def test_the_second_judge_gets_the_pairs_of_the_lowest_hashes_over_all_parts(run):
    candidates = [(q, doc) for q in range(3) for doc in range(8) if doc % 3]  # the last of a part too
    order = sorted(candidates, key=lambda pair: unit_hash(3, *(np.array([n], np.int32) for n in pair))[0])
    assert drawn(run, 0) == candidates and drawn(run, 99) == candidates
    assert drawn(run, 5) == sorted(order[:5])
    assert set(drawn(run, 5)) < set(drawn(run, 8)) and drawn(run, 5, seed=1) != drawn(run, 5)
    with pytest.raises(RoutingError, match="second_pairs is -1"):
        drawn(run, -1)


def test_missing_answers_are_told_with_the_notebook_that_writes_them(run):
    drawn(run, 5)
    for stage, name, notebook in ((stages.arbiter, "second", "11-agreement"), (stages.v2_gap, "source_page", "06-judge")):
        with pytest.raises(RoutingError, match=f"the answers to {name} are missing: .*answers/{name} is not finished .*, which is {notebook}"):
            engine.map(stage, {"run": str(run)})


def test_what_is_routed_to_other_judges_is_of_the_set_s_version(run):
    drawn(run, 0)
    told = [[answer(row, "ok 0" if row["doc"] == 1 else "ok 2") for row in contracts.read_part("intents", run / f"intents/second/part-0000{q}.parquet").to_pylist()] for q in range(3)]
    table(run, "answers", "answers/second", told)
    engine.map(stages.arbiter, {"run": str(run)})
    rows = contracts.read("intents", run / "intents/arbiter")
    assert set(rows["version"].to_pylist()) == {"arbiter"} and rows.num_rows == 3 * 4  # 1 against 2, of docs 2, 4, 5, 7
    assert rows.schema.equals(contracts.TABLES["intents"]) and isinstance(rows, pa.Table)


def places(docs, width, **more) -> dict:
    return {"doc": docs + [-1] * (width - len(docs))} | {name: [value] * width for name, value in more.items()}


@pytest.fixture
def listed(tmp_path):
    """Two parts of two queries; the second query is not kept though both lists name documents for it. Documents from 30 on are long."""
    run = tmp_path
    documents = [{"docid": f"d{i}", "text": "t", "n_chars": 1, "n_tokens": 500 if i >= 30 else 5, "removed": False} for i in range(40)]
    table(run, "documents", "documents", [documents[:9], documents[9:]])
    queries = [{"qid": f"q{q}", "text": "?", "source_docid": "d8", "source_doc": 8, "keep": q != 1} for q in range(4)]
    table(run, "queries", "queries", [queries[:2], queries[2:]])
    dense, fused = [1, 2, 31], [1, 8, 3, 30, 4, 32, 5]
    table(run, "hits", "hits/dense", [[places(dense, 100, score=1.0)] * 2] * 2)
    table(run, "fused", "fused", [[places(fused, 20, score=1.0, best_rank=1, dense_rank=7)] * 2] * 2)
    return run


def test_v2_is_routed_part_by_part_for_kept_queries_by_the_lengths_of_the_fused_documents(listed):
    config = {"run": str(listed), "long_tokens": 400, "long_chars": 99, "trial_queries": 2, "seed": 1}
    lines = engine.map(stages.v2, config)
    rows = contracts.read("intents", listed / "intents/v2").to_pylist()
    tried = trial_queries(np.array([True, False, True, True]), 2, 1 + 2)
    expected = [(q, *row) for q in (0, 2, 3) for row in (
        (3, "student", "new_short"), (4, "student", "new_short"), (5, "student", "new_short"), (30, "llm", "new_long_1_5"), (32, "student", "new_long_6_20"))]
    expected += [(q, 32, "llm", "trial") for q in tried.tolist()]
    assert sorted((r["query"], r["doc"], r["judge"], r["stage"]) for r in rows) == sorted(expected)
    assert {r["rank"] for r in rows} == {7} and {r["max_chars"] for r in rows if r["judge"] == "llm"} == {99}
    assert sum(line["trial_queries"] for line in lines) == 2 and max(tried) >= 2  # one of the second part


def test_lengths_of_another_import_are_read_again(listed):
    config = {"run": str(listed), "long_tokens": 400, "long_chars": 99, "trial_queries": 0, "seed": 0}
    engine.map(stages.v2, config)
    kept = contracts.read("documents", listed / "documents").to_pylist()
    table(listed, "documents", "documents", [[row | {"n_tokens": 5} for row in kept]])
    engine.map(stages.v2, config)
    assert set(contracts.read("intents", listed / "intents/v2")["stage"].to_pylist()) == {"new_short"}
