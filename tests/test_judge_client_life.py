"""The client as a process: killed, terminated, orphaned, resumed; what it leaves of secrets."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from judge_script import KEY, Script, configured, ask, error, judge, pairs_of, rows, scores, serving, start, valid

from lib import paths
from lib.judge import asking, prompt, rounds, store


def test_the_trace_names_the_clients_modules_and_files_though_a_child_used_them(tmp_path, monkeypatch):
    run = pairs_of(tmp_path / "run", ["a"])
    monkeypatch.setenv("QRELBOOK_TRACE", str(tmp_path / "trace"))
    with serving(Script({"*": [valid(1)]})) as url:
        rounds.ask(run, "v1", judge(), url)
    lines = set((tmp_path / "trace").read_text().splitlines())
    assert {"import lib.judge.drivers.sdk", "import lib.judge.contract", f"read {prompt.PROMPT}"} <= lines
    assert f"write {store.path(run, 'v1', 'part-00000')}" in lines


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
        while script.flying < 3:
            time.sleep(0.01)
        process.terminate()
        out, said = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert json.loads(out)["calls"] == len(rows(run)) == sum(script.calls.values()) == 4
    assert said.splitlines()[-1] == "lib.judge.client: v1: stopped by signal 15"


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
        asking.take_key("QRELBOOK_JUDGE_KEY")
    assert "sk-secret" not in str(caught.value)
