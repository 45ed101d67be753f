"""The Batch API as a second driver of the store: the labels of single calls, files within limits, and every odd line with its class."""

import asyncio
import json
import time
import urllib.request
from collections import Counter

import pytest
import yaml
from aiohttp import web
from judge_batches import ask, serving, start, states
from judge_script import KEY, Script, configured, content, error, fields, judge, pairs_of, rows, scores, told, valid
from judge_script import serving as plain

from lib import paths
from lib.judge import answers, asking, batch, batch_api, batch_files, batch_lines, ledger, reply
from lib.judge.reply import Asked
from lib.sample import batch_http
from lib.sample.batch_http import Faults

SAYS = (0, 1, 2, None)
TEXTS = [f"text {i}" for i in range(24)]
GOOD = {text: [valid(SAYS[i % 4])] for i, text in enumerate(TEXTS)}
LABELS = {i: SAYS[i % 4] for i in range(24)}
FAILING = {
    text: [
        *({0: [error(500)], 4: [error(429)], 8: [content("", "length")], 12: [{"content": None, "refusal": "no"}], 16: [content("x")]}.get(i, [])),
        valid(SAYS[i % 4]),
    ]
    for i, text in enumerate(TEXTS)
}  # fmt: skip


def test_a_set_is_asked_by_batches_and_the_calls_are_in_the_store_like_any_other(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)
    with serving(Script(GOOD), tmp_path / "server") as (url, batches):
        summary, _ = ask(run, url)
        assert (summary["asked"], summary["calls"], summary["batches"], summary["stopped"]) == (24, 24, 1, None)
        assert scores(run) == LABELS and set(batches.submitted().values()) == {1}
        assert ask(run, url)[0]["calls"] == 0  # nothing is owed any more
    answers.write(run, "v1", judge())
    assert ledger.close(run, ["v1"])["valid"].sum() == 24
    assert all(row["request_id"] and row["input_tokens"] == 11 and row["output_tokens"] == 7 for row in rows(run))


def test_a_failed_line_is_asked_again_within_the_budget_and_keeps_its_class(tmp_path):
    run, script = pairs_of(tmp_path / "run", TEXTS), Script(FAILING)
    with serving(script, tmp_path / "server") as (url, _):
        summary, _ = ask(run, url)
    assert scores(run) == LABELS and summary["batches"] == 2
    classes = {"server error": 1, "rate limited": 1, "truncated": 1, "refusal": 1, "not JSON": 1}
    assert Counter(row["status"] for row in rows(run) if row["status"] not in answers.VALID) == classes
    assert len(rows(run)) == sum(script.calls.values())


