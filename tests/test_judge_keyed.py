"""The kept keys of a set: a resumed run renders what it still asks and nothing else, and never trusts keys of something else."""

import random

import pytest
from judge_script import Script, ask, configured, error, intent, judge, pairs_of, serving, table, valid, world

from lib.corpus import tables
from lib.judge import answers, keyed, pairs, prompt, turns
from lib.judge.pairs import Pairs

TEXTS = [f"text {i}" for i in range(12)]
PART = "part-00000"


def file(run):
    return run / "attempts" / "v1" / "keys" / f"{PART}.parquet"


@pytest.fixture
def judged(tmp_path):
    """A run of which t3 and t7 never got an answer."""
    run = pairs_of(tmp_path / "run", TEXTS)
    script = Script({"text 3": [error(500)], "text 7": [error(500)], "*": [valid(1)]})
    with serving(script) as url:
        ask(run, url, budget=1)
    return run


def rendered(monkeypatch):
    """The documents that are rendered from here on."""
    found, messages = [], prompt.messages
    monkeypatch.setattr(prompt, "messages", lambda by, task, query, document: found.append(document) or messages(by, task, query, document))
    return found


def all_owed(run, by=None, **changed):
    by = by or judge()
    return [(pair.key, pair.row, intent, turn) for _, pair, intent, turn in turns.owed(configured(run, "http://127.0.0.1:9/v1", **changed), Pairs(run, by), PART) if turn]


def test_a_resumed_run_renders_only_what_is_owed_and_owes_the_same(judged, monkeypatch):
    kept, seen = all_owed(judged, budget=2), rendered(monkeypatch)
    assert all_owed(judged, budget=2) == kept and seen == ["text 3", "text 7"]
    file(judged).unlink()
    assert all_owed(judged, budget=2) == kept and len(seen) == 2 + len(TEXTS)
    assert all_owed(judged, budget=1) == [] and len(seen) == 2 + len(TEXTS)


def test_answers_are_the_same_bytes_with_and_without_kept_keys(judged, monkeypatch):
    seen = rendered(monkeypatch)
    answers.write(judged, "v1", judge())
    with_keys = (judged / "answers/v1" / f"{PART}.parquet").read_bytes()
    assert seen == []
    file(judged).unlink()
    answers.write(judged, "v1", judge())
    assert (judged / "answers/v1" / f"{PART}.parquet").read_bytes() == with_keys and sorted(seen) == sorted(TEXTS)
    assert set(keyed.read(judged, "v1", PART, judge())) == keys_of(judged)


def test_keys_of_another_judge_of_other_intents_or_damaged_ones_are_not_believed(judged):
    assert keyed.read(judged, "v1", PART, judge()) and keyed.read(judged, "v1", PART, judge(temperature=0.5)) is None
    whole, kept, refused = file(judged).read_bytes(), keyed.read(judged, "v1", PART, judge()), 0
    for at in range(4, len(whole) - 4):
        file(judged).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = keyed.read(judged, "v1", PART, judge())
        refused += found is None
        assert found is None or found == kept, at
    assert refused > len(TEXTS) * 32  # of the keys' own bytes alone
    file(judged).write_bytes(whole)
    table(judged, "intents", "intents/v1", [[intent(0, doc) for doc in range(len(TEXTS) - 1)]])
    assert keyed.read(judged, "v1", PART, judge()) is None


def keys_of(run):
    return {pair.key for pair in Pairs(run, judge()).render(PART, pairs.intents(run, "v1", PART))}


@pytest.mark.parametrize("kept", [False, True])
def test_each_part_of_the_documents_is_read_once_whatever_order_the_pairs_stand_in(kept, tmp_path, monkeypatch):
    texts, reads, read = [f"text {i}" for i in range(40)], [], tables.documents
    run = world(tmp_path, texts)
    drawn = [(query, doc) for query in (0, 1) for doc in range(40)]
    random.Random(3).shuffle(drawn)
    table(run, "documents", "documents", [[{"docid": f"d{i}", "text": texts[i], "n_chars": 6, "n_tokens": 1, "removed": False} for i in range(at, at + 4)] for at in range(0, 40, 4)])
    table(run, "intents", "intents/v1", [[intent(query, doc) for query, doc in [*drawn, drawn[5]]]])
    if kept:
        assert len(all_owed(run)) == 80 and len(keyed.read(run, "v1", PART, judge())) == 81
    monkeypatch.setattr(pairs, "CHUNK", 2)
    monkeypatch.setattr(tables, "documents", lambda *told: reads.append(told[1]) or read(*told))
    found = list(turns.owed(configured(run, "http://127.0.0.1:9/v1"), Pairs(run, judge()), PART))
    assert [one for one in reads if one.startswith("part")] == [f"part-{i:05d}" for i in range(10)]
    assert [owed.come for owed in found] == (list(range(2, 82)) if kept else list(range(1, 82)))
    due = [(pair.row, pair.query, pair.doc, pair.messages[-1]["content"].count(f"text {pair.doc}")) for _, pair, _, turn in found if turn]
    assert sorted(due) == [(row, *pair, 1) for row, pair in enumerate(drawn)] and 80 not in {row for row, *_ in due}


def test_a_stopped_run_keeps_no_keys(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)
    with serving(Script({"text 3": [error(401)], "*": [valid(1)]})) as url:
        ask(run, url, concurrency=1)
        assert not file(run).exists()
        ask(run, url, concurrency=1)
