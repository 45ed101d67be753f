"""Servers that are busy, hang, restart or always fail: the run ends by itself, within its caps."""

import asyncio
import threading
import time
from collections import Counter

import pytest
from judge_script import DROP, KEY, Script, ask, content, error, judge, pairs_of, rows, scores, serving, told, valid

from lib.judge import answers, asking, prompt, retry
from lib.judge.budget import Budget
from lib.judge.window import Window


class Busy(Script):
    """Refuses the calls numbered `first` to `last` of the whole run by 429, whatever they ask."""

    def __init__(self, first: int, last: int, headers=()):
        super().__init__({"*": [self.next]})
        self.storm, self.headers_of_storm, self.all = range(first, last), headers, 0

    def next(self, task):
        self.all += 1
        return error(429, headers=self.headers_of_storm) if self.all - 1 in self.storm else valid(1)(task)


@pytest.mark.parametrize("driver", ["sdk", "direct"])
@pytest.mark.parametrize("headers", [{}, {"retry-after-ms": "60"}])
def test_a_storm_of_refusals_in_the_middle_passes_and_every_pair_is_answered(tmp_path, driver, headers):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(90)])
    script = Busy(30, 60, headers)
    with serving(script) as url:
        summary, code = ask(run, url, driver=driver, concurrency=16, budget=4, passes=2, backoff=0.02)
    assert code == 0 and len(scores(run)) == 90
    assert summary["by_class"] == {"ok": 90, "rate limited": 30} and script.all == len(rows(run)) == 120


@pytest.mark.parametrize("driver", ["sdk", "direct"])
def test_a_server_that_always_fails_sees_exactly_as_many_calls_as_the_cap_allows(tmp_path, driver):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(40)])
    script = Script({"*": [error(500)]})
    with serving(script) as url:
        summary, code = ask(run, url, driver=driver, concurrency=8, max_calls=37, budget=3, passes=2)
        assert code == asking.STOPPED and "max_calls" in summary["stopped"]
        assert sum(script.calls.values()) == len(rows(run)) == summary["calls"] == 37
        summary, code = ask(run, url, driver=driver, concurrency=8, max_calls=37, budget=3, passes=2)
        assert code == asking.STOPPED and summary["calls"] == 0
        ask(run, url, driver=driver, concurrency=8, max_calls=41, budget=3, passes=2)
    assert sum(script.calls.values()) == len(rows(run)) == 41


@pytest.mark.parametrize("driver", ["sdk", "direct"])
def test_a_server_that_hangs_from_the_middle_on_stops_the_run(tmp_path, driver):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(60)])
    script = Script({**{f"t{i}": [valid(1)] for i in range(10)}, "*": [{"delay": 60.0}]})
    with serving(script) as url:
        summary, code = ask(run, url, driver=driver, concurrency=8, timeout=0.3, budget=4)
    assert code == asking.STOPPED and "calls in a row had no answer within 0.3 s" in summary["stopped"]
    assert summary["by_class"]["ok"] == 10 == len(scores(run)) and summary["by_class"]["timeout"] <= 40


def test_a_hang_that_ends_leaves_no_gap(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(30)])
    script = Script({**{f"t{i}": [{"delay": 1.0}, valid(2)] for i in range(5, 15)}, "*": [valid(1)]})
    with serving(script) as url:
        assert ask(run, url, concurrency=6, timeout=0.4)[1] == 0
    assert len(scores(run)) == 30 and Counter(scores(run).values()) == {1: 20, 2: 10}


@pytest.mark.parametrize("driver", ["sdk", "direct"])
def test_a_server_that_restarts_in_the_middle_is_waited_for(tmp_path, driver):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(60)])
    script, ended = Script({"*": [valid(1)]}, seconds=0.02), []

    def work(url):
        ended.append(ask(run, url, driver=driver, concurrency=4, budget=4, passes=2, backoff=0.1))

    def no_signals(self, *_):
        pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.unix_events._UnixSelectorEventLoop, "add_signal_handler", no_signals)  # not in a thread
        with serving(script) as url:
            thread = threading.Thread(target=work, args=(url,))
            thread.start()
            while sum(script.calls.values()) < 20:
                time.sleep(0.005)
        time.sleep(0.3)
        with serving(script, int(url.rpartition(":")[2].partition("/")[0])):
            thread.join(30)
    ((summary, code),) = ended
    assert code == 0 and len(scores(run)) == 60
    assert sum(script.calls.values()) - len([row for row in rows(run) if row["status"] != "connection"]) <= 4


def test_too_large_a_share_of_bad_replies_stops_the_run(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(60)])
    with serving(Script({"t0": [valid(1)], "*": [content("no JSON")]})) as url:
        summary, code = ask(run, url, concurrency=1, budget=1, bad_window=20, bad_share=0.5)
    assert code == asking.STOPPED and "were bad" in summary["stopped"] and summary["calls"] == 20


