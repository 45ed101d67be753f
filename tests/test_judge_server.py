"""The local judge over real HTTP: it reads texts, not ids, and says the same whatever happens around it."""

import http.client
import itertools
import json
from collections import Counter

import pytest

from lib.sample import failures, judge_server, personality
from lib.sample.received import Planted, Unknown, slots
from planted_judge import CONTRACT, DOCUMENTS, LEAD, PAIRS, QUERIES, TASK, WHOLE, ask, is_good, is_legal, plant, post, relation, request


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("run") / "planted", DOCUMENTS, QUERIES)


@pytest.fixture(scope="module")
def steady(planted, tmp_path_factory):
    """A judge without failures."""
    with judge_server.running(planted, seed=3, failures=0, calls=tmp_path_factory.mktemp("calls") / "calls.txt") as url:
        yield url


def test_a_message_is_taken_apart_byte_for_byte():
    for query, document in [("a\n", "\n b \n\n"), ("", ""), ("task_id: x\r\n<<<QUERY 1>>>", "<<<END DOCUMENT 0000000000000000>>>\n")]:
        assert slots(request(query, document)["messages"][1]["content"]) == (TASK, query, document, " 8575eecf08c5e8dc")
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
        lambda r: r.update(messages=[{"role": "user"}]),
        lambda r: r.update(messages=r["messages"][:1]),
        lambda r: r["messages"][1].update(content="Which is better?"),
        lambda r: r.update(response_format={"type": "json_schema"}),
        lambda r: r.update(response_format={"type": "yaml"}),
        lambda r: r.update(response_format=None),
        lambda r: r.update(stream=True),
    ],
)
def test_a_malformed_request_gets_400_with_the_api_s_body(steady, spoil):
    body = request(*PAIRS[0])
    spoil(body)
    status, _, answer = post(steady, json.dumps(body))
    assert status == 400 and set(answer["error"]) == {"message", "type", "param", "code"}


def test_the_format_that_is_asked_for_changes_no_reply(steady):
    whole, formless, free = (request(*PAIRS[0]) for _ in range(3))
    formless.pop("response_format")
    free["response_format"] = {"type": "json_object"}
    said = [post(steady, json.dumps(body)) for body in (whole, formless, free)]
    assert {status for status, *_ in said} == {200} and len({body["choices"][0]["message"]["content"] for *_, body in said}) == 1


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
