"""The kept keys of a set: a resumed run renders what it still asks and nothing else, and never trusts keys of something else."""

import pytest
from judge_script import Script, ask, configured, error, intent, judge, pairs_of, serving, table, valid

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
    return [(pair.key, pair.row, intent, turn) for pair, intent, turn in turns.owed(configured(run, "http://127.0.0.1:9/v1", **changed), Pairs(run, by), PART) if turn]


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


def test_a_stopped_run_keeps_no_keys(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)
    with serving(Script({"text 3": [error(401)], "*": [valid(1)]})) as url:
        ask(run, url, concurrency=1)
        assert not file(run).exists()
        ask(run, url, concurrency=1)
