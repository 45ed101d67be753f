"""The judge's client killed at many random points, and a secret key sent to servers that quote it: what is left on disk."""

import json
import random
import signal
import time
from collections import Counter

import psutil
import pytest
import whole_run
from judge_script import CUT, DROP, KEY, Script, content, error, judge, pairs_of, rows, scores, serving, start, valid
from whole_run import ROOT

from lib.judge import answers, ledger, store

KILLS, FLYING, PAIRS = 20, 6, 260


def replies(texts: list[str]) -> dict[str, list]:
    """Two pairs in three answer at once; of the others each fails at first in a way of its own, below the budget."""
    failures = [
        error(500), error(429), error(429, "rate_limit_exceeded", {"retry-after-ms": "20"}), CUT, content("```json\n{}\n```"), content("", "length"),
        {"raw": "<html>busy</html>", "type": "text/html"}, {"content": None, "refusal": "no"}, content("x", "content_filter"), error(503), DROP,
    ]  # fmt: skip
    says = (0, 1, 2, None)
    return {text: [*([failures[i // 3 % len(failures)]] if i % 3 == 0 else []), valid(says[i % 4])] for i, text in enumerate(texts)}


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["sdk", "direct"])
def test_a_client_killed_at_twenty_points_ends_with_the_labels_of_the_unbroken_run(tmp_path, driver):
    texts = [f"text {i}" for i in range(PAIRS)]
    whole, broken = pairs_of(tmp_path / "whole", texts), pairs_of(tmp_path / "broken", texts)
    options = {"driver": driver, "budget": 4, "passes": 2, "concurrency": FLYING}
    unbroken = Script(replies(texts))
    with serving(unbroken) as url:
        process = start(whole, url, tmp_path, **options)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    reached = [row for row in rows(whole) if row["status"] != "connection" or row["detail"]]
    assert len(reached) == sum(unbroken.calls.values())  # the server's own count of calls is the number of attempts

    draws, script, killed = random.Random(11), Script(replies(texts), seconds=0.01), 0
    with serving(script) as url:
        for _ in range(KILLS):
            before = sum(script.calls.values())
            process = start(broken, url, tmp_path, **options)
            while sum(script.calls.values()) == before and process.poll() is None:
                time.sleep(0.002)
            time.sleep(draws.uniform(0.0, 0.06))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
        assert killed == KILLS and len(rows(broken)) < PAIRS
        process = start(broken, url, tmp_path, **options)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert scores(broken) == scores(whole) and len(scores(broken)) == PAIRS
    assert 0 <= sum(script.calls.values()) - len(rows(broken)) <= KILLS * FLYING
    paid = Counter(row["key"] for row in rows(broken) if row["status"] in answers.VALID)
    assert set(paid.values()) == {1}
    for run in (whole, broken):
        answers.write(run, "v1", judge())
        book = ledger.close(run, ["v1"])
        assert book["sent"].sum() == book["valid"].sum() == PAIRS
    first, second = (run / "answers" / "v1" / "part-00000.parquet" for run in (whole, broken))
    assert first.read_bytes() == second.read_bytes()


def command_lines() -> set[str]:
    found = set()
    for process in psutil.process_iter(["cmdline"]):
        found.update(process.info["cmdline"] or [])
    return found


@pytest.mark.slow
def test_a_key_that_the_server_quotes_in_every_failure_is_in_no_file_notebook_log_or_argument(tmp_path):
    """A real plan, up to its first judging notebook, against a server that answers every call with a quotation of key and document."""
    quoting = [
        lambda task: error(500, message=f"worker died on {KEY}"),
        lambda task: error(429, "rate_limit_exceeded", {"retry-after-ms": "1", "x-key": KEY}, f"slow down {KEY}"),
        lambda task: {"content": f"{KEY} {json.dumps(KEY)[1:-1]}"},
        lambda task: {"content": None, "refusal": f"I will not read {KEY}"},
        lambda task: {"content": f'{{"{KEY}": 1}}', "finish": "length"},
        lambda task: {"raw": f"<html>{KEY}</html>", "type": "text/html"},
        CUT,
        DROP,
        lambda task: error(400, "invalid_request", message=f"Bearer {KEY} may not"),
    ]

    class Quoting(Script):
        def __init__(self):
            super().__init__({"*": [valid(1)]})
            self.replies = self

        def get(self, document, _=None):
            at = sum(map(ord, document)) % len(quoting)
            return [quoting[at], quoting[(at + 1) % len(quoting)], valid(1)] if len(document) % 2 else [valid(0)]

    script, seen = Quoting(), set()
    with serving(script) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("QRELBOOK_JUDGE_URL", url)
        patch.setenv("QRELBOOK_JUDGE_KEY", KEY)
        process = whole_run.start("tiny", tmp_path, "--set", "03-probe.judge=env", "--set", "03-probe.probe_queries=4", "--set", "06-judge.judge=sample")
        while not (tmp_path / "runs/tiny/notebooks/05-route.ipynb").exists() and process.poll() is None:
            seen |= command_lines()
            time.sleep(0.05)
        process.terminate()
        printed, _ = process.communicate(timeout=60)
    attempts = [row for source in store.every(tmp_path / "runs/tiny", "probe") for row in store.read(source)]
    assert {head.get("Authorization") for head in script.headers} == {f"Bearer {KEY}"}
    assert len({row["status"] for row in attempts}) >= 6, Counter(row["status"] for row in attempts)
    assert KEY not in printed and not any(KEY in line for line in seen)
    assert any("lib.judge.client" in line for line in seen), "the client was never seen at work"
    read = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [str(file) for file in read if KEY.encode() in file.read_bytes()] == []
    assert any(file.suffix == ".ipynb" for file in read) and str(ROOT) not in map(str, read)
