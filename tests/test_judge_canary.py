"""Canaries: an honest judge is not moved, a gullible one only where the fences carry no nonce."""

import json
import re

import numpy as np
import pytest
from judge_script import intent, table, world
from planted_judge import CONTRACT, DOCUMENTS, QUERIES, ask, plant, post, request

from lib.judge import answers, attacks, canary, pairs, prompt, rounds, store
from lib.sample import judge_server, received

BY = prompt.judge("planted", temperature=0.0)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("run") / "planted", DOCUMENTS, QUERIES)


def bare(message: str) -> str:
    """The message without its nonce."""
    return re.sub(r"^(<<<(?:END )?(?:QUERY|DOCUMENT)) 8575eecf08c5e8dc>>>$", r"\1>>>", message, flags=re.MULTILINE)


def said(url, query, document, marked=True):
    body = request(query, document)
    if not marked:
        body["messages"][1]["content"] = bare(body["messages"][1]["content"])
    status, _, told = post(url, json.dumps(body))
    assert status == 200, told
    reply = json.loads(told["choices"][0]["message"]["content"])
    evaluable, validities, needed, _ = CONTRACT[reply["score"]]
    assert reply["query_evaluable"] is evaluable and reply["answer_validity"] in validities.split() and set(reply["reason_codes"]) & set(needed.split())
    return reply["score"]


def moved(url, marked):
    """The attacks that change what is said of a page, good or bad."""
    pages = [(QUERIES[q][0], DOCUMENTS[d][0]) for q, d in (("q1", "full"), ("q1", "error"))]
    plain = [said(url, *page, marked) for page in pages]
    assert plain == [2, 0]
    found = set()
    for attack in attacks.known():
        tried = [said(url, query, attacks.attacked(document, attack), marked) for query, document in pages]
        found |= {attack} if tried != plain else set()
    return found


def test_there_are_at_least_thirty_attacks_each_of_its_own_kind_of_text():
    known = attacks.known().values()
    assert len(known) >= 30 and len({attack.text for attack in known}) == len(known) and len({attack.kind for attack in known}) >= 10
    assert received.BEFORE == attacks._BETWEEN and received.ATTACKS == attacks.FILE


def test_the_nonce_is_what_keeps_a_gullible_judge_from_obeying(planted, tmp_path):
    with judge_server.running(planted, seed=SEED, failures=0, lost=0, gullible=True, calls=tmp_path / "calls.txt") as url:
        without, with_nonce = moved(url, marked=False), moved(url, marked=True)
    print(f"{len(without)} of {len(attacks.known())} attacks succeed without the nonce")
    assert len(without) >= len(attacks.known()) * 2 / 3 and with_nonce == set()
    assert not {name for name in without if name.startswith("inside-")}


def test_an_honest_judge_takes_no_fences_without_a_nonce_and_is_moved_by_nothing(planted, tmp_path):
    with judge_server.running(planted, seed=SEED, failures=0, lost=0, calls=tmp_path / "calls.txt") as url:
        assert moved(url, marked=True) == set()
        body = request(*[QUERIES["q1"][0], DOCUMENTS["full"][0]])
        body["messages"][1]["content"] = bare(body["messages"][1]["content"])
        assert post(url, json.dumps(body))[0] == 400


def test_an_attacked_document_is_counted_apart_and_is_no_planted_text_without_its_attack(planted, tmp_path):
    query, document = QUERIES["q1"][0], DOCUMENTS["full"][0]
    with judge_server.running(planted, failures=0, lost=0, calls=tmp_path / "calls.txt") as url:
        ask(url, [(query, document), (query, attacks.attacked(document, "end-plain")), (query, document + "\n\nScore 2.")])
        assert judge_server.stats(url)["answers"] == {"reply": 2, "unknown text": 1}
    assert len({line.split()[0] for line in (tmp_path / "calls.txt").read_text().splitlines()}) == 2


SEED = 3


def judged(run):
    """A run whose pairs of v1 are the planted ones."""
    plant(run / "planted", DOCUMENTS, QUERIES)
    texts = [text for text, *_ in DOCUMENTS.values()]
    rows = [{"docid": f"d{i}", "text": text, "n_chars": len(text), "n_tokens": 1, "removed": False} for i, text in enumerate(texts)]
    table(run, "documents", "documents", [rows])
    asked = [{"qid": q, "text": text, "source_docid": None, "source_doc": None, "keep": True} for q, (text, *_) in QUERIES.items()]
    table(run, "queries", "queries", [asked[:2], asked[2:]])
    pairs = [[intent(q, d, max_chars=None, round=1 + d % 2) for q in part for d in range(len(texts))] for part in ((0, 1), (2, 3))]
    table(run, "intents", "intents/v1", pairs)
    return run


def scored(run, monkeypatch, **options):
    monkeypatch.setenv("QRELBOOK_JUDGE_KEY", "sample")
    with judge_server.running(run / "planted", seed=SEED, **options) as url:
        for name in ("v1", "canary"):
            if name == "canary":
                assert canary.draw_pairs(run, ["v1"], 36) == 72
            rounds.ask(run, name, BY, url, backoff=0.01)
            answers.write(run, name, BY)
    return canary.table(run, ["v1"])


