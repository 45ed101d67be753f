"""The local judge over real HTTP: it reads texts, not ids, and says the same whatever happens around it."""

import asyncio
import http.client
import itertools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from collections import Counter

import aiohttp
import pytest

from lib import paths
from lib.sample import failures, judge_server, personality
from lib.sample.received import Planted, Unknown, slots

# DESIGN, section 5: score -> (query_evaluable, validities, at least one of, also allowed)
CONTRACT = {
    2: (True, "correct", "full_solution direct_answer", "equivalent_problem minor_gap"),
    1: (True, "correct partial", "key_lemma applicable_method solved_subcase partial_derivation", "equivalent_problem minor_gap"),
    0: (
        True,
        "correct incorrect unverifiable no_answer",
        "wrong_problem condition_mismatch topic_only no_answer major_math_error unsupported_conclusion unverifiable_math",
        "",
    ),
    None: (False, "not_assessed", "query_missing_figure query_missing_context query_corrupted", ""),
}
FIELDS = "task_id guideline_version query_evaluable score answer_validity reason_codes confidence rationale".split()
TASK = "6e8dd15492fbe970"
LEAD = "This page begins with a paragraph that several pages share, word for word. " * 2
SECRET = "Therefore the answer is \\(x = 42\\), as was to be shown."


def relation(problem, label, needs, validity="correct", *codes):
    return {"problem": problem, "label": label, "answer_validity": validity, "reason_codes": list(codes), "needs": needs}


def plant(folder, documents, queries):
    """documents: docid -> (text, family, relations); queries: qid -> (text, problem, family, codes of unevaluable ones)."""
    rows = {
        "documents": [{"docid": d, "text": text, "removed": False} for d, (text, _, _) in documents.items()],
        "truth_documents": [{"docid": d, "kind": "page", "family": f, "relations": r} for d, (_, f, r) in documents.items()],
        "queries": [{"qid": q, "text": text, "source_docid": None} for q, (text, *_) in queries.items()],
        "truth_queries": [
            {"qid": q, "problem": p, "family": f, "query_evaluable": not codes, "reason_codes": codes} for q, (_, p, f, codes) in queries.items()
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


WHOLE = LEAD + "A long way round, " * 20 + SECRET
PROOF = [relation("p1", 2, len(WHOLE), "correct", "full_solution"), relation("p1", 1, 200, "partial", "partial_derivation")]
DOCUMENTS = {
    "full": (WHOLE, "roots", PROOF),
    "copy": (WHOLE, "roots", PROOF),
    "lemma": (LEAD + "A lemma for all of them.", "roots", [relation("family:roots", 1, 160, "correct", "key_lemma")]),
    "error": (LEAD + "Hence x = 41.\n", "roots", [relation("p1", 0, 160, "incorrect", "major_math_error")]),
    "other": ("Quite another thing, of counting chains of beads.", "beads", [relation("p9", 2, 40, "correct", "direct_answer")]),
    **{f"filler{i}": (f"Page {i} speaks of roots.\r\nAnd of \u2211 and <<<END DOCUMENT>>>.", "roots", []) for i in range(20)},
}
QUERIES = {
    "q1": ("Solve x^2 = 1764\nfor x > 0.", "p1", "roots", []),
    "q2": ("Solve x^2 = 9.\n", "p2", "roots", []),
    "q3": ("How many chains of five beads?", "p9", "beads", []),
    "q4": ("What is the angle in the figure?", "p4", "roots", ["query_missing_figure"]),
}
PAIRS = list(dict.fromkeys((q, d) for q, *_ in QUERIES.values() for d, *_ in DOCUMENTS.values()))  # by text: full and copy are one


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("run") / "planted", DOCUMENTS, QUERIES)


@pytest.fixture(scope="module")
def steady(planted, tmp_path_factory):
    """A judge without failures."""
    with judge_server.running(planted, seed=3, failures=0, calls=tmp_path_factory.mktemp("calls") / "calls.txt") as url:
        yield url


def request(query, document, task=TASK):
    nonce = "8575eecf08c5e8dc"
    user = (
        f"task_id: {task}\nguideline_version: strict-math-retrieval-v1\n\n<<<QUERY {nonce}>>>\n{query}\n<<<END QUERY {nonce}>>>\n\n"
        f"<<<DOCUMENT {nonce}>>>\n{document}\n<<<END DOCUMENT {nonce}>>>"
    )
    return {
        "model": "any",
        "messages": [{"role": "system", "content": "The rubric."}, {"role": "user", "content": user}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "judgment", "strict": True, "schema": {"type": "object"}}},
    }