def test_files_are_cut_by_count_and_by_bytes(tmp_path):
    by_count, by_bytes = pairs_of(tmp_path / "count", TEXTS), pairs_of(tmp_path / "bytes", TEXTS)
    with serving(Script(GOOD), tmp_path / "server") as (url, batches):
        assert ask(by_count, url, file_requests=7)[0]["batches"] == 4
        size = max(it.bytes for it in states(by_count)) // 7 + 1
        assert ask(by_bytes, url, file_bytes=3 * size + size // 2)[0]["batches"] == 8
        assert sorted(it.requests for it in states(by_count)) == [3, 7, 7, 7]
        assert all(it.bytes <= 3.5 * size for it in states(by_bytes))
        assert set(batches.submitted().values()) == {2}  # once a run
        _, said = ask(pairs_of(tmp_path / "narrow", TEXTS), url, file_bytes=500, code=1)
        assert "a file of a batch at most 500" in said
    assert scores(by_count) == scores(by_bytes) == LABELS


def test_no_document_text_stays_here_or_at_the_server_once_the_lines_are_kept(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)
    with serving(Script(GOOD), tmp_path / "server") as (url, _):
        ask(run, url)
    assert [path.name for path in (run / "attempts" / "v1" / "batches").iterdir()] == [f"{states(run)[0].submission}.json"]
    assert list((tmp_path / "server" / "files").iterdir()) == []


@pytest.mark.parametrize("faults, gaps", [
    (Faults(missing=0.2, expired=0.2, repeated=0.2, differing=0.2, unknown=2), {"timeout", "contract violation"}),
    (Faults(torn=True), {"timeout"}),
    (Faults(refused=2, lost=1), set()),
], ids=["spoilt lines", "torn file", "create"])  # fmt: skip
def test_each_fault_of_a_batch_has_its_class_and_none_a_label(tmp_path, faults, gaps):
    run = pairs_of(tmp_path / "run", TEXTS)
    with serving(Script(GOOD), tmp_path / "server", faults) as (url, batches):
        _, said = ask(run, url, budget=1, passes=1)
        first = rows(run)
        assert {row["status"] for row in first} - {"ok", "unevaluable"} == gaps
        assert all(row["score"] is None and row["detail"] for row in first if row["status"] in gaps)
        assert len(first) == len({row["key"] for row in first}) == 24 and set(batches.submitted().values()) == {1}
        odd = states(run)[0]
        assert (odd.unknown == ["unknown-0", "unknown-1"]) == ("2 ids that were not asked for (unknown-0, unknown-1)" in said) == bool(faults.unknown)
        assert bool(odd.missing) == bool(faults.missing or faults.torn) and bool(odd.unreadable) == faults.torn
        assert bool(odd.repeated) == bool(faults.repeated) and bool(odd.differing) == bool(faults.differing)
        details = " ".join(row["detail"] or "" for row in first)
        assert ("batch_expired" in details) == bool(faults.expired) and ("different answers" in details) == bool(faults.differing)
        ask(run, url, budget=1, passes=2)  # a later pass asks the gaps again, and the server's second batch is sound
    assert scores(run) == LABELS
    assert set(told(run).values()) == {"ok", "unevaluable"}


def test_a_line_of_a_file_that_was_never_asked_for_or_differs_gives_no_judgment(tmp_path):
    asked = Asked("0123456789abcdef", "sent", "key-of-the-server", "KEY")

    def line(name, score, **changed):
        message = {"content": json.dumps(fields(score)), "refusal": None}
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {}}
        return {"custom_id": name, "response": {"status_code": 200, "request_id": "r", "body": body}, "error": None} | changed

    told = (line("a", 2), line("a", 2), line("b", 2), line("b", 1), line("z", 0))
    (tmp_path / "output").write_text("".join(json.dumps(said) + "\n" for said in told) + "[]\n7\n{")
    lines = batch_lines.read([tmp_path / "output", tmp_path / "none"], ["a", "b", "c"])
    assert (lines.unknown, lines.unreadable) == (["z"], 3)
    found = {name: batch_lines.outcome(said, asked, "completed") for name, said in lines.said.items()}
    assert (found["a"][0].judgment.score, found["a"][1:]) == (2, (True, False))
    assert (found["b"][0].status, found["b"][0].judgment, found["b"][1:]) == ("contract violation", None, (False, True))
    assert (found["c"][0].status, found["c"][0].judgment) == ("timeout", None)
    expired = {"response": None, "error": {"code": "batch_expired", "message": "m"}}
    spoilt = [expired, {"response": 3}, {"response": {"status_code": "200"}}, {"error": 7}]
    ended = [batch_lines.outcome([{"custom_id": "a"} | said], asked, "expired")[0] for said in spoilt]
    assert [one.status for one in ended] == ["timeout", "server error", "server error", "server error"]
    assert [one.input_tokens for one in ended] == [0, None, None, None]  # what expired was never executed; of the others nobody knows


def test_a_line_without_end_is_one_that_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reply, "LONGEST_BODY", 1_000)
    lines = [b'{"custom_id": "%s"}' % name for name in (b"a", b"b" * 5_000, b"c", b"d" * 981)]  # the last is of 1,000 bytes
    (tmp_path / "output").write_bytes(b"\n".join(lines))
    found = batch_lines.read([tmp_path / "output"], ["a", "c", "d" * 981])
    assert found.unreadable == 1 and not found.unknown and [len(said) for said in found.said.values()] == [1, 1, 1]


