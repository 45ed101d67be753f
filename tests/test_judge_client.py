"""The client against a real local server: classes, retries, budgets, stops, kills, secrets."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from judge_script import CUT, DROP, Script, content, error, fields, intent, judge, serving, table, valid, world

from lib import contracts, paths, processes
from lib.judge import answers, client, ledger, prompt, rounds, store
from lib.judge.pairs import Pairs
from lib.judge.turns import Config

CASES = Path(__file__).parent / "cases"
KEY = "sk-sentinel-0123456789"


def pairs_of(run: Path, texts: list[str], **changed) -> Path:
    """A run whose first query has an intent for each of the texts."""
    world(run, texts)
    table(run, "intents", "intents/v1", [[intent(0, doc, **changed) for doc in range(len(texts))]])
    return run


def configured(run: Path, url: str, **changed) -> Config:
    known = {"passes": 1, "budget": 3, "backoff": 0.01, "timeout": 5.0, "model": "m", "parameters": {"temperature": 0.0}, "set": "v1"}
    return Config(run=str(run), base_url=url, **known | {"prompt": str(prompt.PROMPT)} | changed)


def ask(run: Path, url: str, key=KEY, **changed) -> tuple[dict, int]:
    """The client in this process."""
    return asyncio.run(client._main(configured(run, url, **changed), key))


def rows(run: Path, part="part-00000") -> list[dict]:
    return store.read(store.path(run, "v1", part))


def told(run: Path, by=None) -> dict[int, str]:
    """Document row -> answer, for the one part."""
    found = answers.answers(run, "v1", "part-00000", Pairs(run, by or judge()))
    return dict(zip(found["doc"].to_pylist(), found["answer"].to_pylist(), strict=True))


def scores(run: Path) -> dict[int, int | None]:
    found = answers.answers(run, "v1", "part-00000", Pairs(run, judge())).to_pylist()
    return {row["doc"]: row["score"] for row in found if row["answer"] in answers.VALID}


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
    "slow": ({"delay": 3.0}, "timeout"),
}


def test_every_ending_has_its_class_and_only_valid_replies_have_a_score(tmp_path):
    run = pairs_of(tmp_path, list(ENDINGS))
    script = Script({name: [reply] for name, (reply, _) in ENDINGS.items()})
    with serving(script) as url:
        summary, code = ask(run, url, budget=1, timeout=1.0)
    assert code == 0
    found = {list(ENDINGS)[row["doc"]]: row["status"] for row in rows(run)}
    assert found == {name: status for name, (_, status) in ENDINGS.items()}
    assert summary["calls"] == len(ENDINGS) == sum(summary["by_class"].values())
    assert summary["by_class"] == Counter(status for _, status in ENDINGS.values())
    assert scores(run) == {0: 2, 1: None}
    for row in rows(run):
        assert (row["score"] is not None) == (row["status"] == "ok")
        assert row["status"] in answers.VALID or row["detail"]
    assert set(answers.CLASSES) == {status for _, status in ENDINGS.values()} | {"quota"}
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
    line = ledger.close(run, ["v1"], judge()).iloc[0]
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
    assert code == client.STOPPED and "quota of the key is used up" in summary["stopped"]
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
        assert told(run) == {0: "ok", 1: "ok", 2: "rejected", 3: "budget stop", 4: "budget stop", 5: "budget stop"}
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
    assert ledger.calls(run, ["v1"], judge()).to_dict("records") == [{"set": "v1", "calls": 4, "today": 2, "former": 2}]


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


def test_a_server_that_is_not_there_gives_gaps_within_the_budget(tmp_path):
    run = pairs_of(tmp_path, ["a", "b"])
    summary, code = ask(run, "http://127.0.0.1:9/v1", budget=2)
    assert code == 0 and summary["by_class"] == {"connection": 4}
    assert told(run) == {0: "connection", 1: "connection"}


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


def test_the_trace_names_the_clients_modules_and_files_though_a_child_used_them(tmp_path, monkeypatch):
    run = pairs_of(tmp_path / "run", ["a"])
    monkeypatch.setenv("QRELBOOK_TRACE", str(tmp_path / "trace"))
    with serving(Script({"*": [valid(1)]})) as url:
        rounds.ask(run, "v1", judge(), url)
    lines = set((tmp_path / "trace").read_text().splitlines())
    assert {"import lib.judge.call", "import lib.judge.contract", f"read {prompt.PROMPT}"} <= lines
    assert f"write {store.path(run, 'v1', 'part-00000')}" in lines


def start(run: Path, url: str, tmp_path: Path, **changed) -> subprocess.Popen:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(configured(run, url, **changed)._asdict()))
    return subprocess.Popen(
        [sys.executable, "-m", "lib.judge.client", str(config)], cwd=paths.ROOT, env=os.environ | {"QRELBOOK_JUDGE_KEY": KEY},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_client_killed_in_the_middle_resumes_to_the_same_answers_and_pays_once(tmp_path):
    texts = [f"t{i}" for i in range(40)]
    whole, broken = pairs_of(tmp_path / "whole", texts), pairs_of(tmp_path / "broken", texts)
    replies = {text: [error(500), valid(i % 3)] if i % 5 == 0 else [valid(i % 3)] for i, text in enumerate(texts)}
    with serving(Script(replies)) as url:
        ask(whole, url)
    script, flying = Script(replies, seconds=0.05), 4
    with serving(script) as url:
        client_process = start(broken, url, tmp_path, concurrency=flying)
        while sum(script.calls.values()) < 15:
            time.sleep(0.01)
        client_process.send_signal(signal.SIGKILL)
        client_process.communicate()
        assert 0 < len(rows(broken)) < 40
        client_process = start(broken, url, tmp_path, concurrency=flying)
        out, _ = client_process.communicate(timeout=60)
    assert client_process.returncode == 0
    assert json.loads(out)["set"] == "v1"
    assert scores(broken) == scores(whole) and len(scores(broken)) == 40
    assert Counter(row["status"] for row in rows(broken))["ok"] == 40  # no answer was paid for twice and kept twice
    assert 0 <= sum(script.calls.values()) - len(rows(broken)) <= flying


@pytest.mark.slow
def test_a_terminated_client_writes_what_came_back_and_says_so(tmp_path):
    run = pairs_of(tmp_path / "run", [f"t{i}" for i in range(30)])
    script = Script({"*": [valid(1)]}, seconds=0.4)
    with serving(script) as url:
        process = start(run, url, tmp_path, concurrency=3)
        assert script.called.wait(30)
        process.terminate()
        out, said = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert json.loads(out)["calls"] == len(rows(run)) == sum(script.calls.values()) == 3
    assert said.splitlines()[-1] == "lib.judge.client: stopped by signal 15"


@pytest.mark.slow
def test_the_client_dies_with_the_process_that_started_it(tmp_path):
    run = pairs_of(tmp_path / "run", [f"t{i}" for i in range(200)])
    config = tmp_path / "config.json"
    script = Script({"*": [valid(1)]}, seconds=0.2)
    code = (
        "import sys, time\nfrom lib import processes\n"
        "print(processes.child('lib.judge.client', sys.argv[1]).pid, flush=True)\ntime.sleep(60)"
    )
    with serving(script) as url:
        config.write_text(json.dumps(configured(run, url, concurrency=2)._asdict()))
        parent = subprocess.Popen([sys.executable, "-c", code, str(config)], cwd=paths.ROOT, stdout=subprocess.PIPE, text=True)
        child = int(parent.stdout.readline())
        assert script.called.wait(30)
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 10
        while Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_no_key_and_no_quoted_text_is_left_anywhere_under_the_run(tmp_path, monkeypatch):
    text = "The sentinel passage of this document says that seven is prime."
    run = pairs_of(tmp_path / "run", [text, "b", "c", "d"])
    echo = [error(400, message=f"Incorrect API key provided: {KEY}. Your input was: {text}")]
    reply = lambda task: {"content": f"{KEY} is the key"}  # noqa: E731
    page = {"raw": f"<html>{KEY} {text}</html>", "type": "text/html"}
    script = Script({text: echo, "b": [reply], "c": [page], "d": [error(401, message=f"bad key {KEY}")]})
    monkeypatch.setenv("OTHER_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    with serving(script) as url, pytest.raises(rounds.JudgeStopped, match="set OTHER_KEY to a valid one") as caught:
        rounds.ask(run, "v1", judge(), url, passes=1, budget=1, key_variable="OTHER_KEY")
    assert {head.get("Authorization") for head in script.headers} == {f"Bearer {KEY}"}
    assert not any("org-of-somebody" in head.values() for head in script.headers)
    assert KEY not in str(caught.value)
    assert len(rows(run)) == 4
    for file in run.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert KEY.encode() not in data, file
            assert "documents" in file.parts or b"sentinel passage" not in data, file


def test_a_key_with_a_line_end_is_refused_by_the_name_of_its_variable(monkeypatch):
    monkeypatch.setenv("QRELBOOK_JUDGE_KEY", "sk-secret\n")
    with pytest.raises(ValueError, match="QRELBOOK_JUDGE_KEY is no key") as caught:
        client.take_key("QRELBOOK_JUDGE_KEY")
    assert "sk-secret" not in str(caught.value)


def test_intents_of_another_version_than_their_set_are_refused(tmp_path):
    run = pairs_of(tmp_path, ["a"], version="v2")
    with pytest.raises(contracts.ContractError, match=r"holds the versions \['v2'\], the set is 'v1'"):
        rounds.ask(run, "v1", judge(), "http://127.0.0.1:9/v1")
