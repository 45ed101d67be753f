"""What a server may send to do harm: headers, keys, endless replies, control characters."""

import contextlib
import json
import subprocess
import sys
import time
import zlib

import pytest
from aiohttp import web
from judge_script import KEY, Script, ask, content, error, fields, judge, pairs_of, rows, scores, serving, told, valid

from lib import paths
from lib.judge import __main__ as show
from lib.judge import contract, drivers, reply, store

TASK = "0123456789abcdef"


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}, {"retry-after": "1.2.3"}, {"retry-after": "soon"},
        {"retry-after": "-5"}, {"retry-after": ""}, {"retry-after": "Mon, 32 Foo 2020 99:99:99 +9999999999"}, {"retry-after-ms": "nan"},
        {"retry-after-ms": "x"}, {"retry-after": "\x00" * 50}, {"retry-after": "Mon, 01 Jan 0000 00:00:00 GMT"}, {},
    ],
)  # fmt: skip
def test_an_unreadable_retry_after_counts_as_none(headers):
    assert reply.retry_after(headers) is None


def test_an_unreadable_retry_after_ends_no_run(tmp_path):
    run = pairs_of(tmp_path, ["a"])
    date = {"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}
    with serving(Script({"a": [error(429, headers=date), valid(1)]})) as url:
        assert ask(run, url)[1] == 0
    assert scores(run) == {0: 1}


def everything(run) -> str:
    return "".join(file.read_text() for file in (run / "attempts").rglob("*.jsonl"))


@pytest.mark.parametrize("key", [KEY, 'sk-"quoted"/and\\slashed', "sk.*+?()[]{}|^$"])
def test_the_key_is_cut_out_of_everything_a_reply_says(tmp_path, key):
    escaped = "".join(f"\\u{ord(character):04X}" for character in key)
    half = escaped[:60] + json.dumps(key[10:])[1:-1]
    spelt = {
        "plain": valid(2, rationale=f"The key is {key}, is it not?"),
        "escaped": lambda task: {"content": json.dumps(fields(1, task, rationale="@")).replace("@", f"it is {escaped}")},
        "half": lambda task: {"content": json.dumps(fields(1, task, rationale="@")).replace("@", f"it is {half}")},
        "in a field": valid(2, answer_validity="x" * 70 + key),
        "as a field": lambda task: {"content": json.dumps(fields(2, task) | {key: 1})},
        "refused": content(None, refusal=f"{'x' * 290}{key}"),
        "message": error(400, message="y" * 275 + key),
        "code": error(500, code=key),
    }
    run = pairs_of(tmp_path, list(spelt))
    with serving(Script({name: [reply] for name, reply in spelt.items()})) as url:
        ask(run, url, key=key, budget=1)
    assert scores(run) == {0: 2, 1: 1, 2: 1}
    assert [row["rationale"] for row in rows(run)][:3] == ["The key is [key], is it not?", "it is [key]", "it is [key]"]
    for row in rows(run):
        for text in (row["rationale"], row["detail"], row["reply"], row["request_id"]):
            assert not text or not any(key[at : at + 6] in text for at in range(len(key) - 5)), text
    assert escaped not in everything(run).replace("\\\\", "\\")


def test_a_request_id_is_cleaned_before_it_is_cut():
    asked = reply.Asked(TASK, "the query and the document", KEY, "QRELBOOK_JUDGE_KEY")
    outcome = reply.clean(reply.Outcome("ok", request_id="r" * 190 + KEY), asked)
    assert outcome.request_id == "r" * 190 + "[key]"


def test_an_endless_reply_is_judged_whole_and_kept_in_part(tmp_path):
    long = "x" * 150_000
    spelt = {
        "words": content(long), "broken": valid(2, rationale=long), "padded": lambda task: {"content": json.dumps(fields(2, task)) + " " * 150_000},
        "short": valid(1),
    }  # fmt: skip
    run = pairs_of(tmp_path, list(spelt))
    with serving(Script({name: [reply] for name, reply in spelt.items()})) as url:
        ask(run, url, budget=1)
    assert told(run) == {0: "not JSON", 1: "contract violation", 2: "ok", 3: "ok"}
    by_doc = {row["doc"]: row for row in rows(run)}
    for doc in range(3):
        assert len(by_doc[doc]["reply"]) == 100_000
        assert by_doc[doc]["detail"].endswith("characters is kept to its first 100,000") and len(by_doc[doc]["detail"]) < 400
    assert by_doc[0]["detail"].startswith("the reply is not JSON") and by_doc[3]["detail"] is None


class Endless(Script):
    """Answers each request for as long as anybody reads, or with a few bytes that unpack to as much."""

    def __init__(self, status, packed):
        super().__init__({})
        self.status, self.packed, self.sent = status, packed, 0

    async def answer(self, request):
        await request.read()
        self.calls["all"] += 1
        headers = {"content-type": "application/json"} | ({"content-encoding": "gzip"} if self.packed else {})
        response = web.StreamResponse(status=self.status, headers=headers)
        await response.prepare(request)
        packing = zlib.compressobj(wbits=31)
        with contextlib.suppress(ConnectionError):
            for _ in range(1_000):
                piece = b" " * 2**16
                await response.write(packing.compress(piece) if self.packed else piece)
                self.sent += len(piece)
            await response.write(packing.flush() if self.packed else b"")
        return response


@pytest.mark.parametrize("driver", ["sdk", "direct"])
@pytest.mark.parametrize(("status", "packed", "said"), [(200, False, "not JSON"), (500, False, "server error"), (200, True, "not JSON")])
def test_an_answer_without_end_is_not_read_to_its_end(tmp_path, monkeypatch, driver, status, packed, said):
    script, read, whole = Endless(status, packed), [], drivers.whole

    async def measured(pieces):
        read.append(await whole(pieces))
        return read[-1]

    monkeypatch.setattr(drivers, "whole", measured)
    run = pairs_of(tmp_path, ["a"])
    with serving(script) as url:
        assert ask(run, url, driver=driver, budget=2, timeout=20.0)[1] == 0
    assert script.calls["all"] == 2 and told(run) == {0: said}
    assert len(read) == 2 and all(reply.LONGEST_BODY < len(body) <= reply.LONGEST_BODY + 2**20 for body in read)
    assert packed or script.sent < 2 * (reply.LONGEST_BODY + 16 * 2**20)  # what lay in buffers
    assert all("the body is longer than 4,194,304 bytes, the most that are read" in row["detail"] for row in rows(run))


def test_twenty_thousand_keys_are_checked_in_no_time():
    keys = [f'"k{number}": 1' for number in range(20_000)]
    started = time.perf_counter()
    for reply in ("{" + ", ".join([*keys, '"k19999": 2']) + "}", "{" + ", ".join(keys) + "}"):
        with pytest.raises(contract.ContractViolation, match="'k19999' stands twice|has the unknown fields"):
            contract.check(reply, TASK)
    assert time.perf_counter() - started < 1.0


def test_a_repeated_key_of_a_million_letters_makes_a_short_reason():
    with pytest.raises(contract.ContractViolation) as caught:
        contract.check('{"%s": 1, "%s": 2}' % (("k" * 1_000_000,) * 2), TASK)
    assert len(caught.value.reason) < 200


def test_show_escapes_what_a_terminal_obeys_and_marks_what_has_no_utf8(tmp_path):
    run = pairs_of(tmp_path, ["a", "b"])
    said = "red \x1b[31m, bell \x07, back \x9b2J, turned \u202e, half \ud800, and é\nα"
    with serving(Script({"a": [content(None, refusal=said)], "b": [valid(1, rationale="\x1b]0;title\x07 α")]})) as url:
        ask(run, url, budget=1)
    assert list(show.show(run, "q0", "d0"))[-2] == r"    red \x1b[31m, bell \x07, back \x9b2J, turned \u202e, half �, and é α"
    assert r"    \x1b]0;title\x07 α" in show.show(run, "q0", "d1")


@pytest.mark.parametrize(
    "broken, text, said",
    [
        ("queries/manifest.json", "{", "manifest.json"),
        ("intents/v1/part-00000.parquet", "PAR1", "part-00000.parquet"),
        ("attempts/v1/part-00000.jsonl", "{}\n{}\n", "line 1 is no attempt"),
        ("attempts/v1/queries.json", "{}", "queries.json is no list of partitions"),
        ("attempts/v1/queries.json", "[" * 100_000, "queries.json is no list of partitions"),
        ("attempts/v1/part-00000.jsonl", "[" * 100_000 + "\n{}\n", "line 1 is no attempt"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path, broken, text, said):
    run = pairs_of(tmp_path, ["a"])
    with serving(Script({"*": [valid(1)]})) as url:
        ask(run, url)
    (run / broken).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "lib.judge", "show", "q0", "d0", "--run", str(run)], cwd=paths.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_last_line_without_its_line_feed_was_paid_for(tmp_path):
    run = pairs_of(tmp_path, ["a", "b"])
    script = Script({"*": [valid(1)]})
    with serving(script) as url:
        ask(run, url)
        source = store.path(run, "v1", "part-00000")
        source.write_bytes(source.read_bytes()[:-1])
        assert ask(run, url)[0]["calls"] == 0 and scores(run) == {0: 1, 1: 1}
        ask(run, url, parameters={"temperature": 0.5})
    assert source.read_bytes().count(b"\n") == len(rows(run)) == 4
    assert not list(source.parent.glob("*.torn-*")) and scores(run) == {0: 1, 1: 1}
    assert judge().parameters == {"temperature": 0.0}


LATEX = r"\frac{a_1}{b}\leq\sqrt{\gamma}\sum_{i}\binom{n}{i}\tau é" + "\nand so the claim holds."


@pytest.mark.parametrize("said", [LATEX, repr(LATEX), json.dumps(LATEX), json.dumps(json.dumps(LATEX)), ascii([{"content": LATEX}]), " ".join(LATEX.split())])
def test_no_spelling_of_a_document_stays_in_a_detail(said):
    asked = reply.Asked(TASK, f"task_id: {TASK}\n\n<<<DOCUMENT>>>\n{LATEX}", KEY, "QRELBOOK_JUDGE_KEY")
    choice = {"finish_reason": "stop", "message": {"content": None, "refusal": said}}
    for status, body in ((400, {"error": {"message": f"Input should be short, got {said}"}}), (200, {"choices": [choice]}), (200, {"choices": [{"finish_reason": said}]})):
        detail = reply.outcome(status, {}, json.dumps(body).encode(), asked).detail
        assert detail.endswith(" (the message quotes the request and is left out)") and "frac" not in detail and len(detail) <= 120


def test_the_version_that_every_request_names_is_no_quotation():
    asked = reply.Asked(TASK, f"task_id: {TASK}\nguideline_version: {contract.GUIDELINE}\n\ntext", KEY, "QRELBOOK_JUDGE_KEY")
    choice = {"finish_reason": "stop", "message": {"content": json.dumps(fields(1, guideline_version="v0"))}}
    detail = reply.outcome(200, {}, json.dumps({"choices": [choice]}).encode(), asked).detail
    assert detail == f"guideline_version is 'v0'; it must be '{contract.GUIDELINE}'"


def test_a_count_of_tokens_that_no_reply_has_is_none():
    choice = {"finish_reason": "length", "message": {}}
    for count, kept in ((7, 7), (2**31, None), (2**63 - 1, None), (-1, None), (7.0, None), (True, None)):  # two of 2^62 each would sum to less than nothing
        body = {"choices": [choice], "usage": {"prompt_tokens": count, "completion_tokens": count}}
        found = reply.outcome(200, {}, json.dumps(body).encode(), reply.Asked(TASK, "", KEY, "K"))
        assert (found.input_tokens, found.output_tokens) == (kept, kept)


@pytest.mark.parametrize("driver", ["sdk", "direct"])
def test_a_status_line_that_is_no_utf_8_is_a_failed_call(tmp_path, driver):
    class Odd(Script):
        async def answer(self, request):
            if not self.calls["odd"]:
                self.calls["odd"] = 1
                request.transport.write(b"HTTP/1.1 200 \xff\xfe\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                request.transport.close()
                return None
            return await super().answer(request)

    run = pairs_of(tmp_path, ["a"])
    with serving(Odd({"*": [valid(1)]})) as url:
        assert ask(run, url, driver=driver)[1] == 0
    assert scores(run) == {0: 1} and [row["status"] for row in rows(run)][0] in ("connection", "empty")
