"""Attempts after a new import: other row numbers, other parts, more queries; nothing is paid twice."""

import json

import pytest
from judge_script import Script, ask, error, intent, judge, serving, table, valid, world

from lib import contracts
from lib.judge import __main__ as show
from lib.judge import answers, ledger, prompt, store
from lib.judge.pairs import Pairs

TEXTS = [f"text {i}" for i in range(6)]


def queries(run, sizes: list[int]) -> None:
    """The queries q0, q1, ... in parts of these sizes, each with an intent for document i and i + 1."""
    numbers = iter(range(sum(sizes)))
    parts = [[next(numbers) for _ in range(size)] for size in sizes]
    for folder, row in (
        ("queries", lambda i: [{"qid": f"q{i}", "text": f"What is {i}?", "source_docid": None, "source_doc": None, "keep": True}]),
        ("intents/v1", lambda i: [intent(i, i), intent(i, i + 1)]),
    ):
        table(run, folder.split("/")[0], folder, [[line for i in part for line in row(i)] for part in parts])
    for folder in ("queries", "intents/v1"):
        for file in (run / folder).glob("part-*.parquet"):
            if int(file.stem[5:]) >= len(sizes):
                file.unlink()


def answered(run) -> dict:
    render, found = Pairs(run, judge()), {}
    for line in contracts.parts(run / "intents" / "v1"):
        told = answers.answers(run, "v1", line["part"].removesuffix(".parquet"), render)
        found |= {(row["query"], row["doc"]): row["score"] for row in told.to_pylist()}
    return found


@pytest.fixture
def run(tmp_path):
    run = world(tmp_path / "run", TEXTS)
    queries(run, [2, 2])
    with serving(Script({text: [error(500), valid(i % 3)] for i, text in enumerate(TEXTS)})) as url:
        assert ask(run, url)[0]["by_class"] == {"ok": 8, "server error": 5}
    return run


def test_a_set_remembers_the_partition_that_it_was_asked_under(run):
    hashes = [line["sha256"] for line in contracts.parts(run / "queries")]
    assert json.loads((run / "attempts" / "v1" / "queries.json").read_text()) == {"partitions": [hashes]}
    assert store.sources(run, "v1", "part-00001") == [store.path(run, "v1", "part-00001")]


@pytest.mark.parametrize("sizes", [[4], [1, 1, 1, 1], [1, 3], [3, 1]])
def test_queries_in_other_parts_keep_their_answers(run, sizes):
    before = answered(run)
    queries(run, sizes)
    assert answered(run) == before and None not in before.values() and len(before) == 8
    script = Script({"*": [valid(0)]})
    with serving(script) as url:
        assert ask(run, url)[0]["calls"] == 0
    assert answers.write(run, "v1", judge()) == 8
    ledger.close(run, ["v1"])
    path = store.every(run, "v1")[0]
    path.write_bytes(path.read_bytes().replace(prompt.task_id("q0", "d0").encode(), b"0" * 16))
    with pytest.raises(ledger.LedgerError, match="2 offenders, the first: an attempt of v1 for task 0000000000000000 carries the key of task"):
        ledger.close(run, ["v1"])


def test_more_queries_are_asked_and_the_first_ones_keep_their_answers_whatever_the_parts(run):
    before = answered(run)
    queries(run, [3, 2])
    script = Script({"*": [valid(2)]})
    with serving(script) as url:
        assert ask(run, url)[0]["by_class"] == {"ok": 2}
    assert answered(run) == before | {(4, 4): 2, (4, 5): 2}
    queries(run, [1, 1, 3])  # the new calls lie in a file of the partition before
    assert answered(run) == before | {(4, 4): 2, (4, 5): 2}
    queries(run, [2, 2])
    assert answered(run) == before
    with serving(script) as url:
        assert ask(run, url)[0]["calls"] == 0
    assert len(json.loads((run / "attempts" / "v1" / "queries.json").read_text())["partitions"]) == 2


def test_calls_made_after_a_new_partition_are_seen_at_once_and_count_in_their_pass(run):
    queries(run, [1, 1, 1, 2])
    with serving(Script({"*": [error(500)]})) as url:
        assert ask(run, url, budget=2)[0]["calls"] == 4
        assert ask(run, url, budget=3)[0]["calls"] == 2
        queries(run, [5])
        assert ask(run, url, budget=3)[0]["calls"] == 0
        assert ask(run, url, budget=1, passes=2)[0]["calls"] == 2
    assert answered(run)[4, 5] is None


def test_attempts_without_a_memory_are_all_searched(run):
    before = answered(run)
    (run / "attempts" / "v1" / "queries.json").unlink()
    queries(run, [4])
    assert answered(run) == before


@pytest.mark.parametrize("text", ["{", "[]", '{"partitions": 5}', '{"partitions": [5]}'])
def test_a_broken_memory_is_named(run, text):
    (run / "attempts" / "v1" / "queries.json").write_text(text)
    with pytest.raises(store.StoreError, match="queries.json is no list of partitions; delete it"):
        answered(run)


def test_other_document_rows_change_neither_the_answers_nor_the_ledger_nor_what_is_shown(run):
    answers.write(run, "v1", judge())
    before = list(show.show(run, "q1", "d2"))
    rows = [{"docid": f"d{i}", "text": text, "n_chars": len(text), "n_tokens": 1, "removed": False} for i, text in enumerate(TEXTS)]
    table(run, "documents", "documents", [rows[::-1][:2], rows[::-1][2:]])
    table(run, "intents", "intents/v1", [[intent(i, 5 - doc) for i in part for doc in (i, i + 1)] for part in ((0, 1), (2, 3))])
    answers.write(run, "v1", judge())
    ledger.close(run, ["v1"])
    assert list(show.show(run, "q1", "d2")) == before
    assert sum("call " in line for line in before) == 2


def test_show_finds_the_calls_under_a_former_prompt_and_in_another_part(run, tmp_path):
    other = tmp_path / "other.md"
    other.write_text("Judge strictly.\n")
    with serving(Script({"*": [valid(0)]})) as url:
        ask(run, url, prompt=str(other))
    queries(run, [1, 3])
    told = [line for line in show.show(run, "q1", "d1") if line.startswith("call ")]
    shas = [prompt.load().sha256[:8], prompt.load(other).sha256[:8]]
    assert told == [f"call 1 of pass 1 for v1: ok, score {score} (m, prompt {sha})" for score, sha in zip((1, 0), shas, strict=True)]
