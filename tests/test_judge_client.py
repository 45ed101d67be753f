"""The client against a real local server: classes, retries, budgets, stops."""

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from judge_script import (
    CUT, DROP, Script, ask, content, error, fields, intent, judge, pairs_of, rows, scores, serving, table, told, valid, world
)  # fmt: skip

from lib import contracts, processes
from lib.judge import answers, asking, ledger, prompt, rounds, store

CASES = Path(__file__).parent / "cases"
ENDINGS = {
    "two": (valid(2), "ok"),
    "null score": (valid(None), "unevaluable"),
    "fenced": (content("```json\n{}\n```"), "not JSON"),
    "wrong task": (valid(2, task_id="0" * 16), "contract violation"),
    "contradiction": (valid(2, reason_codes=["topic_only"]), "contract violation"),
    "cut by length": (content('{"task_id": "a", "score": 2, "', finish="length"), "truncated"),
    "cut by length but whole": (lambda task: {"content": json.dumps(fields(2, task)), "finish": "length"}, "truncated"),
    "filtered": (content("", finish="content_filter"), "content filter"),
    "a tool is called": (content(None, finish="tool_calls"), "contract violation"),
    "refused": (content(None, refusal="I can't help with that."), "refusal"),
    "refused and answered": (lambda task: {"content": json.dumps(fields(2, task)), "refusal": "no"}, "refusal"),
    "no content": (content(None), "empty"),
    "blank": (content(" \n"), "empty"),
    "a page": ({"raw": "<html>busy</html>", "type": "text/html"}, "not JSON"),
    "broken body": ({"raw": '{"choices": [', "type": "application/json"}, "not JSON"),
    "no choices": ({"raw": '{"id": "a", "choices": []}', "type": "application/json"}, "empty"),
    "a list": ({"raw": "[]", "type": "application/json"}, "empty"),
    "null choice": ({"raw": '{"choices": [null]}', "type": "application/json"}, "contract violation"),
    **{f"strange {body[:30]}": ({"raw": body, "type": "application/json"}, "empty") for body in ("null", "5", '{"choices": 5}', '{"choices": {"a": 1}}')},
    "nested without end": ({"raw": "[" * 100_000, "type": "application/json"}, "not JSON"),
    "content is a list": (content([{"type": "text"}]), "contract violation"),
    "busy": (error(429), "rate limited"),
    "down": (error(500), "server error"),
    "gateway": ({"status": 503, "headers": {}, "error": {"message": {"a": 1}, "code": ["b"], "type": {"c": 2}}}, "server error"),
    "bad request": (error(400), "rejected"),
    "too long": (error(400, "context_length_exceeded"), "too long"),
    "filtered prompt": (error(400, "content_filter"), "content filter"),
    "dropped": (DROP, "connection"),
    "cut body": (CUT, "connection"),
    "slow": ({"delay": 60.0}, "timeout"),
}


def test_every_ending_has_its_class_and_only_valid_replies_have_a_score(tmp_path):
    run = pairs_of(tmp_path, list(ENDINGS))
    script = Script({name: [reply] for name, (reply, _) in ENDINGS.items()})
    with serving(script) as url:
        summary, code = ask(run, url, budget=1, timeout=4.0)
    assert code == 0
    found = {list(ENDINGS)[row["doc"]]: row["status"] for row in rows(run)}
    assert found == {name: status for name, (_, status) in ENDINGS.items()}
    assert summary["calls"] == len(ENDINGS) == sum(summary["by_class"].values())
    assert summary["by_class"] == Counter(status for _, status in ENDINGS.values())
    assert scores(run) == {0: 2, 1: None}
    for row in rows(run):
        assert (row["score"] is not None) == (row["status"] == "ok")
        assert row["status"] in answers.VALID or row["detail"]
    assert set(answers.CLASSES) == {status for _, status in ENDINGS.values()} | {"quota", "unavailable"}
    assert store.table(rows(run)).num_rows == len(ENDINGS)