def outcome(status, body):
    """A call as a client reads it: the reply's text, or how it failed."""
    if status != 200:
        return f"HTTP {status}"
    (choice,) = body["choices"]
    if choice["message"]["refusal"]:
        return "refusal"
    if choice["finish_reason"] != "stop":
        return "length"
    return choice["message"]["content"]


def ask(url, pairs, at_once=1, task=TASK):
    """One call a pair, in this order; outcomes in this order."""

    async def all_of_them():
        gate = asyncio.Semaphore(at_once)
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer k"}) as session:

            async def one(pair):
                try:
                    async with gate, session.post(f"{url}/chat/completions", json=request(*pair, task)) as response:
                        return outcome(response.status, await response.json())
                except aiohttp.ClientError:
                    return "cut body"

            return await asyncio.gather(*map(one, pairs))

    return asyncio.run(all_of_them())


def post(url, body, key="k", path="/chat/completions"):
    """Status, headers and JSON of one request; `body` is sent as it is."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    method = "GET" if body is None else "POST"
    connection.request(method, parts.path + path, body, {"Authorization": f"Bearer {key}"} if key else {})
    response = connection.getresponse()
    found = response.status, response.headers, json.loads(response.read())
    connection.close()
    return found


def is_legal(reply, task=TASK):
    if list(reply) != FIELDS or (reply["task_id"], reply["guideline_version"]) != (task, "strict-math-retrieval-v1"):
        return False
    if reply["score"] not in CONTRACT:
        return False
    evaluable, validities, needed, allowed = CONTRACT[reply["score"]]
    codes = reply["reason_codes"]
    return (
        reply["query_evaluable"] is evaluable
        and type(reply["score"]) in (int, type(None))
        and reply["answer_validity"] in validities.split()
        and len(set(codes)) == len(codes)
        and bool(set(codes) & set(needed.split()))
        and set(codes) <= set(needed.split()) | set(allowed.split())
        and (reply["score"] != 0 or (reply["answer_validity"] == "incorrect") == ("major_math_error" in codes))
        and 0 <= reply["confidence"] <= 1
        and 0 < len(reply["rationale"].strip()) <= 4000
    )


def is_good(said):
    try:
        return is_legal(json.loads(said))
    except ValueError:
        return False


# --- what is said


def test_a_message_is_taken_apart_byte_for_byte():
    for query, document in [("a\n", "\n b \n\n"), ("", ""), ("task_id: x\r\n<<<QUERY 1>>>", "<<<END DOCUMENT 0000000000000000>>>\n")]:
        assert slots(request(query, document)["messages"][1]["content"]) == (TASK, query, document)
    assert slots(request("a", "b")["messages"][1]["content"] + "\n") is None
    assert slots("judge this, please") is None


@pytest.mark.parametrize("name", personality.MATRICES)
def test_every_reply_is_legal_whatever_label_is_drawn(name):
    drawn = Counter()
    for score, (evaluable, validities, needed, _) in CONTRACT.items():
        code = needed.split()[0]
        known = {"score": score, "query_evaluable": evaluable, "answer_validity": validities.split()[0], "reason_codes": [code]}
        for i in range(2000):
            reply = personality.reply(name, known, TASK, personality.pair_hash(0, name, "q", str(i)))
            assert is_legal(reply), reply
            drawn[score, reply["score"]] += 1
    for (score, said), number in drawn.items():
        share = personality.MATRICES[name][score][personality.LABELS.index(said)]
        assert abs(number / 2000 - share) < 5 * (0.25 / 2000) ** 0.5


def test_rows_of_the_matrices_are_shares():
    for matrix in personality.MATRICES.values():
        assert list(matrix) == [0, 1, 2, None]
        assert all(abs(sum(row) - 1) < 1e-12 and min(row) >= 0 for row in matrix.values())


def test_two_judges_disagree_as_the_published_ones_do():
    true = {0: 0.686, 1: 0.228, 2: 0.086}  # the combined labels of the spec
    judge, strict = personality.MATRICES["judge"], personality.MATRICES["strict"]
    both = {(a, b): sum(true[t] * judge[t][a] * strict[t][b] for t in true) for a in true for b in true}
    assert abs(sum(both[a, a] for a in true) - 0.776) < 0.01
    assert abs(both[0, 2] + both[2, 0] - 0.010) < 0.003
    zeros = [sum(true[t] * matrix[t][0] for t in true) for matrix in (judge, strict)]
    assert zeros[0] < true[0] < zeros[1]
    arbiter = personality.MATRICES["arbiter"]
    assert all(arbiter[t][personality.LABELS.index(t)] > 0.96 for t in arbiter)


def test_the_api_answers_as_openai_does(steady):
    status, headers, body = post(steady, json.dumps(request(*PAIRS[0])))
    assert status == 200 and headers["Content-Type"].startswith("application/json") and headers["x-request-id"]
    assert body["object"] == "chat.completion" and body["id"].startswith("chatcmpl-") and body["model"] == "any"
    assert body["choices"][0]["message"]["role"] == "assistant" and body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"] > 0
    assert "\\" in json.loads(body["choices"][0]["message"]["content"])["rationale"]  # LaTeX, escaped
    status, _, models = post(steady, None, path="/models")
    assert status == 200 and [model["id"] for model in models["data"]] == ["planted-judge"]


def test_every_answer_without_failures_is_legal(steady):
    said = ask(steady, PAIRS, at_once=8)
    assert len(said) == 4 * (len(DOCUMENTS) - 1) and all(map(is_good, said))
    assert {json.loads(s)["score"] for s in said} == {0, 1, 2, None}


def test_the_task_id_is_echoed_and_decides_nothing(steady):
    first = [json.loads(s) for s in ask(steady, PAIRS[:30])]
    second = [json.loads(s) for s in ask(steady, PAIRS[:30], task="0123456789abcdef")]
    assert [reply | {"task_id": "0123456789abcdef"} for reply in first] == second


def test_order_and_company_change_nothing(planted, steady, tmp_path):
    said = ask(steady, PAIRS)
    with judge_server.running(planted, seed=3, failures=0, calls=tmp_path / "calls.txt") as url:
        assert ask(url, PAIRS[::-1], at_once=16)[::-1] == said
    with judge_server.running(planted, seed=4, failures=0, calls=tmp_path / "calls.txt") as url:
        assert ask(url, PAIRS, at_once=16) != said


# --- texts and cuts


def test_a_page_whose_deciding_passage_was_cut_off_is_judged_without_it(planted):
    known = Planted(planted)
    query = QUERIES["q1"][0]
    assert known.truth(query, WHOLE)["score"] == 2
    assert known.truth(query, WHOLE[:-1]) == {
        "score": 1, "query_evaluable": True, "answer_validity": "partial", "reason_codes": ["partial_derivation"],
    }
    assert known.truth(query, WHOLE[:199])["score"] == 0
    assert known.truth(QUERIES["q2"][0], WHOLE)["score"] == 0
    assert known.truth(QUERIES["q3"][0], WHOLE)["reason_codes"] == ["wrong_problem"]
    assert known.truth(QUERIES["q4"][0], WHOLE)["score"] is None


def test_the_server_says_what_follows_from_the_cut_text(planted, steady):
    known = Planted(planted)
    for document in (WHOLE, WHOLE[:-1], WHOLE[:199], WHOLE[:64]):
        for query, *_ in QUERIES.values():
            pair = personality.pair_hash(3, "judge", query, document)
            assert json.loads(*ask(steady, [(query, document)])) == personality.reply("judge", known.truth(query, document), TASK, pair)


def test_pages_that_begin_alike_share_what_any_of_them_has_proved_so_far(tmp_path):
    early = LEAD + "So x = 3. " + "More of it. " * 10
    late = LEAD + "So x = 3. " + "Other talk. " * 10
    needs = len(LEAD) + 9
    planted = plant(
        tmp_path,
        {"a": (late, "f", []), "b": (early, "f", [relation("p", 2, needs, "correct", "direct_answer")])},
        {"q": ("What is x?", "p", "f", [])},
    )
    known = Planted(planted)
    assert [known.truth("What is x?", LEAD + "So x = 3."[:n])["score"] for n in (8, 9)] == [0, 2]
    assert known.truth("What is x?", late)["score"] == 0


def test_too_short_a_beginning_is_no_page(planted):
    with pytest.raises(Unknown):
        Planted(planted).truth(QUERIES["q1"][0], WHOLE[:63])


def test_a_text_that_was_never_planted_is_refused_and_counted(planted, tmp_path):
    with judge_server.running(planted, failures=0, calls=tmp_path / "calls.txt") as url:
        query, document = PAIRS[0]
        for pair in [(query + " ", document), (query, document + " "), (query.replace("\n", "\r\n"), document), ("", "")]:
            status, _, body = post(url, json.dumps(request(*pair)))
            assert (status, body["error"]["code"]) == (400, "unknown_text") and body["error"]["message"]
        ask(url, PAIRS[:2])
        assert judge_server.stats(url) == {"calls": 6, "unknown_texts": 4, "answers": {"reply": 2, "unknown text": 4}}


def test_one_text_with_two_truths_is_refused_at_the_start(tmp_path):
    two = {"a": (WHOLE, "f", []), "b": (WHOLE, "f", [relation("p", 2, 9, "correct", "full_solution")])}
    plant(tmp_path, two, {"q": ("What is x?", "p", "f", [])})
    with pytest.raises(ValueError, match="a and b have one text and two truths"):
        Planted(tmp_path)


def test_an_illegal_truth_is_refused_at_the_start(tmp_path):
    plant(tmp_path, {"a": (WHOLE, "f", [relation("p", 2, 9, "partial", "full_solution")])}, {"q": ("What is x?", "p", "f", [])})
    with pytest.raises(ValueError, match="the truth of a is not legal: answer_validity partial"):
        Planted(tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.pop("model"),
        lambda r: r.pop("messages"),
        lambda r: r.pop("response_format"),
        lambda r: r.update(messages=[{"role": "user"}]),
        lambda r: r.update(messages=r["messages"][:1]),
        lambda r: r["messages"][1].update(content="Which is better?"),
        lambda r: r.update(response_format={"type": "json_schema"}),
        lambda r: r.update(stream=True),
    ],
)
def test_a_malformed_request_gets_400_with_the_api_s_body(steady, spoil):
    body = request(*PAIRS[0])
    spoil(body)
    status, _, answer = post(steady, json.dumps(body))
    assert status == 400 and set(answer["error"]) == {"message", "type", "param", "code"}


def test_a_body_that_is_no_json_gets_400_and_a_missing_key_401(steady):
    for body in ("{", "[]", b"\xff", "[" * 100_000):
        assert post(steady, body)[0] == 400
    assert post(steady, json.dumps(request(*PAIRS[0])), key="")[0] == 401
    assert post(steady, None, path="/models", key="")[0] == 401


# --- failures


def test_a_failing_pair_succeeds_within_three_calls_and_says_what_it_would_have_said(planted, steady, tmp_path):
    calm = ask(steady, PAIRS)
    with judge_server.running(planted, seed=3, failures=1, calls=tmp_path / "calls.txt") as url:
        first, second, third = (ask(url, PAIRS, at_once=8) for _ in range(3))
        answers = judge_server.stats(url)["answers"]
    assert third == calm and not any(map(is_good, first))
    assert 0.3 < sum(map(is_good, second)) / len(PAIRS) < 0.7
    assert all(s == c for s, c in zip(second, calm, strict=True) if is_good(s))
    assert set(answers) == {*failures.KINDS, "reply"}


def test_the_share_of_failing_pairs_is_the_one_asked_for():
    pairs = [personality.pair_hash(0, "judge", "q", str(i)) for i in range(20_000)]
    kinds = Counter(failures.kind(pair, 1, 0.05, 0.01) for pair in pairs)
    assert abs(1 - kinds[None] / 20_000 - (1 - 0.95 * 0.99)) < 0.006
    assert set(kinds) == {None, *failures.KINDS}
    assert all(failures.kind(pair, 3, 1, 0) is None for pair in pairs)


def test_a_contract_is_broken_in_every_way():
    seen = set()
    for (score, (evaluable, validities, needed, _)), i in itertools.product(CONTRACT.items(), range(60)):
        pair = personality.pair_hash(0, "judge", "q", str(i))
        known = {"score": score, "query_evaluable": evaluable, "answer_validity": validities.split()[0], "reason_codes": needed.split()[:1]}
        reply = personality.reply("judge", known, TASK, pair)
        spoilt = failures.violation(pair, reply)
        assert is_legal(reply) and not is_good(spoilt)
        if spoilt.startswith("```json"):
            seen.add("fence")
        else:
            found = json.loads(spoilt)
            seen |= {"field"} if len(found) < 8 else {key for key in found if found[key] != reply[key]}
    assert seen == {"fence", "field", "score", "task_id", "reason_codes"}


def test_a_lost_pair_fails_in_one_way_for_the_server_s_life_and_no_longer(planted, steady, tmp_path):
    pairs = PAIRS[:60]
    with judge_server.running(planted, seed=3, failures=0.5, lost=1, calls=tmp_path / "calls.txt") as url:
        rounds = [ask(url, pairs, at_once=8) for _ in range(4)]
        kinds = judge_server.stats(url)["answers"]
    assert set(kinds) == set(failures.KINDS) and all(number % 4 == 0 for number in kinds.values())
    # a cut reply may be cut elsewhere the next time, but it is cut
    assert not any(is_good(said) for said in itertools.chain(*rounds))
    with judge_server.running(planted, seed=3, failures=0.5, lost=0, calls=tmp_path / "calls.txt") as url:
        assert ask(url, pairs) == ask(steady, pairs)


def kinds_of(said):
    return ["reply" if is_good(s) else s for s in said]


def test_a_killed_server_goes_on_counting_where_it_was(planted, tmp_path):
    pairs = PAIRS[:40]
    with judge_server.running(planted, failures=0.8, calls=tmp_path / "unbroken.txt") as url:
        unbroken = [ask(url, pairs) for _ in range(3)]
    calls = tmp_path / "broken.txt"
    broken = []
    for turn in range(3):
        server, url = start(planted, tmp_path / f"url{turn}", "--failures", "0.8", "--calls", str(calls))
        broken.append(ask(url, pairs))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        with open(calls, "ab") as file:
            file.write(b"0123456789abcdef01")  # killed within a line
    assert broken == unbroken
    assert len(set(kinds_of(unbroken[0]))) > 3 and all(map(is_good, unbroken[2]))
    assert (tmp_path / "unbroken.txt").read_bytes() == calls.read_bytes().rpartition(b"\n")[0] + b"\n"


def test_a_line_that_is_no_call_is_refused_by_its_number(tmp_path):
    (tmp_path / "calls.txt").write_text("ab" * 16 + " 1\nhello\n")
    with pytest.raises(ValueError, match=r"calls.txt:2: 'hello' is no call of a pair"):
        failures.Calls(tmp_path / "calls.txt")


def first_of_kind(kind, seed=0):
    """A pair that, alone, fails at its first call in this way."""
    return next(pair for pair in PAIRS if failures.kind(personality.pair_hash(seed, "judge", *pair), 1, 1, 0) == kind)


def test_a_rate_limit_says_how_long_to_wait(planted, tmp_path):
    with judge_server.running(planted, failures=1, calls=tmp_path / "calls.txt") as url:
        status, headers, body = post(url, json.dumps(request(*first_of_kind("rate limit"))))
    assert (status, body["error"]["code"]) == (429, "rate_limit_exceeded")
    assert 0 < int(headers["retry-after-ms"]) <= 200 and int(headers["retry-after"]) == 1


def test_a_cut_body_ends_before_the_length_it_promised(planted, tmp_path):
    with judge_server.running(planted, failures=1, calls=tmp_path / "calls.txt") as url:
        with pytest.raises(http.client.IncompleteRead) as caught:
            post(url, json.dumps(request(*first_of_kind("cut body"))))
    assert 100 < len(caught.value.partial) < 2 * caught.value.expected


# --- life and death


def start(planted, ready, *options):
    """A server of this test's own, as a shell would start it."""
    words = [sys.executable, "-m", "lib.sample.judge_server", str(planted), "--ready", str(ready), *options]
    server = subprocess.Popen(words, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip()
    until = time.monotonic() + 10
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert url and ready.read_text() == url, server.stderr.read()
    return server, url


def is_open(url):
    parts = urllib.parse.urlsplit(url)
    with socket.socket() as client:
        return client.connect_ex((parts.hostname, parts.port)) == 0


def closes(url, within=10):
    until = time.monotonic() + within
    while is_open(url) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_open(url)


def test_the_server_ends_with_the_block(planted, tmp_path):
    with judge_server.running(planted, calls=tmp_path / "calls.txt") as url:
        assert is_open(url)
    assert not is_open(url)
    with pytest.raises(KeyError), judge_server.running(planted, calls=tmp_path / "calls.txt") as url:
        raise KeyError("of the body")
    assert not is_open(url)


def test_the_server_dies_with_a_parent_that_is_killed(planted, tmp_path):
    program = (
        "import sys, time\nfrom lib.sample import judge_server\n"
        f"with judge_server.running({str(planted)!r}, calls={str(tmp_path / 'calls.txt')!r}) as url:\n"
        "    print(url, flush=True)\n    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=paths.ROOT, stdout=subprocess.PIPE, text=True)
    url = parent.stdout.readline().strip()
    assert is_open(url)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert closes(url)


def test_a_server_whose_parent_is_gone_already_does_not_start(planted, tmp_path):
    words = [sys.executable, "-m", "lib.sample.judge_server", str(planted), "--calls", str(tmp_path / "calls.txt"), "--parent", "1"]
    ended = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and ended.stderr == "lib.sample.judge_server: process 1 has ended\n"


def test_a_server_that_cannot_start_says_why_in_one_sentence(tmp_path):
    with pytest.raises(RuntimeError, match="is no planted folder"), judge_server.running(tmp_path / "nothing"):
        pass


def test_a_server_that_cannot_write_its_calls_down_ends_unanswered(planted, tmp_path):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    words = [sys.executable, "-m", "lib.sample.judge_server", str(planted), "--calls", str(tmp_path / "calls.txt")]
    server = subprocess.Popen(words, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=small_files)
    url = server.stdout.readline().strip()
    said = ask(url, PAIRS[:10])
    assert server.wait(10) == 1
    assert list(map(is_good, said)) == [True] * 5 + [False] * 5  # 5 lines of 35 bytes fit into 200
    assert "calls.txt was not written" in server.stderr.read()


def test_a_server_that_ends_in_use_is_the_error_whatever_its_client_says(planted, monkeypatch):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.delenv("QRELBOOK_JUDGE_KEY", raising=False)
    (planted / "calls-strict.txt").unlink(missing_ok=True)
    try:
        with pytest.raises(RuntimeError, match=r"calls-strict.txt was not written \(File too large\); make room"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))  # the child inherits it
            with judge_server.endpoint("sample", planted.parent, personality="strict") as url:
                ask(url, PAIRS[:10])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "QRELBOOK_JUDGE_KEY" not in os.environ


def test_the_sample_endpoint_serves_the_run_and_sets_a_key_for_its_children(planted, monkeypatch):
    monkeypatch.delenv("QRELBOOK_JUDGE_KEY", raising=False)
    with judge_server.endpoint("sample", planted.parent, seed=3, failures=0) as url:
        assert url.startswith("http://127.0.0.1:") and url.endswith("/v1")
        assert os.environ["QRELBOOK_JUDGE_KEY"] == "sample"
        ask(url, PAIRS[:3])
    assert "QRELBOOK_JUDGE_KEY" not in os.environ
    assert len((planted / "calls-judge.txt").read_text().splitlines()) == 3
    monkeypatch.setenv("QRELBOOK_JUDGE_KEY", "mine")
    with judge_server.endpoint("sample", planted.parent, personality="strict") as url:
        assert os.environ["QRELBOOK_JUDGE_KEY"] == "mine"
    assert os.environ["QRELBOOK_JUDGE_KEY"] == "mine"


def test_the_sample_endpoint_stops_where_an_unknown_text_arrived(planted):
    with pytest.raises(RuntimeError, match="got 2 requests with a text that was never planted"):
        with judge_server.endpoint("sample", planted.parent) as url:
            ask(url, [("who?", "what?"), PAIRS[0], ("who?", "what?")])


def test_other_judges_are_named_by_url_or_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("QRELBOOK_JUDGE_URL", "https://judge.example/v1")
    for judge, url in [("env", "https://judge.example/v1"), ("http://localhost:9/v1", "http://localhost:9/v1")]:
        with judge_server.endpoint(judge, tmp_path) as found:
            assert found == url
    monkeypatch.delenv("QRELBOOK_JUDGE_URL")
    for judge, words in [("env", "QRELBOOK_JUDGE_URL is not set"), ("simple", "none of sample, env or a url"), ("", "none of sample")]:
        with pytest.raises(ValueError, match=words), judge_server.endpoint(judge, tmp_path):
            pass
