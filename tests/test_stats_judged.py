"""Who judged, label mixes and new candidates on a run of two query parts written by hand."""

import numpy as np
import pandas as pd
import pytest
from judge_script import intent, table

from lib import contracts
from lib.stats import candidates, judged, labels


@pytest.fixture
def run(tmp_path):
    """Query 0 and 1 in the first part, 2 (kept) and 3 (not kept) in the second."""
    rows = [{"qid": f"q{q}", "text": "?", "source_docid": None, "source_doc": None, "keep": q != 3} for q in range(4)]
    table(tmp_path, "queries", "queries", [rows[:2], rows[2:]])
    lists = {0: [9, 8, 7, 6, 5, 4], 1: [4, 5], 2: [1, 2, 3, 4, 5, 6, 7], 3: []}
    empty = {"score": [0.0] * 20, "best_rank": [0] * 20, "dense_rank": [0] * 20}
    fused = [{"doc": docs + [-1] * (20 - len(docs))} | empty for docs in lists.values()]
    table(tmp_path, "fused", "fused", [fused[:2], fused[2:]])

    def sent(query, doc, stage, rank=0):
        return intent(query, doc, "v2", stage=stage, rank=rank, judge="llm" if stage in ("new_long_1_5", "trial") else "student", max_chars=None)

    parts = [
        [sent(0, 9, "new_short"), sent(0, 4, "trial"), sent(0, 4, "new_long_6_20"), sent(1, 5, "new_long_1_5", 21)],
        [sent(2, 1, "new_short", 30), sent(2, 6, "new_long_6_20", 99), sent(2, 7, "new_long_6_20")],
    ]
    table(tmp_path, "intents", "intents/v2", parts)
    lines = contracts.parts(tmp_path / "intents/v2")
    contracts.finish(tmp_path / "intents/v2", [line | {"trial_queries": n} for line, n in zip(lines, (2, 1), strict=True)])
    for version, parts in (("v1", [[(0, 3, 0.5), (1, 3, 1.5)], [(2, 3, 0.49)]]), ("v2", [[(0, 4, 1.49), (0, 9, -3.0)], [(2, 1, 9.0), (2, 6, 0.5)]])):
        units = []
        for i, part in enumerate(parts):
            rows = [{"query": q, "doc": d, "score": s, "checkpoint": "larger/1", "gate": "g"} for q, d, s in part]
            units.append(contracts.write("scores", contracts.table("scores", rows), tmp_path / f"scores/{version}/part-{i:05d}-00.parquet"))
        contracts.finish(tmp_path / f"scores/{version}", units)
    return tmp_path


def test_a_trial_pair_is_one_new_candidate_and_shares_are_of_all_of_them(run):
    found = candidates.new_candidates(run)
    assert found["fact"].tolist()[-1] == "of them to the LLM too, in the trial of 3 queries"
    # outside the dense list are (0, 9), (0, 4), which the trial holds too, and (2, 7)
    assert found["pairs"].tolist() == [6, 4, 3, 1, 2, 3, 1]
    assert (found["queries"] == 3).all() and (found["of"] == 6).all()
    assert found["pairs a query"].tolist() == [n / 3 for n in found["pairs"]] and found["share"].tolist() == [n / 6 for n in found["pairs"]]


def test_new_candidates_stand_at_their_fused_position_in_every_part(run):
    found = {name: np.flatnonzero(count).tolist() for name, count in candidates.by_position(run).items()}
    assert found == {"LLM, long at 1-5": [1], "relevance model, short": [0], "relevance model, long": [5, 6]}
    assert {name: count.sum() for name, count in candidates.by_position(run).items()} == {"LLM, long at 1-5": 1, "relevance model, short": 2, "relevance model, long": 3}


def test_the_labelling_mix_cuts_a_score_on_the_cut_upwards(run):
    assert labels.labelling_mix(run).to_numpy().tolist() == [["v1", 3, 1 / 3, 1 / 3, 1 / 3], ["v2", 4, 1 / 4, 2 / 4, 1 / 4]]


def test_the_histogram_of_scores_counts_every_pair_and_ends_hold_what_lies_beyond(run):
    found = labels.score_histogram(run, "v2").set_index("low")["pairs"]
    assert found.sum() == 4 and found.iloc[0] == 1 and found.iloc[-1] == 1 and found[0.5] == 1 and found[1.45] == 1
    assert len(found) == 60 and found.index[0] == -0.5


def row(label, stage="pick", version="v1", judge="llm"):
    return {"qid": "q", "docid": "d", "label": label, "query_evaluable": label is not None, "judge": judge, "version": version, "stage": stage, "round": 1,
            "llm_label": label if judge == "llm" else None, "student_score": None, "prompt_sha256": None, "model": "m"}