def test_what_is_sent_is_the_two_messages_the_strict_schema_and_the_parameters(tmp_path):
    run = pairs_of(tmp_path, ["a" * 50], max_chars=20)
    script = Script({"*": [valid(2)]})
    with serving(script) as url:
        ask(run, url)
    (body,) = script.seen["a" * 20]
    assert set(body) == {"model", "messages", "temperature", "response_format"}
    assert body["messages"][0]["content"] == prompt.load().text
    assert body["response_format"]["type"] == "json_schema" and body["response_format"]["json_schema"]["strict"] is True
    (row,) = rows(run)
    assert (row["input_tokens"], row["output_tokens"], row["request_id"]) == (11, 7, "request-1")
    assert json.loads(row["reply"])["score"] == row["score"] == 2
    assert row["latency"] > 0 and row["prompt_sha256"] == prompt.load().sha256


def test_case_14_no_reply_without_a_score_becomes_a_label(tmp_path):
    case = json.loads((CASES / "14-judge-reply-without-a-score-is-not-zero.json").read_text())
    given = case["input"]["replies"]
    scripts = {
        "a": valid(2),
        "b": lambda task: {"content": f"My judgment:\n```json\n{json.dumps(fields(2, task))}\n```"},
        "c": content(given["c"]),
        "d": lambda task: given["d"],
        "e": valid(2, score="2"),
        "f": valid(2, score=3),
        "g": valid(1, score=True),
        "h": valid(1, score=1.0),
        "i": content(given["i"]),
        "j": content(given["j"]),
        "k": lambda task: {"content": json.dumps(fields(2, task)) + json.dumps(fields(0, task))},
    }
    assert set(scripts) == set(given)
    run = pairs_of(tmp_path, list(scripts))
    with serving(Script({letter: [reply] for letter, reply in scripts.items()})) as url:
        ask(run, url, budget=1)
    assert scores(run) == {0: 2}
    answers.write(run, "v1", judge())
    line = ledger.close(run, ["v1"]).iloc[0]
    assert (line["sent"], line["valid"], line["gaps"]) == (11, 1, 10)
    causes = dict(zip(scripts, told(run).values(), strict=True))
    assert causes == {
        "a": "ok", "b": "not JSON", "c": "not JSON", "d": "refusal", "e": "contract violation", "f": "contract violation",
        "g": "contract violation", "h": "contract violation", "i": "not JSON", "j": "empty", "k": "not JSON",
    }  # fmt: skip


def test_case_15_a_reply_cut_by_length_is_asked_again_and_never_repaired(tmp_path):
    case = json.loads((CASES / "15-judge-reply-cut-by-length.json").read_text())["input"]
    cut = content(case["content"], finish=case["finish_reason"])
    run = pairs_of(tmp_path, ["once", "always"])
    script = Script({"once": [cut, valid(1)], "always": [cut]})
    with serving(script) as url:
        ask(run, url)
    assert script.calls == {"once": 2, "always": 3}
    assert scores(run) == {0: 1} and told(run) == {0: "ok", 1: "truncated"}
    assert [row["status"] for row in rows(run) if row["doc"] == 0] == ["truncated", "ok"]


def test_case_16_the_reply_is_stored_byte_for_byte(tmp_path):
    case = json.loads((CASES / "16-latex-backslashes-in-replies.json").read_text())
    raw = case["input"]["rationale_raw_inside_the_json_text"]
    said = {text: [lambda task, text=text: {"content": json.dumps(fields(2, task, rationale="@")).replace("@", text)}] for text in raw}
    run = pairs_of(tmp_path, raw)
    with serving(Script(said)) as url:
        ask(run, url, budget=1)
    assert all(raw[row["doc"]] in row["reply"] for row in rows(run))
    assert {raw[doc] for doc in scores(run)} == {"\\frac{1}{2}", "\\nabla f", "\\text{x}", "\\binom"}
    assert set(scores(run).values()) == {2}


def test_case_19_one_retry_layer_and_no_failure_touches_a_neighbour(tmp_path):
    case = json.loads((CASES / "19-retries-cost-and-neighbours.json").read_text())
    spelt = {
        "429": error(429), "500": error(500), "400 bad request": error(400), "reply lost after the server worked": DROP,
        "429 insufficient_quota": error(429, "insufficient_quota"), **{f"VALID({score})": valid(score) for score in (0, 1, 2)},
    }  # fmt: skip
    given, right = case["input"], case["right_answer"]
    names = list(given["script"])
    run = pairs_of(tmp_path, names)
    script = Script({name: [spelt[reply] for reply in replies] for name, replies in given["script"].items()})
    with serving(script) as url:
        summary, code = ask(run, url, budget=given["max_attempts"])
    assert code == asking.STOPPED and "quota of the key is used up" in summary["stopped"]
    assert script.calls == right["http_requests"] | {"p5": 1}
    assert {names[doc]: score for doc, score in scores(run).items()} == right["labels"]
    assert [names[doc] for doc, answer in told(run).items() if answer not in answers.VALID] == right["no_judgment"]
    assert Counter(names[row["doc"]] for row in rows(run)) == script.calls
    assert [row["status"] for row in rows(run) if row["doc"] == 2] == ["connection", "ok"]


