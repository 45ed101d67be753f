"""Every failure that the local judge knows, through the real client: each attempt has its class, and none is lost or counted twice."""

import json
from collections import Counter

import pytest
from judge_script import intent, table
from planted_judge import DOCUMENTS, PAIRS, QUERIES, plant, post, request

from lib.judge import answers, prompt, rounds, store
from lib.sample import failures, judge_server, personality

BY = prompt.judge("planted", temperature=0.0)
CLASS = {
    "rate limit": "rate limited", "server error": "server error", "cut body": "connection", "refusal": "refusal", "length": "truncated",
    "rate limit without a wait": "rate limited", "quota": "quota", "no access": "unavailable", "reset": "connection", "hang": "timeout",
    "html": "not JSON", "empty": "empty", "content filter": "content filter", "cut JSON": "not JSON", "wrong task": "contract violation",
    "contradiction": "contract violation", "fences": "not JSON", "too long": "too long", "rejected": "rejected",
}  # fmt: skip
STOPPING = ("quota", "no access")
TEXTS = list(dict.fromkeys(text for text, *_ in DOCUMENTS.values()))  # a text twice would be one pair of the server and two attempts


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("QRELBOOK_JUDGE_KEY", "sample")
    plant(tmp_path / "planted", DOCUMENTS, QUERIES)
    rows = [{"docid": f"d{i}", "text": text, "n_chars": len(text), "n_tokens": 1, "removed": False} for i, text in enumerate(TEXTS)]
    table(tmp_path, "documents", "documents", [rows])
    asked = [{"qid": q, "text": text, "source_docid": None, "source_doc": None, "keep": True} for q, (text, *_) in QUERIES.items()]
    table(tmp_path, "queries", "queries", [asked])
    table(tmp_path, "intents", "intents/v1", [[intent(q, d, max_chars=None) for q in range(4) for d in range(len(TEXTS))]])
    return tmp_path


def ask(run, url, **options):
    return rounds.ask(run, "v1", BY, url, **{"backoff": 0.01, "timeout": 0.4, "bad_share": 1.0, "longest_wait": 0.2} | options)


def attempts(run):
    return store.read(store.path(run, "v1", "part-00000"))


def counted(run):
    return len((run / "planted" / "calls-judge.txt").read_text().splitlines())


def answered(run):
    answers.write(run, "v1", BY)
    ((_, told),) = answers.read(run, "v1")
    return told.to_pylist()


def expected(run, kinds, share, lost):
    """The classes that the server's draw gives to the calls of each task in their order, from the server's own file."""
    made = Counter()
    for line in (run / "planted" / "calls-judge.txt").read_text().splitlines():
        pair, call = line.split()
        kind = failures.kind(pair, int(call), share, lost, kinds)
        made[CLASS.get(kind, kind)] += 1
    return made




def test_every_failure_has_its_class_and_every_call_that_reached_the_server_is_written_once(run):
    kinds = tuple(kind for kind in failures.ALL if kind not in (*STOPPING, "violation"))
    with judge_server.running(run / "planted", failures=0.7, lost=0.2, kinds=kinds) as url:
        ask(run, url)
        stats = judge_server.stats(url)
    found = Counter(row["status"] for row in attempts(run))
    wanted = expected(run, kinds, 0.7, 0.2)
    valid = wanted.pop(None)
    unreached = len(attempts(run)) - counted(run)  # a kept connection that had ended when the call was sent: the server saw no call
    found["connection"] -= unreached
    assert unreached >= 0 and found.pop("ok", 0) + found.pop("unevaluable", 0) == valid and found == wanted
    assert set(wanted) == {CLASS[kind] for kind in kinds} and set(stats["answers"]) == {*kinds, "reply"}
    assert stats["calls"] == counted(run)
    assert all((row["score"] is None) for row in attempts(run) if row["status"] != "ok")
    told = answered(run)
    assert {row["answer"] for row in told} & set(wanted) and all(row["score"] is None for row in told if row["answer"] != "ok")


@pytest.mark.slow  # each stop starts another client
def test_quota_and_no_access_stop_the_run_and_are_no_call_of_a_pair_s_budget(run):
    stops = 0
    with judge_server.running(run / "planted", failures=0.04, lost=0, kinds=STOPPING) as url:
        while True:
            try:
                ask(run, url, concurrency=4, passes=1, budget=1)
                break
            except rounds.JudgeStopped as stopped:
                assert "the quota of the key is used up" in str(stopped) or "forbids this key" in str(stopped)
                stops += 1
                assert stops < 60
        assert judge_server.stats(url)["calls"] == counted(run) == len(attempts(run))
    found = Counter(row["status"] for row in attempts(run))
    wanted = expected(run, STOPPING, 0.04, 0)
    assert {name: found[name] for name in ("quota", "unavailable")} == {name: wanted[name] for name in ("quota", "unavailable")}
    assert stops and all(row["answer"] in answers.VALID for row in answered(run))


def test_a_storm_a_hang_and_a_restart_in_the_middle_end_well_by_themselves(run):
    script = "rate limit without a wait:10-17,rate limit:18-20,hang:45,restart:70"
    with judge_server.running(run / "planted", failures=0, lost=0, script=script) as url:
        ask(run, url, concurrency=8, timeout=1.0, passes=3, backoff=0.2, longest_wait=5.0)
        assert judge_server.stats(url)["answers"].keys() == {"reply"}  # of the server that started again
    rows = attempts(run)
    found = Counter(row["status"] for row in rows)
    assert all(row["answer"] in answers.VALID for row in answered(run))
    assert found["rate limited"] == 11 and found["timeout"] + found["connection"] >= 2  # a restart may end the call that hangs
    absent = len(rows) - counted(run)  # calls while nobody listened, or whose connection broke before they were read
    assert 0 <= absent <= found["connection"]


def test_each_kind_is_what_it_is_called_on_the_wire(tmp_path):
    planted = plant(tmp_path / "planted", DOCUMENTS, QUERIES)
    script = ",".join(f"{kind}:{number}" for number, kind in enumerate(WIRE, 1))
    with judge_server.running(planted, failures=0, lost=0, script=script) as url:
        for kind, (status, code) in WIRE.items():
            found, headers, body = post(url, json.dumps(request(*PAIRS[0])))
            assert found == status and "retry-after" not in headers, kind
            assert body["error"]["code"] == code if status != 200 else body["choices"][0]["finish_reason"] == code, kind


WIRE = {
    "rate limit without a wait": (429, "rate_limit_exceeded"), "quota": (429, "insufficient_quota"), "no access": (403, "no_access"),
    "too long": (400, "context_length_exceeded"), "rejected": (400, None), "empty": (200, "stop"), "content filter": (200, "content_filter"),
    "cut JSON": (200, "stop"), "wrong task": (200, "stop"), "contradiction": (200, "stop"), "fences": (200, "stop"),
}  # fmt: skip


def test_the_default_kinds_draw_as_they_did():
    pairs = [personality.pair_hash(0, "judge", "q", str(number)) for number in range(400)]
    first = ("rate limit", "server error", "cut body", "refusal", "violation", "length")
    assert first == failures.KINDS and [failures.kind(pair, 1, 0.5, 0.1) for pair in pairs] == [failures.kind(pair, 1, 0.5, 0.1, first) for pair in pairs]
    assert set(failures.ALL) == {*CLASS, "violation"}


@pytest.mark.parametrize("text", ["hang", "hang:0", "hang:5-4", "nothing:3", "hang:1;2"])
def test_a_script_that_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match="is no step of a script"):
        failures.script(text)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'hung' is no kind of failure"):
        failures.chosen("hang,hung")