def test_the_label_mix_is_of_all_rows_unevaluable_ones_too_and_the_trial_is_its_foot(run):
    parts = [[row(0), row(None), row(2, "trial", "v2"), row(1, "new_short", "v2", "student")],
             [row(0), row(2, "long"), row(2, "long", judge="student"), row(1), row(0, "pick", "v2 gap"), row(2, "source_page")]]
    table(run, "labels", "labels", parts)
    found = labels.label_mix(run)
    assert list(found[["version", "stage", "judge", "rows"]].itertuples(index=False, name=None)) == [
        ("v1", "source_page", "llm", 1), ("v1", "pick", "llm", 4), ("v1", "long", "llm", 1), ("v1", "long", "student", 1), ("v2 gap", "pick", "llm", 1),
        ("v2", "new_short", "student", 1), ("v2", "trial", "llm", 1)]
    assert found.loc[1, ["0", "1", "2", "unevaluable"]].tolist() == [2 / 4, 1 / 4, 0, 1 / 4]
    assert found["unevaluable"].isna().tolist() == [judge == "student" for judge in found["judge"]]


def test_scores_count_for_the_stage_that_sent_their_pair_and_are_missing_before_labelling(run):
    found = judged.student(run, "v2")
    assert found.to_numpy().tolist() == [["v2", "new_long_6_20", 3, 2], ["v2", "new_short", 2, 2]]
    assert judged.student(run, "v2", labelled=False)["judged"].isna().all()


def test_a_pair_that_is_scored_twice_counts_twice_so_that_the_table_shows_it(run):
    again = contracts.table("scores", [{"query": 0, "doc": 9, "score": 0.1, "checkpoint": "larger/1", "gate": "g"}] * 2)
    lines = [*contracts.parts(run / "scores/v2"), contracts.write("scores", again, run / "scores/v2/part-00000-01.parquet")]
    contracts.finish(run / "scores/v2", lines)
    assert judged.student(run, "v2").to_numpy().tolist() == [["v2", "new_long_6_20", 3, 2], ["v2", "new_short", 2, 2 + 2]]


def test_who_judged_sums_rounds_and_stands_in_the_order_of_the_stages(run):
    columns = ["version", "stage", "round", "sent", "valid", "withdrawn", "gaps"]
    ledger = pd.DataFrame([("v2 gap", "pick", 1, 1, 1, 0, 0), ("v1", "pick", 1, 4, 2, 1, 1), ("v1", "pick", 2, 6, 5, 1, 0), ("v1", "dense_1_5", 1, 0, 0, 0, 0)], columns=columns)
    found = judged.who_judged(ledger, judged.student(run, "v2"))
    assert found[["version", "stage", "judge", "sent", "judged"]].to_numpy().tolist() == [
        ["v1", "dense_1_5", "llm", 0, 0], ["v1", "pick", "llm", 10, 7], ["v2 gap", "pick", "llm", 1, 1], ["v2", "new_short", "student", 2, 2], ["v2", "new_long_6_20", "student", 3, 2]]
    assert pd.isna(found["share"][0]) and found["share"][1] == 0.7  # of all sent, the withdrawn ones too
    assert found["withdrawn"].isna().tolist() == [False] * 3 + [True] * 2 and found["candidates"][3] == "new candidates, short"


def test_each_dense_rank_counts_a_pair_once_by_what_decides_on_it(run):
    def sent(doc, stage, rank, judge="llm", withdrawn=False):
        return intent(0, doc, stage=stage, rank=rank, judge=judge, withdrawn=withdrawn)

    rows = [sent(1, "dense_1_5", 1), sent(2, "pick", 6), sent(2, "short", 6, "student"), sent(3, "pick", 7, withdrawn=True), sent(3, "short", 7, "student"), sent(4, "short", 20, "student")]
    table(run, "intents", "intents/v1", [rows, []])
    found = {name: (np.flatnonzero(count) + 1).tolist() for name, count in judged.routed_by_rank(run).items()}
    assert found == {"LLM, rank 1-5": [1], "LLM, pick": [6], "LLM, long": [], "student": [20], "source page": [7]}


def test_rates_by_rank_are_of_judged_rows_of_v1_with_unevaluable_ones(run):
    def told(query, rank, said, stage="dense_1_5"):
        ok = isinstance(said, int)
        return {"query": query, "doc": rank, "version": "v1", "stage": stage, "round": 1, "reason": "r", "rank": rank, "key": "k", "task_id": "t", "answer": "ok" if ok else said,
                "score": said if ok else None, "query_evaluable": ok, "prompt_sha256": None, "model": None}

    parts = [[told(0, 1, 2), told(1, 1, "unevaluable"), told(0, 2, "timeout")], [told(2, 1, 0), told(2, 2, "withdrawn"), told(3, 1, 2, "pick"), told(3, 2, 2)]]
    table(run, "answers", "answers/v1", parts)
    found = labels.score_2_by_rank(labels.rank_labels(run), ranks=(1, 2, 3))
    assert found[["dense rank", "rows", "score 2"]].to_numpy().tolist() == [[1, 3, 1], [2, 1, 1], [3, 0, 0]]
    assert found["rate"][0] == 1 / 3 and pd.isna(found["rate"][2])