def test_a_stopped_run_goes_on_where_it_stopped_and_pays_for_nothing_twice(tmp_path):
    run = pairs_of(tmp_path, [f"p{i}" for i in range(6)])
    script = Script({"p2": [error(401), valid(2)], "*": [valid(1)]})
    with serving(script) as url:
        with pytest.raises(rounds.JudgeStopped, match="refuses the key; set QRELBOOK_JUDGE_KEY to a valid one") as caught:
            rounds.ask(run, "v1", judge(), url, concurrency=1, passes=1)
        assert "\n" not in str(caught.value)
        assert dict(script.calls) == {"p0": 1, "p1": 1, "p2": 1}
        assert told(run) == {0: "ok", 1: "ok", 2: "unavailable", 3: "budget stop", 4: "budget stop", 5: "budget stop"}
        summary = rounds.ask(run, "v1", judge(), url, concurrency=1, passes=2)
    assert summary.by_class == {"ok": 4}
    assert scores(run) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
    assert dict(script.calls) == {"p0": 1, "p1": 1, "p2": 2, "p3": 1, "p4": 1, "p5": 1}


def test_a_pass_asks_the_gaps_again_and_the_budget_is_per_pass(tmp_path):
    run = pairs_of(tmp_path, ["late", "never", "good", "bad"])
    script = Script({"late": [error(500)] * 4 + [valid(0)], "never": [error(500)], "good": [valid(1)], "bad": [error(400)]})
    with serving(script) as url:
        ask(run, url, passes=3, budget=2)
        assert dict(script.calls) == {"late": 5, "never": 6, "good": 1, "bad": 3}
        assert [(row["pass"], row["attempt"]) for row in rows(run) if row["doc"] == 1] == [(p, a) for p in (1, 2, 3) for a in (1, 2)]
        assert ask(run, url, passes=3, budget=2)[0]["calls"] == 0
        ask(run, url, passes=4, budget=2)
    assert dict(script.calls) == {"late": 5, "never": 8, "good": 1, "bad": 4}


def test_attempts_on_disk_count_against_the_budget(tmp_path):
    run = pairs_of(tmp_path, ["never"])
    script = Script({"never": [error(500)]})
    with serving(script) as url:
        ask(run, url, budget=2)
        ask(run, url, budget=5)
    assert script.calls["never"] == 5
    assert [row["attempt"] for row in rows(run)] == [1, 2, 3, 4, 5]


def test_another_prompt_asks_every_pair_anew_and_the_former_one_pays_nothing(tmp_path):
    run = pairs_of(tmp_path / "run", ["a", "b"])
    other = tmp_path / "other.md"
    other.write_text("Judge strictly.\n")
    script = Script({"*": [valid(1), valid(2)]})
    with serving(script) as url:
        ask(run, url)
        ask(run, url, prompt=str(other))
        assert ask(run, url)[0]["calls"] == 0
    assert scores(run) == {0: 1, 1: 1}
    assert told(run, prompt.judge("m", other, temperature=0.0)) == {0: "ok", 1: "ok"}
    assert told(run, prompt.judge("m", temperature=0.5)) == {0: "budget stop", 1: "budget stop"}
    assert len(rows(run)) == 4
    answers.write(run, "v1", judge())
    assert ledger.close(run, ["v1"]).iloc[0]["valid"] == 2


