"""The client of batches killed wherever it may be, and a server that starts again: nothing is paid twice and no label changes."""

import random
import signal
import time
from collections import Counter

import pytest
from judge_batches import ask, serving, start, states
from judge_script import Script, content, error, judge, pairs_of, rows, scores, valid

from lib.judge import answers, batch_files, store
from lib.sample.batch_http import Faults

TEXTS = [f"text {i}" for i in range(60)]
SAYS = (0, 1, 2, None)
FAILURES = (error(500), error(429), content("", "length"), content("```json\n{}\n```"))
SOME_FAIL = {text: [*([FAILURES[i // 3 % 4]] if i % 3 == 0 else []), valid(SAYS[i % 4])] for i, text in enumerate(TEXTS)}
LABELS = {i: SAYS[i % 4] for i in range(60)}
LIMITS = {"file_requests": 16}


def calls_of(run) -> Counter:
    return Counter((row["key"], row["pass"], row["attempt"]) for row in rows(run))


@pytest.mark.slow
def test_a_client_killed_at_random_points_ends_with_the_labels_of_the_unbroken_run_and_submits_nothing_twice(tmp_path):
    whole, broken, draws = pairs_of(tmp_path / "whole", TEXTS), pairs_of(tmp_path / "broken", TEXTS), random.Random(7)
    with serving(Script(SOME_FAIL), tmp_path / "one") as (url, one):
        ask(whole, url, **LIMITS)
    script, killed = Script(SOME_FAIL, seconds=0.02), 0
    with serving(script, tmp_path / "two", seconds=0.1) as (url, two):
        for _ in range(14):
            process = start(broken, url, **LIMITS)
            here, seen = batch_files.folder(broken, "v1"), time.monotonic()
            began = {path.name for path in here.glob("*")}
            while {path.name for path in here.glob("*")} == began and process.poll() is None and time.monotonic() - seen < 5:
                time.sleep(0.002)  # until it has done something
            time.sleep(draws.uniform(0.0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
            if len(scores(broken)) == 60:
                break
        ask(broken, url, **LIMITS)
    assert killed >= 3 and scores(broken) == scores(whole) == LABELS
    assert set(calls_of(broken).values()) == {1} and calls_of(broken) == calls_of(whole)
    assert two.submitted() == one.submitted() == Counter(row["key"] for row in rows(broken))
    assert sum(script.calls.values()) == len(rows(broken))  # every call that the server made is one attempt
    assert not batch_files.unfinished(broken, "v1")
    for run in (whole, broken):
        answers.write(run, "v1", judge())
    first, second = (run / "answers" / "v1" / "part-00000.parquet" for run in (whole, broken))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["gathering", "written", "uploaded", "created", "submitted", "downloading", "appending", "clearing", "kept"])
def test_a_client_killed_at_each_step_goes_on_from_there_within_a_cap_that_has_no_call_to_spare(tmp_path, step):
    run, texts = pairs_of(tmp_path / "run", TEXTS[:12]), {text: [valid(SAYS[i % 4])] for i, text in enumerate(TEXTS)}
    with serving(Script(texts), tmp_path / "server") as (url, batches):
        dying = {
            "gathering": "Budget.reserve", "clearing": "Budget.clear",
            "written": "Api.upload", "uploaded": "Api.create", "created": "Api.create", "submitted": "Api.ended", "downloading": "Api.download",
            "appending": "Writer.append", "kept": "Api.remove",
        }[step]  # fmt: skip
        process = start(run, url, dies=dying, after=step == "created", calls=5 if step.endswith("ing") and step != "downloading" else 1, max_calls=12)
        said = process.communicate(timeout=30)[1]
        assert process.returncode == -signal.SIGKILL, said
        assert sum(batches.submitted().values()) == (0 if step in ("gathering", "written", "uploaded") else 12)
        assert len(rows(run)) == {"appending": 4, "clearing": 5, "kept": 12}.get(step, 0)
        ask(run, url, max_calls=12)
        assert set(batches.submitted().values()) == {1} and set(calls_of(run).values()) == {1}
    assert scores(run) == {i: SAYS[i % 4] for i in range(12)}
    assert [it.stage for it in states(run)] == ["done"] and not list((tmp_path / "server" / "files").iterdir())
    assert len(list(batch_files.folder(run, "v1").iterdir())) == 1


def test_a_server_that_starts_again_goes_on_with_its_batches_and_the_client_waits_for_it(tmp_path):
    run, script = pairs_of(tmp_path / "run", TEXTS), Script(SOME_FAIL, seconds=0.1)
    with serving(script, tmp_path / "server") as (url, _):
        process = start(run, url, longest_wait=1.0)
        assert script.called.wait(20)
        time.sleep(0.2)
    port = int(url.rpartition(":")[2].removesuffix("/v1"))
    time.sleep(0.5)
    with serving(script, tmp_path / "server", at=port) as (_, batches):
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said
        assert batches.submitted() == Counter(row["key"] for row in rows(run))
    assert scores(run) == LABELS


def test_a_creation_that_nobody_heard_of_and_a_kill_after_it_are_found_by_the_word_the_batch_carries(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS[:8])
    with serving(Script({"*": [valid(1)]}), tmp_path / "server", Faults(batches=0, lost=1)) as (url, batches):
        process = start(run, url, dies="Api._listed")
        assert process.wait(30) == -signal.SIGKILL and sum(batches.submitted().values()) == 8
        ask(run, url)
        assert set(batches.submitted().values()) == {1}
    assert len(scores(run)) == 8


def test_a_torn_attempt_of_a_killed_append_is_written_again(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS[:6])
    with serving(Script({"*": [valid(1)]}), tmp_path / "server") as (url, batches):
        process = start(run, url, dies="Writer.append", calls=4)
        assert process.wait(30) == -signal.SIGKILL
        target = store.path(run, "v1", "part-00000")
        target.write_bytes(target.read_bytes()[:-30])
        ask(run, url)
        assert set(batches.submitted().values()) == {1}
    assert len(scores(run)) == 6 and len(rows(run)) == 6
