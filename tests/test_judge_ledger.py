"""Answers, ledger and the view of one pair, over hand-written attempts."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judge_script import fields, intent, judge, table, world

from lib import contracts, paths
from lib.judge import __main__ as show
from lib.judge import answers, compact, contract, ledger, pairs, prompt, store
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


def close(run: Path, sets=SETS):
    """Write the answers as the judging notebook does, then close the ledger."""
    for name in sets:
        answers.write(run, name, judge())
    return ledger.close(run, sets)


def test_sent_is_valid_plus_gaps_plus_withdrawn_for_every_stage_and_round(run):
    lines = close(run).set_index(["set", "stage", "round"])
    assert list(lines.index) == [("source_page", "source page", 1), ("v1", "dense 1-5", 1), ("v1", "pick", 2)]
    page, dense, pick = (lines.iloc[i] for i in range(3))
    assert (page.sent, page.valid, page.unevaluable, page.gaps, page.withdrawn) == (2, 1, 0, 1, 0)
    assert page["timeout"] == 1 and page["refusal"] == 0  # a gap's class is its last attempt's
    assert (dense.sent, dense.valid, dense.unevaluable, dense.gaps, dense.withdrawn) == (6, 3, 1, 2, 1)
    assert dense["truncated"] == 1 and dense["budget stop"] == 1
    assert (pick.sent, pick.valid, pick.gaps) == (1, 1, 0)


def test_the_ledger_of_a_set_with_no_rows_is_empty_and_closes(run):
    table(run, "intents", "intents/v2", [[], []])
    assert len(close(run, ["v2"])) == 0


def test_a_pair_that_stands_twice_in_a_version_does_not_close(run):
    table(run, "intents", "intents/v1", [[intent(0, 3), intent(0, 3, round=2)], []])
    with pytest.raises(ledger.LedgerError, match="1 offenders, the first: query 0 doc 3 stands 2 times in v1"):
        close(run)


def test_an_attempt_under_the_key_of_another_pair_does_not_close(run):
    path = store.path(run, "v1", "part-00000")
    tasks = [prompt.task_id("q0", docid) for docid in ("d5", "d1")]
    path.write_bytes(path.read_bytes().replace(tasks[1].encode(), tasks[0].encode()))
    with pytest.raises(ledger.LedgerError, match=f"an attempt of v1 for task {tasks[0]} carries the key of task {tasks[1]}"):
        close(run)


def test_a_line_that_does_not_add_up_does_not_close(run, monkeypatch):
    whole = answers.read
    monkeypatch.setattr(answers, "read", lambda *arguments: ((part, rows.slice(1)) for part, rows in whole(*arguments)))
    with pytest.raises(ledger.LedgerError, match=r"2 offenders, the first: v1 source page round 1: sent 2, valid 0 \+ gaps 0 \+ withdrawn 0; "):
        close(run)


def test_more_answers_than_were_sent_do_not_close(run, monkeypatch):
    whole = answers.read
    monkeypatch.setattr(answers, "read", lambda *arguments: ((part, pa.concat_tables([rows, rows])) for part, rows in whole(*arguments)))
    with pytest.raises(ledger.LedgerError, match="v1 source page round 1: sent 2, valid 2 "):
        close(run)


def test_only_the_first_ten_offenders_are_named(run):
    table(run, "intents", "intents/v1", [[intent(0, doc, round=n) for doc in range(6) for n in (1, 2)], [intent(1, doc, round=n) for doc in range(6) for n in (1, 2)]])
    with pytest.raises(ledger.LedgerError, match="12 offenders") as caught:
        close(run, ["v1"])
    assert str(caught.value).count("stands 2 times") == 10


def test_calls_of_a_former_judge_or_routing_change_nothing(run):
    before = close(run)
    say(run, "v1", "v1", {(0, 3): [2], (0, 1): ["refusal"]}, by=judge(seed=7))
    assert close(run).equals(before)
    table(run, "intents", "intents/v1", [[intent(0, 3)], []])
    assert close(run)["sent"].sum() == 3


def test_answers_have_a_row_for_every_pair_sent_in_the_order_of_the_intents(run):
    assert answers.write(run, "v1", judge()) == 7
    found = contracts.read("answers", run / "answers" / "v1").to_pylist()
    assert [(row["query"], row["doc"], row["stage"], row["answer"], row["score"]) for row in found] == [
        (0, 0, "dense 1-5", "withdrawn", None), (0, 3, "dense 1-5", "ok", 1), (0, 1, "dense 1-5", "unevaluable", None), (0, 2, "pick", "ok", 0),
        (1, 2, "dense 1-5", "ok", 2), (1, 3, "dense 1-5", "truncated", None), (1, 4, "dense 1-5", "budget stop", None)]
    for row in found:
        valid = row["answer"] in answers.VALID
        assert row["task_id"] == prompt.task_id(f"q{row['query']}", f"d{row['doc']}")
        assert (row["query_evaluable"] is None, row["prompt_sha256"], row["model"]) == (not valid, judge().prompt.sha256 if valid else None, "m" if valid else None)


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_same_answers_give_the_same_bytes_whatever_the_order_of_the_calls(run):
    answers.write(run, "v1", judge())
    first = files(run / "answers" / "v1")
    path = store.path(run, "v1", "part-00000")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[::-1]))
    (run / "answers" / "v1" / "part-00002.parquet").write_bytes(b"of a former partition")
    answers.write(run, "v1", judge())
    assert files(run / "answers" / "v1") == first


def test_answers_that_were_broken_off_are_not_finished(run, monkeypatch):
    answers.write(run, "v1", judge())
    whole, parts = contracts.write, []

    def killed(name, rows, path):
        if parts:
            raise KeyboardInterrupt
        return parts.append(path) or whole(name, rows, path)

    monkeypatch.setattr(contracts, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        answers.write(run, "v1", judge())
    with pytest.raises(contracts.ContractError, match="answers/v1 is not finished"):
        read(run, "v1")


def test_a_part_without_answers_is_an_empty_typed_table(run):
    answers.write(run, "probe", judge())
    part = contracts.read_part("answers", run / "answers" / "probe" / "part-00001.parquet")
    assert part.num_rows == 0 and part.schema.equals(contracts.TABLES["answers"])


def read(run, name) -> dict[str, int]:
    return {part: rows.num_rows for part, rows in answers.read(run, name)}


def test_answers_to_other_intents_documents_or_queries_are_not_read(run):
    answers.write(run, "v1", judge())
    assert read(run, "v1") == {"part-00000": 4, "part-00001": 3}
    for folder, name in (("intents/v1", "intents"), ("documents", "documents"), ("queries", "queries")):
        kept = files(run / folder)
        rows = contracts.read(name, run / folder).to_pylist()
        table(run, name, folder, [rows[1:], rows[:1]])
        with pytest.raises(contracts.ContractError, match=f"answers/v1 was made from another .*{folder}; run the notebook that writes it again"):
            read(run, "v1")
        for file, data in kept.items():
            (run / folder / file).write_bytes(data)
        assert read(run, "v1") == {"part-00000": 4, "part-00001": 3}


@pytest.mark.parametrize("asked, gone", [
    ("probe", ["probe", "source_page", "v1", "v2"]), ("v1", ["source_page", "v1", "v2"]), ("v2", ["v2"]), ("second", ["second"]), ("arbiter", [])])
def test_the_first_call_of_a_set_unfinishes_the_answers_that_it_may_change(run, asked, gone):
    table(run, "intents", "intents/v2", [[], []])
    table(run, "intents", "intents/second", [[intent(0, 1, "second judge", stage="pick")], []])
    sets = ("probe", "source_page", "v1", "v2", "second")
    for name in sets:
        answers.write(run, name, judge())
    store.remember(run, asked)
    assert [name for name in sets if not (run / "answers" / name / "manifest.json").exists()] == gone


def test_another_judge_finds_no_answer_of_the_first_and_the_first_none_of_the_other(run):
    table(run, "intents", "intents/second", [[intent(0, 3, "second judge"), intent(0, 1, "second judge")], []])
    say(run, "second", "second judge", {(0, 1): [2]})
    assert told(run, "second") == ["budget stop", "ok"]  # v1 has a reply for both under the same key
    store.path(run, "v1", "part-00000").unlink()
    assert told(run, "v1")[1:4] == ["budget stop"] * 3
    table(run, "intents", "intents/arbiter", [[intent(0, 1, "arbiter")], []])
    assert told(run, "arbiter") == ["budget stop"]


def told(run, name) -> list[str]:
    answers.write(run, name, judge())
    return [answer for _, rows in answers.read(run, name) for answer in rows["answer"].to_pylist()]


ENDINGS = st.lists(st.sampled_from([0, 1, 2, None, "timeout", "refusal", "truncated"]), max_size=3)


def slow_answer(said: dict, name: str, pair: tuple[int, int]) -> str:
    """By plain rules: the first valid reply of the newest version that may answer, else the last failure, else that nobody was asked."""
    version = store.SETS[name]
    line = [n for n, of in store.SETS.items() if of == version] if version in store.APART else [n for n in store.SETS if store.SETS[n] not in store.APART]
    older = line if version in store.APART else line[: 1 + max(i for i, n in enumerate(line) if store.SETS[n] == version)]
    calls = [(store.SETS[n], ending) for n in older for ending in said.get(n, {}).get(pair, [])]
    valid = [(of, ending) for of, ending in calls if not isinstance(ending, str)]
    if valid:
        first = next(ending for of, ending in valid if of == valid[-1][0])
        return "unevaluable" if first is None else f"ok {first}"
    return calls[-1][1] if calls else "budget stop"


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from([name for name, version in store.SETS.items() if not version.startswith("canary")]), st.dictionaries(st.tuples(st.integers(0, 1), st.integers(0, 3)), ENDINGS, max_size=4)))
@example({"v1": {(0, 1): [2]}, "v2_gap": {(0, 1): ["timeout"]}, "second": {(0, 1): ["refusal"]}, "arbiter": {(0, 1): []}})
@example({"probe": {(0, 1): [0, 2]}, "source_page": {(0, 1): [None]}, "v1": {(0, 1): ["timeout", 1]}, "v2": {(0, 1): []}})
def test_the_ledger_closes_over_all_sets_and_answers_follow_the_plain_rules(tmp_path_factory, said):
    run = world(tmp_path_factory.mktemp("all") / "run", [f"text {i}" for i in range(4)])
    for name, of in said.items():
        table(run, "intents", f"intents/{name}", [[intent(*pair, store.SETS[name], withdrawn=pair[1] == 3) for pair in of]])
        say(run, name, store.SETS[name], of)
    lines = close(run, list(said))
    assert (lines["sent"] == lines["valid"] + lines["gaps"] + lines["withdrawn"]).all() and lines["sent"].sum() == sum(map(len, said.values()))
    for name, of in said.items():
        found = contracts.read("answers", run / "answers" / name).to_pylist()
        assert [f"ok {row['score']}" if row["answer"] == "ok" else row["answer"] for row in found] == [
            "withdrawn" if pair[1] == 3 else slow_answer(said, name, pair) for pair in of]


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


def released(run: Path) -> None:
    """Answers, a score and a release of three rows, as the later notebooks leave them."""
    for name in SETS:
        answers.write(run, name, judge())
    table(run, "scores", "scores/v1", [[]])
    line = contracts.write("scores", contracts.table("scores", [
        {"query": 0, "doc": doc, "score": 0.25 * doc, "checkpoint": "larger/100", "gate": "g"} for doc in (3, 4)]), run / "scores/v1/part-00000-00.parquet")
    contracts.finish(run / "scores/v1", [line])
    common = {"version": "v1", "round": 1, "prompt_sha256": None, "qid": "q0"}
    llm = {"judge": "llm", "model": "m", "stage": "dense 1-5"}
    table(run, "labels", "labels", [[
        common | llm | {"docid": "d0", "label": 2, "llm_label": 2, "query_evaluable": True, "student_score": None, "stage": "source page"},
        common | llm | {"docid": "d1", "label": None, "llm_label": None, "query_evaluable": False, "student_score": None},
        common | llm | {"docid": "d3", "label": 1, "llm_label": 1, "query_evaluable": True, "student_score": 0.75},
        common | {"docid": "d4", "label": 1, "llm_label": None, "query_evaluable": True, "student_score": 1.0, "judge": "student", "model": "larger/100", "stage": "short"},
    ], []])


def test_show_prints_ranks_reasons_every_call_answer_score_and_the_row_of_the_release(run):
    retrieved(run)
    released(run)
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
        "answer to v1 dense 1-5 round 1: ok, score 1",
        "relevance model, v1: 0.7500 by larger/100",
        "label: 1 by llm (m), v1 dense 1-5 round 1, score of the relevance model 0.7500",
    ]


@pytest.mark.parametrize(
    "docid, last",
    [
        ("d0", "label: 2 by llm (m), v1 source page round 1"),
        ("d1", "label: null (the query cannot be evaluated) by llm (m), v1 dense 1-5 round 1"),
        ("d4", "label: 1 by student (larger/100), v1 short round 1, score of the relevance model 1.0000"),
        ("d5", "label: none, what is sent as probe is no part of the release"),
    ],
)
def test_show_says_why_there_is_no_label(run, docid, last):
    assert list(show.show(run, "q0", docid))[-1] == "label: none, the run has written no labels yet"
    released(run)
    assert list(show.show(run, "q0", docid))[-1] == last
    assert list(show.show(run, "q1", "d3"))[-2:] == ["answer to v1 dense 1-5 round 1: truncated", "label: none, no call gave a valid reply"]
    assert list(show.show(run, "q1", "d0"))[-3:] == ["not sent to any judge", "no call was made", "label: none, no route sent the pair to a judge"]


def test_an_unknown_id_is_one_sentence_and_no_success(run):
    for ids, said in ((("q9", "d0"), "has no query 'q9'; its query ids are like q0"), (("q0", "nine"), "has no document 'nine'; its document ids are like d0")):
        done = subprocess.run(
            [sys.executable, "-m", "lib.judge", "show", *ids, "--run", str(run)], cwd=paths.ROOT, capture_output=True, text=True
        )
        assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1
    done = subprocess.run([sys.executable, "-m", "lib.judge", "show", "q0", "d0", "--run", "nowhere"], cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "is not finished" in done.stderr and len(done.stderr.splitlines()) == 1


def test_processes_write_the_bytes_that_one_process_writes_and_read_compacted_attempts_alike(run):
    answers.write(run, "v1", judge(), workers=1)
    first = files(run / "answers" / "v1")
    answers.write(run, "v1", judge(), workers=2)
    assert files(run / "answers" / "v1") == first
    for name in store.SETS:
        compact.compact(run, name)
    assert not list((run / "attempts").glob("*/part-*.jsonl"))
    answers.write(run, "v1", judge())
    assert files(run / "answers" / "v1") == first
    ledger.close(run, ["v1"])


KEYS = [prompt.key([], judge(seed=seed)) for seed in range(3)] + ["0" * 64, "f" * 64, "0" * 16 + "f" * 48]
CALL = st.tuples(st.sampled_from([*KEYS, "k" * 64, "short"]), st.sampled_from(["ok", "unevaluable", "timeout"]), st.integers(1, 3))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(CALL, max_size=5), min_size=1, max_size=3), st.lists(CALL, max_size=3), st.booleans())
@example([[(KEYS[3], "ok", 1), (KEYS[5], "ok", 1)], [(KEYS[3], "timeout", 2)]], [(KEYS[3], "ok", 1)], True)
def test_calls_are_found_as_a_plain_dictionary_finds_them(tmp_path_factory, parts, later, compacted):
    folder = tmp_path_factory.mktemp("calls")
    sources = [store.path(folder, "v1", f"part-{at:05}") for at in range(len(parts))]
    held = answers.Calls()
    for source, said in zip([*sources, sources[0]], [*parts, later], strict=True):
        writer = store.Writer(source)
        for key, status, number in said:
            valid = status in answers.VALID
            row = dict.fromkeys(store.COLUMNS) | {
                "key": key, "task_id": "t", "query": 0, "doc": 0, "version": "v1", "stage": "s", "round": 1, "pass": number, "attempt": 4 - number, "status": status,
                "score": number - 1 if status == "ok" else None, "query_evaluable": status == "ok" if valid else None, "prompt_sha256": "p", "schema_sha256": "s", "model": f"m{number}",
            }  # fmt: skip
            writer.append(row)
        writer.close()
        if compacted:
            compact.compact(folder, "v1")
        found = held.read(store.every(folder, "v1"))
        for key in KEYS:
            mine = [[row for row in store.read(one) if row["key"] == key] for one in sources]
            rows = [row for one in mine for row in one]
            if sum(map(bool, mine)) > 1:
                rows.sort(key=lambda row: (row["pass"], row["attempt"]))
            assert found.of(key) == [
                (row["version"], row["pass"], row["attempt"], row["status"], {name: row[name] for name in answers._FROM_REPLY} if row["status"] in answers.VALID else None)
                for row in rows]