def test_only_llm_pairs_that_are_not_withdrawn_and_in_the_named_rounds_are_asked(tmp_path):
    run = world(tmp_path, ["llm", "student", "withdrawn", "round two", "other stage"])
    changed = [{}, {"judge": "student", "max_chars": None}, {"withdrawn": True}, {"round": 2}, {"stage": "picks"}]
    table(run, "intents", "intents/v1", [[intent(0, doc, **changes) for doc, changes in enumerate(changed)]])
    script = Script({"*": [valid(2)]})
    with serving(script) as url:
        ask(run, url, rounds=[1], stages=["dense 1-5"])
        assert dict(script.calls) == {"llm": 1}
        ask(run, url, rounds=[2])
        assert dict(script.calls) == {"llm": 1, "round two": 1}
        ask(run, url)
    assert dict(script.calls) == {"llm": 1, "round two": 1, "other stage": 1}
    assert told(run) == {0: "ok", 2: "withdrawn", 3: "ok", 4: "ok"}


def test_a_probe_reply_answers_the_same_pair_of_v1_and_not_the_reverse_and_v1_keeps_its_own(tmp_path):
    run = pairs_of(tmp_path, ["a", "b"])
    table(run, "intents", "intents/probe", [[intent(0, 0, "probe", stage="probe")]])
    script = Script({"a": [valid(2)], "b": [valid(1), valid(0)]})
    with serving(script) as url:
        ask(run, url, set="probe")
        ask(run, url)
        assert dict(script.calls) == {"a": 1, "b": 1}
        table(run, "intents", "intents/probe", [[intent(0, doc, "probe", stage="probe") for doc in (0, 1)]])
        ask(run, url, set="probe")
    assert dict(script.calls) == {"a": 1, "b": 2}
    assert scores(run) == {0: 2, 1: 1}


def test_calls_in_flight_are_bounded_and_every_part_is_asked(tmp_path):
    texts = [f"t{i}" for i in range(60)]
    run = world(tmp_path, texts, queries_a_part=1, parts=3)
    table(run, "intents", "intents/v1", [[intent(query, 20 * query + doc) for doc in range(20)] for query in range(3)])
    script = Script({"*": [valid(1)]}, seconds=0.01)
    with serving(script) as url:
        summary, _ = ask(run, url, concurrency=7)
    assert summary["asked"] == summary["calls"] == 60 and script.most_flying == 7
    for query in range(3):
        assert len(rows(run, f"part-{query:05d}")) == 20
    with serving(script) as url:
        assert ask(run, url, concurrency=7, parts=["part-00001"])[0]["calls"] == 0


@pytest.mark.parametrize("asked_for, least, most", [("0.3", 0.3, 1.5), ("3600", 0.5, 1.7)])
def test_retry_after_is_honoured_and_capped(tmp_path, asked_for, least, most):
    run = pairs_of(tmp_path, ["a"])
    with serving(Script({"a": [error(429, headers={"retry-after": asked_for}), valid(1)]})) as url:
        started = time.monotonic()
        ask(run, url, longest_wait=0.5)
        assert least <= time.monotonic() - started < most


def test_a_disk_that_fills_up_ends_the_run_with_the_file_named(tmp_path, monkeypatch):
    run = pairs_of(tmp_path, ["a", "b", "c"])
    write_now = os.write
    monkeypatch.setattr(store.os, "write", lambda fd, data: write_now(fd, data[:30] if b'"doc": 1' in data else data))
    with serving(Script({"*": [valid(1)]})) as url, pytest.raises(OSError, match="part-00000.jsonl cannot grow"):
        ask(run, url, concurrency=1)
    monkeypatch.undo()
    assert [row["doc"] for row in rows(run)] == [0]


def test_where_no_call_is_owed_no_child_is_started(tmp_path, monkeypatch):
    run = pairs_of(tmp_path, ["a"])
    with serving(Script({"*": [valid(1)]})) as url:
        assert rounds.ask(run, "v1", judge(), url) == rounds.Summary("v1", 1, 1, {"ok": 1})
    monkeypatch.setattr(processes, "child", lambda *a, **k: pytest.fail("a child was started"))
    assert rounds.ask(run, "v1", judge(), "http://127.0.0.1:9/v1") == rounds.Summary("v1", 0, 0, {})


def test_intents_of_another_version_than_their_set_are_refused(tmp_path):
    run = pairs_of(tmp_path, ["a"], version="v2")
    with pytest.raises(contracts.ContractError, match=r"holds the versions \['v2'\], the set is 'v1'"):
        rounds.ask(run, "v1", judge(), "http://127.0.0.1:9/v1")