def test_a_pair_that_fails_for_good_is_one_bad_reply_to_the_breaker_however_often_it_is_asked(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(12)])
    with serving(Script({"t5": [content("no JSON")], "*": [valid(1)]})) as url:
        summary, code = ask(run, url, concurrency=1, budget=6, passes=2, bad_window=4, bad_share=0.5)
    assert code == 0 and summary["by_class"] == {"ok": 11, "not JSON": 12}


def test_where_nobody_is_there_the_next_pair_waits_too(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(4)])
    started = time.monotonic()
    with serving(Script({"t0": [valid(1)], "*": [DROP]})) as url:
        summary, _ = ask(run, url, concurrency=1, budget=1, backoff=0.1)
    assert summary["by_class"] == {"ok": 1, "connection": 3}
    assert time.monotonic() - started >= 3 * 0.1 * 2**2 / 2  # two doublings, of which half is drawn; no pair has a second try


@pytest.mark.parametrize("driver", ["sdk", "direct"])
@pytest.mark.parametrize("form", ["json_schema", "json_object", "none"])
def test_the_format_is_sent_as_named_and_the_same_check_decides(tmp_path, driver, form):
    run = pairs_of(tmp_path, ["a", "b"])
    script = Script({"a": [valid(2)], "b": [content('{"score": 2}')]})
    with serving(script) as url:
        ask(run, url, driver=driver, response_format=form, budget=1)
    (body,) = script.seen["a"]
    assert (body.get("response_format") or {"type": "none"})["type"] == form and body["temperature"] == 0.0
    by = prompt.judge("m", response_format=form, temperature=0.0)
    assert told(run, by) == {0: "ok", 1: "contract violation"}
    assert (told(run) == told(run, by)) == (form == "json_schema")
    assert {head["Authorization"] for head in script.headers} == {f"Bearer {KEY}"}


def test_every_class_has_one_rule_and_the_store_goes_by_the_same():
    assert set(retry.RULES) == set(answers.CLASSES)
    by_rule = {rule: {name for name, of in retry.RULES.items() if of is rule} for rule in retry.Rule}
    assert by_rule[retry.Rule.FINAL] == set(answers.VALID) and by_rule[retry.Rule.LATER] == answers.FINAL
    assert by_rule[retry.Rule.STOP] == answers.UNCOUNTED
    assert judge().response_format == "json_schema"


def test_the_window_is_cut_once_a_round_trip_falls_to_one_where_none_is_served_and_comes_back():
    async def course():
        window = Window(64)
        window.busy(0), window.busy(0)
        assert (window.size, window.cuts) == (64 * 0.7, 1)
        window.busy(1)
        assert (window.size, window.slow_below) == (1.0, 64 * 0.7 / 2)
        for _ in range(22):
            window.served()
        assert window.size == 23.0
        window.served()
        assert window.size == 23 + 4 / 23
        for _ in range(2_000):
            window.served()
        assert window.size == 64

    asyncio.run(course())


def test_the_window_bounds_who_is_in_holds_all_for_the_asked_wait_and_opens_at_the_end():
    async def course():
        window, inside, most = Window(3), 0, 0

        async def one():
            nonlocal inside, most
            async with window:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*[one() for _ in range(20)])
        assert most == 3 and window.flying == 0
        window.busy(window.cuts, 0.2)
        started = time.monotonic()
        await one()
        assert 0.2 <= time.monotonic() - started < 1.0
        window.busy(window.cuts, 60.0)
        waiting = asyncio.create_task(one())
        await asyncio.sleep(0.01)
        window.end()
        await asyncio.wait_for(waiting, 1.0)
        window.busy(window.cuts, 0.0)

    asyncio.run(course())


def test_a_served_call_makes_the_next_cut_a_small_one_a_short_wait_ends_no_long_one_and_who_gives_up_keeps_no_place():
    async def course():
        window = Window(10)
        for _ in range(2):
            window.busy(window.cuts)
            window.served()
        assert window.unserved == 0 and window.size == 7 * 0.7 + 4 / 7 * 0.7 + 4 / (7 * 0.7 + 4 / 7 * 0.7)  # cut, grown, cut, grown
        window.busy(window.cuts, 60.0), window.busy(window.cuts, 0.0)
        waiting = asyncio.create_task(window.__aenter__())
        await asyncio.sleep(0.01)
        assert not waiting.done() and window.flying == 0
        window.end()
        waiting.cancel()  # after it was let in, before it knows
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert window.flying == 0

    asyncio.run(course())


@pytest.mark.parametrize("driver", ["sdk", "direct"])
def test_the_slot_of_a_call_is_cleared_after_its_attempt_is_written(tmp_path, monkeypatch, driver):
    run, cleared = pairs_of(tmp_path, ["a", "b", "c"]), []
    plain = Budget.clear

    def clear(self, held):
        cleared.append(held.key in {row["key"] for row in rows(run)})
        plain(self, held)

    monkeypatch.setattr(Budget, "clear", clear)
    with serving(Script({"*": [valid(1)]})) as url:
        ask(run, url, driver=driver, max_calls=9)
    assert cleared == [True] * 3  # a process that is killed between the two counts its call twice, never not at all
