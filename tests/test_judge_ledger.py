"""Ledger, labels and the view of one pair, over hand-written attempts."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from judge_script import fields, intent, judge, table, world

from lib import contracts, paths
from lib.judge import __main__ as show
from lib.judge import answers, contract, labels, ledger, pairs, prompt, store
from lib.judge.pairs import Pairs


def say(run: Path, name: str, version: str, statuses: dict[tuple[int, int], list], part="part-00000", by=None) -> None:
    """Write attempts for pairs of a set: a score is a valid reply, a text is the class of a failure."""
    by = by or judge()
    render = Pairs(run, by)
    writer = store.Writer(store.path(run, name, part))
    rows = pairs.intents(run, name, part)
    for pair in render.render(part, rows):
        known = rows.slice(pair.row, 1).to_pylist()[0]
        for number, ending in enumerate(statuses.get((pair.query, pair.doc), []), 1):
            said = {} if isinstance(ending, str) else fields(ending, pair.task)
            status = ending if isinstance(ending, str) else "unevaluable" if ending is None else "ok"
            row = dict.fromkeys(store.COLUMNS) | {k: v for k, v in said.items() if k in store.COLUMNS} | {
                "key": pair.key, "task_id": pair.task, "query": pair.query, "doc": pair.doc, "version": version, "stage": known["stage"], "round": known["round"],
                "pass": 1, "attempt": number, "status": status, "prompt_sha256": by.prompt.sha256, "schema_sha256": contract.SCHEMA_SHA256,
                "model": by.model, "detail": None if said else f"it was {ending}", "reply": json.dumps(said) if said else None,
            }  # fmt: skip
            writer.append({name: row[name] for name in store.COLUMNS})
    writer.close()


@pytest.fixture
def run(tmp_path) -> Path:
    """Two query parts of one query; six documents; source pages, two stages, two rounds, every kind of answer."""
    run = world(tmp_path / "run", [f"text {i}" for i in range(6)], queries_a_part=1, parts=2)
    page = dict(version="v1", stage="source page", rank=0, reason="source page")
    table(run, "intents", "intents/source_page", [[intent(0, 0, **page)], [intent(1, 1, **page)]])
    table(run, "intents", "intents/v1", [
        [
            intent(0, 0, withdrawn=True), intent(0, 3), intent(0, 1), intent(0, 2, stage="pick", round=2),
            intent(0, 4, judge="student", stage="short", max_chars=None),
        ],
        [intent(1, 2), intent(1, 3), intent(1, 4)],
    ])  # fmt: skip
    table(run, "intents", "intents/probe", [[intent(0, 5, "probe", stage="probe")], []])
    say(run, "source_page", "v1", {(0, 0): [2]})
    say(run, "source_page", "v1", {(1, 1): ["refusal", "timeout"]}, "part-00001")
    say(run, "v1", "v1", {(0, 3): ["server error", 1], (0, 1): [None], (0, 2): [0]})
    say(run, "v1", "v1", {(1, 2): [2], (1, 3): ["truncated"]}, "part-00001")
    say(run, "probe", "probe", {(0, 5): [2]})
    return run


SETS = ("source_page", "v1")


def test_sent_is_valid_plus_gaps_plus_withdrawn_for_every_stage_and_round(run):
    lines = ledger.close(run, SETS, judge()).set_index(["set", "stage", "round"])
    assert list(lines.index) == [("source_page", "source page", 1), ("v1", "dense 1-5", 1), ("v1", "pick", 2)]
    page, dense, pick = (lines.iloc[i] for i in range(3))
    assert (page.sent, page.valid, page.unevaluable, page.gaps, page.withdrawn) == (2, 1, 0, 1, 0)
    assert page["timeout"] == 1 and page["refusal"] == 0  # a gap's class is its last attempt's
    assert (dense.sent, dense.valid, dense.unevaluable, dense.gaps, dense.withdrawn) == (6, 3, 1, 2, 1)
    assert dense["truncated"] == 1 and dense["budget stop"] == 1
    assert (pick.sent, pick.valid, pick.gaps) == (1, 1, 0)


def test_the_ledger_of_a_set_with_no_rows_is_empty_and_closes(run):
    table(run, "intents", "intents/v2", [[], []])
    assert len(ledger.close(run, ["v2"], judge())) == 0


def test_a_pair_that_stands_twice_in_a_version_does_not_close(run):
    table(run, "intents", "intents/v1", [[intent(0, 3), intent(0, 3, round=2)], []])
    with pytest.raises(ledger.LedgerError, match="1 offenders, the first: query 0 doc 3 stands 2 times in v1"):
        ledger.close(run, SETS, judge())


def test_an_attempt_under_the_key_of_another_pair_does_not_close(run):
    path = store.path(run, "v1", "part-00000")
    tasks = [prompt.task_id("q0", docid) for docid in ("d5", "d1")]
    path.write_bytes(path.read_bytes().replace(tasks[1].encode(), tasks[0].encode()))
    with pytest.raises(ledger.LedgerError, match=f"an attempt of v1 for task {tasks[0]} carries the key of task {tasks[1]}"):
        ledger.close(run, SETS, judge())


def test_a_line_that_does_not_add_up_does_not_close(run, monkeypatch):
    whole = answers.answers
    monkeypatch.setattr(answers, "answers", lambda *arguments: whole(*arguments).slice(1))
    with pytest.raises(ledger.LedgerError, match=r"2 offenders, the first: v1 source page round 1: sent 2, valid 0 \+ gaps 0 \+ withdrawn 0; "):
        ledger.close(run, SETS, judge())


def test_only_the_first_ten_offenders_are_named(run):
    table(run, "intents", "intents/v1", [[intent(0, doc, round=n) for doc in range(6) for n in (1, 2)], [intent(1, doc, round=n) for doc in range(6) for n in (1, 2)]])
    with pytest.raises(ledger.LedgerError, match="12 offenders") as caught:
        ledger.close(run, ["v1"], judge())
    assert str(caught.value).count("stands 2 times") == 10


def test_calls_of_a_former_judge_or_routing_are_counted_and_change_nothing(run):
    before = ledger.ledger(run, SETS, judge())
    say(run, "v1", "v1", {(0, 3): [2], (0, 1): ["refusal"]}, by=judge(seed=7))
    assert ledger.close(run, SETS, judge()).equals(before)
    told = ledger.calls(run, SETS, judge()).set_index("set")
    assert list(told.loc["v1"]) == [8, 6, 2] and list(told.loc["source_page"]) == [3, 3, 0]
    table(run, "intents", "intents/v1", [[intent(0, 3)], []])
    assert list(ledger.calls(run, SETS, judge()).set_index("set").loc["v1"]) == [8, 2, 6]
    ledger.close(run, SETS, judge())


def test_labels_are_the_valid_replies_one_row_a_pair_without_the_probe(run):
    assert labels.write(run, judge()) == 5
    found = contracts.read("labels", run / "labels").to_pylist()
    assert [(row["qid"], row["docid"], row["label"], row["query_evaluable"], row["stage"]) for row in found] == [
        ("q0", "d0", 2, True, "source page"),
        ("q0", "d1", None, False, "dense 1-5"),
        ("q0", "d2", 0, True, "pick"),
        ("q0", "d3", 1, True, "dense 1-5"),
        ("q1", "d2", 2, True, "dense 1-5"),
    ]
    for row in found:
        assert row["llm_label"] == row["label"] and row["student_score"] is None
        assert (row["judge"], row["version"], row["model"]) == ("llm", "v1", "m")
        assert row["prompt_sha256"] == judge().prompt.sha256


def test_the_source_page_label_wins_over_a_later_reply_for_the_same_pair(run):
    table(run, "intents", "intents/v1", [[intent(0, 0, max_chars=3)], []])
    store.path(run, "v1", "part-00000").unlink()
    say(run, "v1", "v1", {(0, 0): [0]})
    assert labels.labels(run, "part-00000", Pairs(run, judge()))["label"].to_pylist() == [2]
    assert labels.labels(run, "part-00000", Pairs(run, judge()), ("v1", "source_page"))["label"].to_pylist() == [0]


def test_the_same_answers_give_the_same_bytes_whatever_the_order_of_the_calls(run):
    labels.write(run, judge())
    first = {file.name: file.read_bytes() for file in (run / "labels").iterdir()}
    path = store.path(run, "v1", "part-00000")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[::-1]))
    labels.write(run, judge())
    assert {file.name: file.read_bytes() for file in (run / "labels").iterdir()} == first


def test_a_part_without_answers_is_an_empty_typed_table(run):
    store.path(run, "v1", "part-00001").unlink()
    labels.write(run, judge())
    part = contracts.read_part("labels", run / "labels" / "part-00001.parquet")
    assert part.num_rows == 0 and part.schema.equals(contracts.TABLES["labels"])


def test_the_pass_and_the_number_of_the_next_call():
    def call(in_pass, status="timeout", version="v1"):
        return answers.Call(version, in_pass, 1, status, {} if status in answers.VALID else None)

    assert answers.due([], "v1", 2, 3) == (1, 1, 3)
    assert answers.due([call(1)] * 2, "v1", 2, 3) == (1, 3, 1)
    assert answers.due([call(1)] * 3, "v1", 2, 3) == (2, 1, 3)
    assert answers.due([call(1), call(1, "rejected")], "v1", 2, 3) == (2, 1, 3)
    for status in ("quota", "unavailable"):  # nobody was asked
        assert answers.due([call(1, status)] * 4 + [call(1)], "v1", 2, 3) == (1, 6, 2)
        assert answers.due([call(1)] * 3 + [call(2, status)] * 9, "v1", 2, 3) == (2, 10, 3)
    assert answers.due([call(1)] * 3 + [call(2)] * 3, "v1", 2, 3) is None
    assert answers.due([call(1), call(1, "ok")], "v1", 2, 3) is None
    assert answers.due([call(1, version="v1")] * 3, "v2 gap", 1, 3) == (1, 1, 3)  # each version has a budget of its own


def retrieved(run: Path) -> None:
    for route, order in (("dense", [3, 1, 2]), ("bm25", [1, 5]), ("ngram", [])):
        rows = [
            {"doc": order + [-1] * (100 - len(order)), "score": [9.5 - i for i in range(len(order))] + [0.0] * (100 - len(order))}
        ]
        table(run, "hits", f"hits/{route}", [rows, rows])
    fused = [{"doc": [3, 1] + [-1] * 18, "score": [0.5, 0.25] + [0.0] * 18, "best_rank": [1, 1] + [0] * 18, "dense_rank": [1, 2] + [0] * 18}]
    table(run, "fused", "fused", [fused, fused])
    table(run, "rerank", "rerank", [[{"query": 0, "doc": 2, "score": np.float32(1.5), "model": "overlap"}], []])


def test_show_prints_ranks_reasons_every_call_and_the_label(run):
    retrieved(run)
    labels.write(run, judge())
    assert list(show.show(run, "q0", "d3")) == [
        "query q0, document d3",
        "bm25: not in the top 100",
        "dense: rank 1, score 9.5",
        "ngram: not in the top 100",
        "fused: place 1",
        "reranker: not scored",
        "sent to llm as v1 dense 1-5 round 1: dense rank 1",
        f"call 1 of pass 1 for v1: server error (m, prompt {judge().prompt.sha256[:8]})",
        "    it was server error",
        f"call 2 of pass 1 for v1: ok, score 1 (m, prompt {judge().prompt.sha256[:8]})",
        "    The lemma in line 2 is what is asked.",
        "label: 1 by llm, v1 dense 1-5 round 1",
    ]


@pytest.mark.parametrize(
    "docid, last",
    [
        ("d0", "label: 2 by llm, v1 source page round 1"),
        ("d1", "label: null (the query cannot be evaluated) by llm, v1 dense 1-5 round 1"),
        ("d4", "label: none, the LLM was not asked"),
        ("d5", "label: none, a probe is no part of the release"),
    ],
)
def test_show_says_why_there_is_no_label(run, docid, last):
    assert list(show.show(run, "q0", docid))[-1] == "label: none, the run has written no labels yet"
    labels.write(run, judge())
    assert list(show.show(run, "q0", docid))[-1] == last
    assert list(show.show(run, "q1", "d3"))[-1] == "label: none, no call gave a valid reply"
    assert list(show.show(run, "q1", "d0"))[-3:] == ["not sent to any judge", "no call was made", "label: none, no route sent the pair to a judge"]


def test_an_unknown_id_is_one_sentence_and_no_success(run):
    for ids, said in ((("q9", "d0"), "has no query 'q9'; its query ids are like q0"), (("q0", "nine"), "has no document 'nine'; its document ids are like d0")):
        done = subprocess.run(
            [sys.executable, "-m", "lib.judge", "show", *ids, "--run", str(run)], cwd=paths.ROOT, capture_output=True, text=True
        )
        assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1
    done = subprocess.run([sys.executable, "-m", "lib.judge", "show", "q0", "d0", "--run", "nowhere"], cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "is not finished" in done.stderr and len(done.stderr.splitlines()) == 1