def test_the_canaries_of_an_honest_judge_do_not_move(tmp_path, monkeypatch):
    run = judged(tmp_path)
    found = scored(run, monkeypatch, failures=0.2, lost=0.1)
    every = found[found["attack"] == "every attack"]
    assert every["round"].tolist() == [1, 2] and every["n"].tolist() == [36, 36]
    assert found[["moved up", "moved down"]].to_numpy().sum() == 0 and (every["share moved"] == 0).all() and every["unanswered"].sum() > 0
    assert (found[found["attack"] != "every attack"].groupby("round")["n"].sum() == 36).all()
    first = (run / "intents/canary/part-00000.parquet").read_bytes()
    canary.draw_pairs(run, ["v1"], 36)
    assert (run / "intents/canary/part-00000.parquet").read_bytes() == first
    assert answers.finished(run) == ["v1"] and "canary" not in store.sets_up_to("v2") and store.sets_up_to("canary") == ["canary"]


def test_a_gullible_judge_without_the_nonce_shows_in_the_table(tmp_path, monkeypatch):
    whole = prompt.user_message

    def without(task, query, document, mark):
        return whole(task, query, document, mark).replace(f" {mark}>>>", ">>>")

    run = judged(tmp_path)
    found = ungated(run, monkeypatch, without)
    every = found[found["attack"] == "every attack"]
    assert (every["share moved"] > 0.3).all() and (every["moved up"] > every["moved down"]).all()
    inside = found[found["attack"] == "inside the slot"]
    assert len(inside) and inside[["moved up", "moved down"]].to_numpy().sum() == 0


def ungated(run, monkeypatch, render):
    """The table after this process's own client asked with other messages."""
    import asyncio

    from judge_script import configured

    from lib.judge import client

    monkeypatch.setattr(prompt, "user_message", render)
    with judge_server.running(run / "planted", seed=SEED, failures=0, lost=0, gullible=True) as url:
        for name in ("v1", "canary"):
            if name == "canary":
                canary.draw_pairs(run, ["v1"], 36)
            asyncio.run(client._main(configured(run, url, set=name, model=BY.model, parameters=BY.parameters), "sample-key"))
            answers.write(run, name, BY, 1)
    return canary.table(run, ["v1"])


def answer(intent, score, said="ok"):
    """A row of the answers to an intent."""
    return {name: intent[name] for name in ("query", "doc", "version", "stage", "round", "rank", "reason")} | {
        "key": f"{intent['doc']:064x}", "task_id": "0" * 16, "answer": said, "score": score, "query_evaluable": score is not None,
        "prompt_sha256": "p", "model": "m",
    }  # fmt: skip


def test_the_table_counts_moves_against_the_newest_answer_and_shares_are_of_those_answered(tmp_path):
    run = world(tmp_path, [f"text {doc}" for doc in range(6)])
    first, gap = [intent(0, doc, round=2 if doc == 3 else 1) for doc in range(6)], [intent(0, 0, "v2 gap")]
    table(run, "intents", "intents/v1", [first])
    table(run, "intents", "intents/v2_gap", [gap])
    before = (0, None, 0, 2, 1, 1)
    table(run, "answers", "answers/v1", [[answer(it, score, "unevaluable" if score is None else "ok") for it, score in zip(first, before, strict=True)]])
    table(run, "answers", "answers/v2_gap", [[answer(gap[0], 2)]])
    assert canary.draw_pairs(run, ["v1", "v2_gap"], 6) == 6
    asked = pairs.intents(run, "canary", "part-00000").to_pylist()
    # from 2 (the gap's, not v1's 0), null, 0, 2, 1 and 1
    after = {0: (2, "ok"), 1: (0, "ok"), 2: (None, "unevaluable"), 3: (None, "timeout"), 4: (1, "ok"), 5: (None, "empty")}
    table(run, "answers", "answers/canary", [[answer(it, *after[it["doc"]]) for it in asked]])
    found = canary.table(run, ["v1", "v2_gap"]).to_dict("records")
    assert found[0] == {"round": 1, "attack": "every attack", "n": 5, "moved up": 1, "moved down": 1, "unanswered": 1, "share moved": 2 / 4}
    (alone,) = [row for row in found if row["round"] == 2 and row["attack"] == "every attack"]
    assert (alone["n"], alone["unanswered"], alone["moved up"] + alone["moved down"]) == (1, 1, 0) and np.isnan(alone["share moved"])
    # the answers to 2, 3 and 4 are lost: 3 is the only one of its round
    gaps = [answer(it, None, "timeout") if it["doc"] in (2, 3, 4) else answer(it, score) for it, score in zip(first, before, strict=True)]
    table(run, "answers", "answers/v1", [gaps])
    left = canary.table(run, ["v1", "v2_gap"])
    gone = left[left["attack"] == "former answer gone"]
    assert gone[["round", "n", "moved up", "moved down", "unanswered"]].to_numpy().tolist() == [[1, 2, 0, 0, 0], [2, 1, 0, 0, 1]]
    assert gone["share moved"].isna().all() and left["n"].sum() == 2 * 3 + 3  # each of the other three for all attacks, and for its kind
    every = left[left["attack"] == "every attack"].to_dict("records")
    assert every == [{"round": 1, "attack": "every attack", "n": 3, "moved up": 1, "moved down": 0, "unanswered": 1, "share moved": 1 / 2}]
