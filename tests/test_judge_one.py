"""A single pair judged into the store: its reply answers the pair later, and an answered pair is not paid again."""

import os
import subprocess
import sys

import pytest
from judge_script import KEY, Script, ask, content, error, intent, judge, pairs_of, serving, table, told, valid, world

from lib import contracts, paths
from lib.judge import __main__ as show
from lib.judge import answers, located, one, store

TEXTS = ["text 0", "text 1", "text 2"]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("QRELBOOK_JUDGE_KEY", KEY)


def test_a_pair_that_no_route_sends_is_judged_once_and_answers_when_a_route_sends_it(tmp_path):
    run, script = pairs_of(tmp_path / "run", TEXTS[:2]), Script({"*": [valid(1), valid(2)]})
    world(run, TEXTS)
    with serving(script) as url:
        first = list(one.judge(run, "q1", "d2", judge(), url))
        again = list(one.judge(run, "q1", "d2", judge(), url))
    assert first[0] == "asked 1 time" and "query q1, document d2: score 1 (m, prompt " in first[1]
    assert again == ["answered before, nobody was asked", first[1]] and script.calls == {"text 2": 1}
    table(run, "intents", "intents/v1", [[intent(1, 2, max_chars=one.MAX_CHARS)]])
    assert told(run, judge()) == {2: "ok"}
    assert any(line.startswith("call 1 of pass 1 for one: ok, score 1") for line in show.show(run, "q1", "d2"))


def test_a_routed_pair_is_asked_as_its_route_sends_it_and_unfinishes_the_answers_it_may_change(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS, max_chars=4)
    table(run, "intents", "intents/v2", [[intent(0, 1, "v2")]])
    table(run, "intents", "intents/second", [[intent(0, 0, "second judge")]])
    for name in ("v1", "v2", "second"):
        answers.write(run, name, judge())
    script = Script({"text": [valid(2)]})
    with serving(script) as url:
        assert list(one.judge(run, "q0", "d0", judge(), url))[0] == "asked 1 time"
        assert [name for name in ("v1", "v2", "second") if (run / "answers" / name / "manifest.json").exists()] == ["v2", "second"]
        assert list(one.judge(run, "q0", "d2", judge(), url))[0] == "asked 1 time"
        assert list(one.judge(run, "q0", "d0", judge(), url))[0] == "answered before, nobody was asked"
    assert told(run, judge()) == {0: "ok", 1: "budget stop", 2: "ok"} and script.calls == {"text": 2}


def test_a_pair_without_a_valid_reply_ends_with_the_class_of_its_own_last_call_and_an_unevaluable_one_with_0(tmp_path, capsys):
    run, refused = world(tmp_path / "run", TEXTS), {"content": None, "refusal": "no"}
    table(run, "intents", "intents/v1", [[intent(0, 0)]])
    script = Script({"text 0": [error(400), refused, refused, refused, content("x"), valid(0)], "text 1": [valid(None)]})
    with serving(script) as url:
        ask(run, url, budget=1)  # a call of v1, which is not one of these

        def command(docid, *words):
            return show.main(["one", "q0", docid, "--judge", url, "--model", "m", "--sampling", '{"temperature": 0.0}', "--run", str(run), *words])

        with pytest.raises(SystemExit) as ended:
            command("d0", "--passes", "1")
        assert ended.value.code == (
            "lib.judge: query q0, document d0: no valid reply in 3 calls, and the last ended as refusal; `python -m lib.judge show` "
            "says why; mend that and ask with --passes 2, or ask another model, sampling or prompt"
        )
        assert capsys.readouterr().out == "asked 3 times\n"
        with pytest.raises(SystemExit, match="no valid reply in 3 calls"):
            command("d0", "--passes", "1")
        assert capsys.readouterr().out == "asked 0 times\n"
        command("d0", "--passes", "2")
        assert capsys.readouterr().out.startswith("asked 2 times\nquery q0, document d0: score 0 (m, ")
        command("d1")
        assert "query q0, document d1: the query cannot be evaluated (m, " in capsys.readouterr().out


def test_unknown_ids_are_named(tmp_path):
    with pytest.raises(located.Unknown, match="has no document 'd9'; its document ids are like d0"):
        list(one.judge(pairs_of(tmp_path / "run", TEXTS), "q0", "d9", judge(), "env"))


def test_the_command_judges_and_compacts(tmp_path):
    run = pairs_of(tmp_path / "run", TEXTS)

    def command(*words):
        return subprocess.run(
            [sys.executable, "-m", "lib.judge", *words, "--run", str(run)], cwd=paths.ROOT, capture_output=True, text=True, env=os.environ
        )

    with serving(Script({"*": [valid(2)]})) as url:
        done = command("one", "q0", "d1", "--judge", url, "--model", "m")
    assert done.returncode == 0 and "document d1: score 2 (m, " in done.stdout, done.stderr
    done = command("one", "q0", "d1", "--model", "m")
    assert done.returncode == 0 and done.stdout.startswith("answered before"), done.stderr
    done = command("one", "q0", "d2", "--model", "m")
    assert done.returncode == 1 and done.stderr.startswith("lib.judge: judge is env and QRELBOOK_JUDGE_URL is not set")
    done = command("compact")
    assert done.stdout == "one: 1 of 1 files with new lines taken in\n" and store.path(run, "one", "part-00000").with_suffix(".parquet").exists()
    assert command("compact").stdout == ""
    assert contracts.read("intents", run / "intents" / "one").num_rows == 1


@pytest.mark.parametrize("options, why", [
    (["--sampling", "[1]"], "is no JSON object of parameters"), (["--sampling", "{"], "is no JSON object of parameters"),
    (["--sampling", "[" * 100_000], "is no JSON object of parameters"), (["--sampling", '{"model": "x"}'], "is no JSON object of parameters"),
    (["--sampling", '{"max_tokens": "many"}'], "max_tokens is 'many'; it must be a whole number from 1"),
    (["--sampling", '{"max_completion_tokens": -5}'], "max_completion_tokens is -5"), (["--max-chars", "-5"], "max_chars is -5"),
], ids=range(7))  # fmt: skip
def test_options_that_make_no_call_are_one_sentence(tmp_path, options, why):
    run = pairs_of(tmp_path / "run", TEXTS)
    with pytest.raises(SystemExit) as ended:
        show.main(["one", "q0", "d1", "--judge", "http://127.0.0.1:1/v1", "--model", "m", "--run", str(run), *options])
    assert why in str(ended.value) and "damaged" not in str(ended.value) and len(str(ended.value)) < 300


def test_a_run_that_is_not_there_is_not_made_by_compacting_it(tmp_path):
    with pytest.raises(SystemExit, match="nowhere has no attempts; name another run"):
        show.main(["compact", "--run", str(tmp_path / "nowhere")])
    assert not (tmp_path / "nowhere").exists()
