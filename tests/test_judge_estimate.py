"""What asking would cost before anything is sent, the caps of the client over real HTTP, and the line of progress."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path

import pytest
from judge_script import KEY, Script, ask, configured, content, error, intent, judge, pairs_of, rows, serving, table, told, valid, world

from lib import paths
from lib.judge import __main__ as command, asking
from lib.judge import attacks, budget, estimate, keyed, pairs, prices, prompt, store, turns
from lib.judge.pairs import Pairs
from lib.judge.progress import Progress, duration, pairs_in

MODEL = "gpt-4o-mini-2024-07-18"
URL = "http://127.0.0.1:9/v1"


def plan(run, **changed):
    return configured(run, URL, **{"model": MODEL, "parameters": {"max_completion_tokens": 100}, "passes": 2, "budget": 3} | changed)


def worst_inputs(run, by):
    rendered = Pairs(run, by).render("part-00000", pairs.intents(run, "v1", "part-00000"))
    return [budget.worst_input(pair.messages) for pair in sorted(rendered, key=lambda pair: pair.row)]


def test_an_estimate_counts_pairs_calls_tokens_and_cost_by_stage(tmp_path):
    run, by = world(tmp_path, ["a" * 1000, "b" * 10, "c"]), prompt.judge(MODEL, max_completion_tokens=100)
    rows_ = [intent(0, 0), intent(0, 1), intent(0, 2, stage="pick"), intent(1, 0, stage="pick", withdrawn=True), intent(1, 1, judge="student")]
    table(run, "intents", "intents/v1", [rows_])
    first, second = estimate.estimate([plan(run)], by, prices.read()).to_dict("records")
    sizes = worst_inputs(run, by)
    assert (first["stage"], first["pairs"], first["owed"], first["calls"], first["worst calls"]) == ("dense 1-5", 2, 2, 2, 12)
    assert (second["stage"], second["pairs"], second["owed"], second["worst calls"]) == ("pick", 2, 1, 6)
    assert first["input tokens"] == -(-(sizes[0] + sizes[1]) // 4) and first["output tokens"] == 2 * estimate.SAID
    assert first["worst input tokens"] == 6 * (sizes[0] + sizes[1]) and first["worst output tokens"] == 12 * 100
    assert first["worst cost"] == (Decimal("0.15") * first["worst input tokens"] + Decimal("0.60") * 1200) / 10**6
    assert not (run / "attempts").exists()  # nothing was sent or written


def test_an_estimate_knows_what_is_answered_and_how_long_replies_were(tmp_path):
    run = pairs_of(tmp_path, ["a", "b", "c"])
    with serving(Script({"a": [valid(1)], "*": [content("no")]})) as url:
        ask(run, url, passes=1, budget=1, parameters={}, prompt=str(prompt.PROMPT))
    (line,) = estimate.estimate([plan(run, model="m", parameters={})], prompt.judge("m"), prices.read()).to_dict("records")
    assert (line["pairs"], line["owed"], line["worst calls"]) == (3, 2, 2 * (2 + 3))  # one call of six is made
    assert line["output tokens"] == 2 * 7  # the script's replies take 7
    assert line["cost"] is None and line["worst output tokens"] is None


def by_rendering(config, by):
    """The counts of the estimate by stage, of every pair rendered; no keys are kept before and after."""
    found, kept = defaultdict(Counter), Path(config.run, "attempts", config.set, "keys")
    shutil.rmtree(kept, ignore_errors=True)
    for part in turns.part_names(config):
        for _, pair, intent, turn in turns.owed(config, Pairs(config.run, by), part):
            found[intent["stage"]]["pairs"] += 1
            if turn:
                worst, calls = budget.worst_input(pair.messages), turn.left + (config.passes - turn.in_pass) * config.budget
                found[intent["stage"]].update({"owed": 1, "worst calls": calls, "bytes": worst, "worst input tokens": worst * calls})
    shutil.rmtree(kept, ignore_errors=True)
    return {stage: (one["pairs"], one["owed"], one["worst calls"], -(-one["bytes"] // 4), one["worst input tokens"]) for stage, one in found.items()}


def counted(config, by):
    rows = estimate.estimate([config], by, prices.read())
    return {row.pop("stage"): tuple(row.values()) for row in rows[["stage", "pairs", "owed", "worst calls", "input tokens", "worst input tokens"]].to_dict("records")}


def messages(monkeypatch):
    """The documents that are rendered from here on; an empty one is that of the fixed parts."""
    found, plain = [], prompt.messages
    monkeypatch.setattr(prompt, "messages", lambda by, task, query, document: (document and found.append(document), plain(by, task, query, document))[1])
    return found


TEXTS = ["", "a" * 50, "é" * 50, "\U0001f600" * 50, '"\\\n<<<', "ab\U0001f600é" * 9, "e\u0301" * 30, "\x00\r\n"]


@pytest.fixture
def mixed(tmp_path):
    """Two parts of documents and of queries; texts of 1 to 4 bytes a character, cut at one, at some, nowhere; withdrawn and repeated pairs."""
    run = world(tmp_path / "run", TEXTS, queries_a_part=2, parts=2)
    table(run, "queries", "queries", [[{"qid": f"q{part}{i}", "text": f"Is {text}?", "source_docid": None, "source_doc": None, "keep": True}
                                       for i, text in enumerate(["é\U0001f600", "x"])] for part in range(2)])
    sent = [[intent(2 * part + (doc + at) % 2, doc, stage="pick" if doc % 3 else "long", max_chars=most, withdrawn=doc == 3 and at == 0)
             for at, most in enumerate([1, 40, None, 40, 1000]) for doc in range(len(TEXTS))] for part in range(2)]
    table(run, "intents", "intents/v1", sent)
    return run


def test_an_estimate_is_that_of_rendering_every_pair_before_and_after_asking_with_keys_and_without(mixed, monkeypatch):
    config, by = plan(mixed, model="m", parameters={}, budget=2), prompt.judge("m")
    assert (first := counted(config, by)) == by_rendering(config, by)
    assert sum(one[0] for one in first.values()) == 80 > sum(one[1] for one in first.values()) > 40, "some are withdrawn, and some said twice"
    with serving(Script({TEXTS[1]: [valid(1)], TEXTS[4]: [content("no")], TEXTS[2][:40]: [error(400)], "*": [content("no"), valid(2)]})) as url:
        ask(mixed, url, parts=["part-00000"], passes=1, budget=1, parameters={}, prompt=str(prompt.PROMPT))
        ask(mixed, url, parts=["part-00000"], stages=["long"], passes=1, budget=2, parameters={}, prompt=str(prompt.PROMPT))
    assert keyed.read(mixed, "v1", "part-00000", by) and keyed.read(mixed, "v1", "part-00001", by) is None
    kept = counted(config, by)
    assert first != kept == by_rendering(config, by)
    assert keyed.read(mixed, "v1", "part-00000", by) is None and counted(config, by) == kept
    narrow = config._replace(stages=["long"], passes=1)
    assert counted(narrow, by) == by_rendering(narrow, by)
    other, seen = prompt.judge("other"), messages(monkeypatch)
    assert counted(config._replace(model="other"), other) == first, "another judge was asked nothing"
    assert 0 < len(seen) < 80, "only those that stand twice are rendered"
    first_half = store.path(mixed, "v1", "part-00000")
    store.remember(mixed, "v1")
    (mixed / "attempts/v1/queries.json").write_text('{"partitions": [["another"]]}')
    first_half.rename(first_half.with_name("part-00077.jsonl"))
    assert counted(config, by) == kept == by_rendering(config, by), "the calls of another partition of the queries are found"


def test_an_estimate_renders_only_pairs_that_a_call_may_answer(tmp_path, monkeypatch):
    run, by = pairs_of(tmp_path, [f"text {i}" for i in range(30)]), judge()
    table(run, "intents", "intents/probe", [[intent(0, 7, "probe"), intent(1, 8, "probe")]])
    with serving(Script({"*": [valid(1)]})) as url:
        ask(run, url, set="probe")
    seen = messages(monkeypatch)
    assert counted(configured(run, URL), by)["dense 1-5"][:2] == (30, 29) and seen == ["text 7"]


def test_an_estimate_of_canaries_counts_their_attacks(tmp_path):
    names = list(attacks.known())[:3]
    run, by = world(tmp_path, ["é" * 30, "b"]), judge()
    table(run, "intents", "intents/canary", [[intent(0, i % 2, "canary", reason=name, max_chars=20) for i, name in enumerate(names)]])
    config = configured(run, URL, set="canary")
    assert counted(config, by) == by_rendering(config, by)


def test_the_command_prints_the_estimate_and_refuses_in_one_sentence(tmp_path, capsys):
    run = pairs_of(tmp_path / "run", ["a", "b"])
    command.main(["estimate", "--run", str(run), "--model", MODEL, "--sampling", '{"max_completion_tokens": 50}'])
    said = capsys.readouterr().out.splitlines()
    assert said[0].split()[:4] == ["set", "version", "stage", "pairs"] and said[-2].split()[:2] == ["all", "2"]
    assert said[-1] == f"cost in USD, at the prices of {prices.read().date} in prices.yaml"
    for options, why in {
        ("--passes", "0"): "passes is 0", ("--sampling", '{"heat": 1}'): "no parameter 'heat'", ("--prices", str(tmp_path / "none")): "is no list of prices",
        ("--set", "v2"): "v2",
    }.items():  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            command.main(["estimate", "--run", str(run), *options])
        assert why in str(ended.value) and "\n" not in str(ended.value)


FAILING = {"500": error(500), "not JSON": content("no"), "refused": {"content": None, "refusal": "no"}}


@pytest.mark.parametrize("driver", ["sdk", "direct"])
@pytest.mark.parametrize("failure", FAILING)
def test_a_server_that_always_fails_sees_exactly_as_many_calls_as_the_cap(tmp_path, failure, driver):
    run, script = pairs_of(tmp_path, [f"text {i}" for i in range(30)]), Script({"*": [FAILING[failure]]})
    with serving(script) as url:
        summary, code = ask(run, url, driver=driver, max_calls=17, budget=3, passes=2, concurrency=8)
        assert sum(script.calls.values()) == 17 == len(rows(run)) == summary["calls"]
        assert code == asking.STOPPED and "has spent 17 of max_calls 17 calls" in summary["stopped"]
        again, code = ask(run, url, driver=driver, max_calls=17, budget=3, passes=2, concurrency=8)
        assert sum(script.calls.values()) == 17 and again["calls"] == 0 and code == asking.STOPPED
        ask(run, url, driver=driver, max_calls=29, budget=3, passes=2, concurrency=8)
        assert sum(script.calls.values()) == 29 == len(rows(run))
    assert "budget stop" in told(run).values()


def test_a_cap_on_tokens_lets_calls_in_flight_settle_before_it_stops(tmp_path):
    run, script = pairs_of(tmp_path, [f"text {i}" for i in range(30)]), Script({"*": [valid(1)]}, seconds=0.01)
    by = judge(max_completion_tokens=100)
    worst = max(worst_inputs(run, by)) + 100
    with serving(script) as url:  # a reply takes 18 tokens: 11 + 7
        said, code = ask(run, url, max_tokens=worst + 18 * 9, parameters=by.parameters, concurrency=8)
    assert code == asking.STOPPED and "max_tokens" in said["stopped"]
    assert sum(script.calls.values()) == 10  # nine settled leave room for one more at its worst


def test_a_call_has_its_cost_in_its_attempt_and_money_stops_the_run(tmp_path):
    run = pairs_of(tmp_path, [f"text {i}" for i in range(30)])
    (tmp_path / "prices.yaml").write_text("date: 2024-08-06\ncurrency: EUR\nmodels: {m: {input: '1', output: '2'}}\n")
    by = judge(max_completion_tokens=100)
    worst = max(worst_inputs(run, by))
    cap = (worst + 200 + 3 * 25) / 10**6  # three calls of 11 + 2 x 7 millionths, and one at its worst
    with serving(Script({"*": [valid(1)]})) as url:
        said, code = ask(run, url, max_cost=cap, prices=str(tmp_path / "prices.yaml"), parameters=by.parameters, concurrency=4)
    assert code == asking.STOPPED and "EUR" in said["stopped"]
    assert [row["cost"] for row in rows(run)] == [0.000025] * 4


def test_a_model_without_a_price_does_not_run_under_a_cap_on_money(tmp_path):
    run, script = pairs_of(tmp_path, ["a"]), Script({"*": [valid(1)]})
    with serving(script) as url, pytest.raises(prices.PriceError, match="no price of the model 'm'"):
        ask(run, url, max_cost=5.0, parameters={"max_completion_tokens": 10})
    assert not script.calls


def test_calls_that_made_no_connection_use_no_tokens_in_this_process_and_the_next(tmp_path):
    run = pairs_of(tmp_path, ["a"])
    ask(run, URL, backoff=0.001, max_tokens=10**6, parameters={"max_completion_tokens": 10})
    spent = budget.Budget(configured(run, URL, max_tokens=10**6, parameters={"max_completion_tokens": 10}), judge(max_completion_tokens=10)).spent()
    assert spent.calls == 3 and spent.input_tokens == spent.output_tokens == 0


def test_too_many_bad_replies_stop_the_run(tmp_path):
    run, script = pairs_of(tmp_path, [f"text {i}" for i in range(60)]), Script({"text 0": [valid(1)], "*": [content("no")]})
    with serving(script) as url:
        said, code = ask(run, url, budget=1, concurrency=4, bad_window=20)
    assert code == asking.STOPPED and "of the last 20 first replies were bad" in said["stopped"]
    assert 20 <= sum(script.calls.values()) <= 24


def test_an_interrupted_wait_for_the_caps_ends(tmp_path):
    account = budget.Budget(plan(pairs_of(tmp_path, ["a"]), max_calls=1), prompt.judge(MODEL, max_completion_tokens=100))
    pair = next(turns.owed(plan(tmp_path), Pairs(tmp_path, prompt.judge(MODEL)), "part-00000")).pair

    async def waits():
        assert await account.hold(pair)
        waiting = asyncio.create_task(account.hold(pair))
        await asyncio.sleep(0.01)
        assert not waiting.done() and account.stop is None
        account.end()
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(waits()) is None


def test_the_line_of_progress_tells_rate_cost_and_time_left(tmp_path):
    run = pairs_of(tmp_path, ["a", "b", "c"])
    assert pairs_in(configured(run, URL), ["part-00000"]) == 3
    now = [0.0]
    progress = Progress(lambda: now[0])
    progress.begin(1000)
    assert progress.line(0, 0, None, "USD") == "0 answered in 0 calls, 0 a second"
    for second in range(1, 301):
        now[0] = float(second)
        progress.come_to(second)
        if second % 5 == 0:
            said = progress.line(2 * second, second, Decimal("1.5"), "USD")
    assert said == "300 answered in 600 calls, 2 a second, 1.50 USD spent, about 12 min left"  # 700 pairs at one a second
    assert [duration(seconds) for seconds in (40, 700, 11_100, 190_000)] == ["40 s", "12 min", "3 h 05 min", "2 d 4 h"]


def test_a_resumed_pass_comes_to_all_its_pairs_though_only_those_that_are_owed_are_rendered(tmp_path, monkeypatch):
    run, seen = pairs_of(tmp_path, list("abcdef")), []
    plain = Progress.come_to
    monkeypatch.setattr(Progress, "come_to", lambda self, pairs: (plain(self, pairs), seen.append((pairs, self.total))))
    with serving(Script({"c": [error(500)], "e": [error(500)], "*": [valid(1)]})) as url:
        ask(run, url, budget=1, passes=1)
        first = [pairs for pairs, _ in seen]
        seen.clear()
        ask(run, url, budget=1, passes=2)
    assert first == [1, 2, 3, 4, 5, 6, 6] and seen == 2 * [(5, 6), (6, 6), (6, 6)]


def test_the_client_prints_how_it_stands(tmp_path):
    run, script = pairs_of(tmp_path, [f"text {i}" for i in range(40)]), Script({"*": [valid(1)]}, seconds=0.3)
    config = tmp_path / "config.json"
    with serving(script) as url:
        config.write_text(json.dumps(configured(run, url, concurrency=1)._asdict()))
        done = subprocess.run(
            [sys.executable, "-m", "lib.judge.client", str(config)], cwd=paths.ROOT, env={"PATH": "", "QRELBOOK_JUDGE_KEY": KEY}, capture_output=True, text=True
        )
    line = done.stderr.splitlines()[0]
    assert line.startswith("judge v1 pass 1: ") and " a second" in line and " left" in line and "in flight" in line