def test_a_file_without_end_is_not_fetched_and_the_batch_is_found_again(tmp_path, monkeypatch):
    run = pairs_of(tmp_path / "run", TEXTS)
    monkeypatch.setattr(batch_api, "_FILE_BYTES", 5_000)
    with serving(Script(GOOD), tmp_path / "server") as (url, batches):
        summary, code = asyncio.run(batch._main(configured(run, url), KEY))
        assert code == 3 and "is longer than 5,000 bytes; look at the server" in summary["stopped"]
        assert not rows(run) and not list(batch_files.folder(run, "v1").glob(".*"))
        ask(run, url)
        assert set(batches.submitted().values()) == {1}
    assert scores(run) == LABELS


@pytest.mark.parametrize("step", ["_upload", "_create", "_retrieve"])
@pytest.mark.parametrize("body", ['{"id": ', "[" * 100_000, " " * 5_000_000, "[]", "null", "<html>"], ids=["torn", "deep", "long", "list", "null", "page"])
def test_an_answer_about_a_batch_that_is_no_json_object_is_asked_for_again(tmp_path, monkeypatch, body, step):
    run, answer, bad = pairs_of(tmp_path / "run", TEXTS[:2]), getattr(batch_http.Batches, step), [body]

    async def once(self, request):
        kind = "text/html" if body == "<html>" else "application/json"
        return web.Response(text=bad.pop(), content_type=kind) if bad else await answer(self, request)

    monkeypatch.setattr(batch_http.Batches, step, once)
    with serving(Script(GOOD), tmp_path / "server") as (url, batches):
        assert asyncio.run(batch._main(configured(run, url), KEY))[1] == 0
        assert set(batches.submitted().values()) == {1}
    assert not bad and len(scores(run)) == 2


def test_the_progress_says_what_is_answered_spent_and_done_at_the_server(tmp_path, monkeypatch, capsys):
    run, prices, public = pairs_of(tmp_path / "run", TEXTS), priced(tmp_path), batch_http._public
    monkeypatch.setattr(batch_http, "_public", lambda batch: public(batch) | {"request_counts": {"total": None, "completed": 7, "failed": "none"}})

    async def often(run):
        await batch._report(run, 0.05)

    with serving(Script(GOOD), tmp_path / "server", seconds=0.1) as (url, _):
        held = batch.Run(configured(run, url, prices=prices, concurrency=1, file_requests=20), KEY)
        assert asyncio.run(asking.to_the_end(held, often))[1] == 0
    said = capsys.readouterr().err
    assert "judge v1 pass 1: 0 answered in 0 calls, 0.00 USD spent, 1 of 1 batches open with 7 requests done, after 0 s" in said
    assert "judge v1 pass 1: 20 answered in 20 calls, 0.00 USD spent, 1 of 2 batches open with 7 requests done, after " in said


def test_a_batch_that_the_server_does_not_run_stops_and_leaves_its_pairs_unasked(tmp_path, monkeypatch):
    run = pairs_of(tmp_path / "run", TEXTS)
    monkeypatch.setattr("lib.sample.batch_http.REQUESTS", 10)
    with serving(Script(GOOD), tmp_path / "server") as (url, _):
        summary, said = ask(run, url, code=3)
        assert "more than 10 requests" in said and "mend that and run again" in summary["stopped"]
        assert not rows(run) and not states(run)
        ask(run, url, file_requests=10)
    assert scores(run) == LABELS


def test_a_server_without_batches_or_with_another_memory_is_named(tmp_path):
    run, other = pairs_of(tmp_path / "run", TEXTS), pairs_of(tmp_path / "other", TEXTS)
    with plain(Script(GOOD)) as url:
        assert "has no Batch API; take another driver" in ask(other, url, code=3, max_calls=24)[1]
        assert not list(batch_files.folder(other, "v1").iterdir()) and not (other / "attempts" / "in_flight.bin").exists()
    with serving(Script(GOOD), tmp_path / "one", seconds=5.0) as (url, batches):
        process = start(run, url)
        while not any(it.stage == batch_files.SUBMITTED for it in states(run)):
            assert process.poll() is None
            time.sleep(0.01)
        process.terminate()
        said = process.communicate(timeout=20)[1]
        assert process.returncode == 143 and "its batches go on, run again to fetch them" in said
    with serving(Script(GOOD), tmp_path / "another") as (url, batches):
        assert "run with the url that it was submitted to, or delete" in ask(run, url, code=3)[1]
        assert not batches.submitted()


def test_neither_key_nor_text_that_the_lines_quote_is_in_a_file_of_the_run(tmp_path):
    secret = "a sentence of the document that nobody may quote in a message"
    run, quoting = pairs_of(tmp_path / "run", [secret, *TEXTS[:3]]), error(500, message=f"{KEY} fell over {secret}")
    with serving(Script({secret: [quoting], "*": [content(f"{KEY} x")]}), tmp_path / "server") as (url, _):
        _, said = ask(run, url, budget=1, passes=1)
    assert len(rows(run)) == 4 and KEY not in said
    written = [file.read_bytes() for file in (run / "attempts").rglob("*") if file.is_file()]
    assert written and not any(KEY.encode() in data or secret.encode() in data for data in written)


def test_quota_and_a_refused_key_end_the_run(tmp_path):
    for name, reply, status in (("quota", error(429, "insufficient_quota"), "quota"), ("key", error(401, "invalid_api_key"), "unavailable")):
        run = pairs_of(tmp_path / name, TEXTS[:3])
        with serving(Script({"*": [reply]}), tmp_path / f"server {name}") as (url, batches):
            summary, _ = ask(run, url, code=3)
            assert summary["by_class"] == {status: 3} and set(batches.submitted().values()) == {1}


def test_a_batch_cancelled_at_the_server_keeps_what_was_answered(tmp_path):
    run, script = pairs_of(tmp_path / "run", TEXTS), Script(GOOD, seconds=0.2)
    with serving(script, tmp_path / "server") as (url, _):
        process = start(run, url)
        assert script.called.wait(20)
        while not any(it.batch for it in states(run)):
            time.sleep(0.01)
        cancel = urllib.request.Request(f"{url}/batches/{states(run)[0].batch}/cancel", method="POST", headers={"Authorization": "Bearer k"})
        assert json.load(urllib.request.urlopen(cancel))["status"] == "cancelling"
        said = process.communicate(timeout=30)[1]
        assert process.returncode == 3 and "was cancelled at the server" in said
        classes = Counter(row["status"] for row in rows(run))
        assert classes["timeout"] and classes["ok"] and classes.total() == 24
        ask(run, url)
    assert scores(run) == LABELS


def test_a_cap_of_calls_ends_the_last_file_before_it_and_the_run_goes_on_once_it_is_raised(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)
    with serving(Script({"*": [error(500)]}), tmp_path / "server") as (url, batches):
        summary, said = ask(run, url, file_requests=7, code=3, max_calls=30)
        assert "max_calls" in summary["stopped"] and batches.submitted().total() == summary["calls"] == len(rows(run)) == 30
        assert "max_calls" in ask(run, url, code=3, max_calls=30)[0]["stopped"] and batches.submitted().total() == 30
    with serving(Script(GOOD), tmp_path / "sound") as (url, batches):
        ask(run, url, max_calls=54)
        assert batches.submitted().total() == 24
    assert scores(run) == LABELS


def priced(folder) -> str:
    """A file of prices that holds the model of these tests."""
    known = yaml.safe_load((paths.ROOT / "lib" / "judge" / "prices.yaml").read_text())
    (folder / "prices.yaml").write_text(yaml.safe_dump(known | {"models": {"m": next(iter(known["models"].values()))}}))
    return str(folder / "prices.yaml")


def test_a_cap_of_money_reserves_a_file_at_worst_case_and_settles_by_what_its_lines_counted(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)
    options = {"prices": priced(tmp_path), "parameters": {"temperature": 0.0, "max_completion_tokens": 100}}
    with serving(Script(GOOD), tmp_path / "server") as (url, _):
        ask(run, url, max_cost=1000.0, **options)
    costs = {row["cost"] for row in rows(run)}
    assert len(costs) == 1 and 0 < min(costs) < 0.01
    assert len(rows(run)) == 24


def test_the_circuit_breaker_takes_the_lines_of_a_batch(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)
    with serving(Script({"*": [content("x")]}), tmp_path / "server") as (url, batches):
        summary, _ = ask(run, url, file_requests=8, code=3, bad_share=0.5, bad_window=8, concurrency=1)
        assert "first replies were bad" in summary["stopped"] and batches.submitted().total() == 8
