"""The account of a run folder: caps that no interleaving of calls, refusals and killed processes passes."""

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judge_script import judge

from lib import paths
from lib.judge import answers, budget, contract, prices, prompt, slots, store
from lib.judge.breaker import Breaker
from lib.judge.budget import Budget, BudgetError
from lib.judge.pairs import Pair
from lib.judge.reply import Outcome

MODEL, SAID = "gpt-4o-mini-2024-07-18", 50
BY = prompt.judge(MODEL, max_completion_tokens=SAID)


def config(run, **changed):
    known = {"run": str(run), "set": "v1", "max_calls": None, "max_tokens": None, "max_cost": None, "prices": None, "concurrency": 2}
    return SimpleNamespace(**known | changed)


def pair(size: int, number: int = 0) -> Pair:
    return Pair(0, 0, 0, f"{number:064x}", "0" * 16, [{"role": "user", "content": "é" * size}])


def attempt(status, sent, said, cost, number=1, model=MODEL) -> dict:
    row = dict.fromkeys(store.COLUMNS) | {
        "key": "k", "task_id": "t", "query": 0, "doc": 0, "version": "v1", "stage": "s", "round": 1, "pass": 1, "attempt": number,
        "status": status, "input_tokens": sent, "output_tokens": said, "cost": cost, "latency": 0.1, "prompt_sha256": "p",
        "schema_sha256": "s", "model": model,
    }  # fmt: skip
    return {name: row[name] for name in store.COLUMNS}


def cost(sent: int, said: int) -> Fraction:
    """Of a call with the model of these tests, rounded up to a billionth: 0.15 and 0.60 for a million."""
    exact = Fraction(15, 100) * sent / 10**6 + Fraction(60, 100) * said / 10**6
    return Fraction(-(-exact * 10**9 // 1), 10**9)


class Reference:
    """The same account, kept as a list of all that happened and summed anew each time."""

    def __init__(self):
        self.rows, self.settled, self.noted, self.lost = [], [], [], []  # (calls, sent, said, money)

    def total(self, *more):
        lines = [*self.rows, *self.settled, *self.noted, *self.lost, *more]
        return tuple(sum(line[at] for line in lines) for at in range(4))


STEPS = st.lists(
    st.tuples(st.sampled_from(["reserve", "known", "unknown", "refused", "unreached", "row", "clear", "release", "kill", "close"]), st.integers(0, 200)),
    max_size=40,
)
KILLED_EVERYWHERE = [
    ("reserve", 0), ("kill", 0), ("reserve", 1), ("known", 9), ("kill", 0), ("reserve", 2), ("unknown", 0), ("row", 0), ("kill", 0), ("reserve", 3),
    ("known", 5), ("row", 0), ("clear", 0), ("kill", 0), ("reserve", 4), ("close", 0), ("reserve", 5), ("reserve", 5), ("reserve", 5), ("reserve", 6),
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([(3, None, None), (None, 9_000, None), (None, None, 0.002), (6, 20_000, 0.003)]))
@example(KILLED_EVERYWHERE, (None, None, 0.01))
@example(KILLED_EVERYWHERE, (6, None, None))
@example(KILLED_EVERYWHERE, (None, 16_000, None))
def test_no_interleaving_of_calls_and_kills_passes_a_cap(steps, caps):
    with tempfile.TemporaryDirectory() as folder:
        walk(Path(folder) / "run", steps, dict(zip(("max_calls", "max_tokens", "max_cost"), caps, strict=True)))


def walk(run: Path, steps, caps) -> None:
    """Take the steps; after each, what the budget says is spent is what the reference adds up."""
    account, truth, flying = Budget(config(run, **caps), BY), Reference(), []
    really, number = [0, 0, Fraction(0)], 0

    def fits(sent, said, with_flying):
        held = [(1, call.sent, call.said, cost(call.sent, call.said)) for call in flying if not call.settled] if with_flying else []
        calls, sent, said, money = truth.total(*held, (1, sent, said, cost(sent, said)))
        return (
            (caps["max_calls"] is None or calls <= caps["max_calls"])
            and (caps["max_tokens"] is None or sent + said <= caps["max_tokens"])
            and (caps["max_cost"] is None or money <= Fraction(str(caps["max_cost"])))
        )

    for step, value in steps:
        number += 1
        if step == "reserve":
            asked = pair(value, number)
            sent = 2 * value + len(contract.canonical(contract.flat_schema())) + 64
            stopped, held = account.stop, account.reserve(asked)
            assert (held is not None) == (stopped is None and fits(sent, SAID, True))
            assert account.stop is None or stopped or not fits(sent, SAID, False)
            if held:
                flying.append(SimpleNamespace(held=held, sent=sent, said=SAID, settled=None, row=False))
        elif step in ("known", "unknown", "refused", "unreached"):
            call = next((call for call in flying if not call.settled), None)
            if call:
                outcome, used = {
                    "known": (Outcome("ok", input_tokens=value, output_tokens=value // 5, http=200), (value, value // 5)),
                    "unknown": (Outcome("timeout"), None),
                    "refused": (Outcome("rate limited", http=429), (0, 0)),
                    "unreached": (Outcome("connection", input_tokens=0, output_tokens=0, unreached=True), (0, 0)),
                }[step]
                paid = account.settle(call.held, outcome)
                tokens = used or (call.sent, call.said)
                assert Fraction(str(paid)) == cost(*tokens)
                call.settled, call.line = (outcome, paid), (1, *tokens, cost(*tokens))
                call.noted = [] if used else [(0, *tokens, Fraction(0))]
                truth.settled.append(call.line)
                really = [really[0] + (step != "unreached"), really[1] + (sum(used) if used else 0), really[2]]
        elif step == "row":
            call = next((call for call in flying if call.settled and not call.row), None)
            if call:
                outcome, paid = call.settled
                writer = store.Writer(store.path(run, "v1", "part-00000"))
                writer.append(attempt(outcome.status, outcome.input_tokens, outcome.output_tokens, paid, number))
                writer.close()
                call.row = True
        elif step == "clear":
            call = next((call for call in flying if call.row), None)
            if call:
                account.clear(call.held)
                flying.remove(call)
        elif step == "release":
            call = next((call for call in flying if not call.settled), None)
            if call:
                account.release(call.held)
                flying.remove(call)
        else:
            if step == "close":
                account.close()
            # a row in both places, and a note without its row, count twice: what is in a slot is lost
            truth.lost += [(1, call.sent, call.said, cost(call.sent, call.said)) for call in flying]
            for call in flying:
                if call.settled and not call.row:
                    truth.settled.remove(call.line)
                    truth.noted += call.noted
            flying = []
            account = Budget(config(run, **caps), BY)
        calls, sent, said, money = truth.total()
        spent = account.spent()
        assert (spent.calls, spent.input_tokens, spent.output_tokens) == (calls, sent, said)
        assert Fraction(spent.cost) == money
        assert really[0] <= calls and really[1] <= sent + said
        assert caps["max_calls"] is None or really[0] <= caps["max_calls"]
        assert caps["max_tokens"] is None or really[1] <= caps["max_tokens"]
    account.close()


CALLER = """
import http.client, sys, types
sys.path[:0] = [{root!r}, {tests!r}]
from test_judge_budget import BY, attempt, config, pair
from lib.judge import store
from lib.judge.budget import Budget
from lib.judge.reply import Outcome
run, port = sys.argv[1], int(sys.argv[2])
account = Budget(config(run, max_calls=40), BY)
writer = store.Writer(store.path(run, "v1", "part-00000"))
number = 0
while (held := account.reserve(pair(5, number))) is not None:
    number += 1
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/")
    connection.getresponse().read()
    paid = account.settle(held, Outcome("server error", http=500))
    writer.append(attempt("server error", None, None, paid, number))
    account.clear(held)
print(account.stop)
account.close()
"""


def test_processes_killed_at_random_points_make_no_call_above_the_cap(tmp_path):
    import http.server
    import random
    import threading

    seen = []

    class Failing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(time.monotonic())
            time.sleep(0.02)
            self.send_response(500)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    script = CALLER.format(root=str(paths.ROOT), tests=str(Path(__file__).parent))
    draws, run = random.Random(3), tmp_path / "run"
    command = [sys.executable, "-c", script, str(run), str(server.server_port)]
    for _ in range(4):
        before = len(seen)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while len(seen) == before and process.poll() is None:
            time.sleep(0.002)
        time.sleep(draws.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    server.shutdown()
    assert "has spent 40 of max_calls 40 calls" in said and "raise max_calls" in said
    written = len(store.read(store.path(run, "v1", "part-00000")))
    lost = json.loads((run / "attempts" / "lost_calls.json").read_text())["calls"] if (run / "attempts" / "lost_calls.json").exists() else []
    assert written + len(lost) == 40 and 0 <= len(seen) - written <= len(lost) <= 4


def test_calls_that_a_batch_goes_on_with_are_taken_back(tmp_path):
    first = Budget(config(tmp_path, max_calls=10), BY)
    for number in range(5):
        assert first.reserve(pair(3, number))
    first.close()
    second = Budget(config(tmp_path, max_calls=10), BY)
    assert second.spent().calls == 5
    found = second.reclaim([pair(3, 1).key, pair(3, 4).key, "f" * 64])
    assert [held.key for held in found] == [pair(3, 1).key, pair(3, 4).key] and second.spent().calls == 3
    for held in found:
        second.settle(held, Outcome("ok", input_tokens=1, output_tokens=1, http=200))
        second.clear(held)
    second.close()
    assert Budget(config(tmp_path, max_calls=10), BY).spent().calls == 3  # these two have no attempts here


def test_more_calls_than_slots_at_once_are_held(tmp_path):
    account = Budget(config(tmp_path, concurrency=2), BY)
    held = [account.reserve(pair(1, number)) for number in range(50)]
    assert len({call.slot for call in held}) == 50
    again = Budget(config(tmp_path), BY)
    assert sorted(call.key for call in again._slots.lost) == sorted(call.key for call in held)


def test_a_run_without_caps_leaves_no_file_of_the_account_when_it_ends_well(tmp_path):
    account = Budget(config(tmp_path), judge())
    held = account.reserve(pair(3))
    assert account.settle(held, Outcome("ok", input_tokens=5, output_tokens=2, http=200)) is None
    account.clear(held)
    account.close()
    assert list((tmp_path / "attempts").iterdir()) == []


def test_a_cap_that_cannot_be_held_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(prices.PriceError, match=r"prices.yaml has no price of the model 'm'; add it"):
        Budget(config(tmp_path, max_cost=1.0), judge(max_tokens=5))
    for name in ("max_tokens", "max_cost"):
        with pytest.raises(BudgetError, match=f"{name} is set and the judge has no max_completion_tokens"):
            Budget(config(tmp_path, **{name: 5}), prompt.judge(MODEL))
    for wrong in (-1, True, float("nan")):
        with pytest.raises(BudgetError, match="max_calls is .*; it must be a number from 0"):
            Budget(config(tmp_path, max_calls=wrong), BY)


def test_money_spent_on_another_model_counts_and_needs_a_price_or_a_cost(tmp_path):
    writer = store.Writer(store.path(tmp_path, "second", "part-00000"))
    writer.append(attempt("ok", 1000, 100, 0.25, model="another"))
    writer.append(attempt("ok", 1000, 100, None, model="gpt-4o-2024-08-06"))
    writer.append(attempt("rate limited", None, None, None, model="a third"))
    spent = Budget(config(tmp_path, max_cost=1.0), BY).spent()
    assert spent == (3, 2000, 200, Decimal("0.2535"))  # 0.25 + (1000 x 2.50 + 100 x 10) / 10^6
    writer.append(attempt("ok", 1000, 100, None, model="a third"))
    with pytest.raises(prices.PriceError, match="'a third'"):
        Budget(config(tmp_path, max_cost=1.0), BY)


def test_an_old_attempt_of_unknown_usage_counts_as_the_longest_that_may_be_sent(tmp_path):
    writer = store.Writer(store.path(tmp_path, "v1", "part-00000"))
    writer.append(attempt("timeout", None, None, None))
    assert Budget(config(tmp_path, max_tokens=10**9), BY).spent().input_tokens > 400_000


def test_a_refusal_uses_nothing_and_any_other_call_without_a_count_is_unknown():
    free = {"rate limited", "quota", "unavailable", "too long", "rejected"}  # refused before the model was asked
    assert {name for name in answers.CLASSES if budget.used(name, None, None) == (0, 0)} == free
    assert {name for name in answers.CLASSES if budget.used(name, None, None) is None} == set(answers.CLASSES) - free
    assert {budget.used(name, 11, 7) for name in answers.CLASSES} == {(11, 7)} and budget.used("ok", 11, None) is None


def test_of_two_limits_of_the_output_the_larger_is_the_worst_case():
    assert budget.worst_output(prompt.judge(MODEL, max_tokens=9, max_completion_tokens=SAID)) == SAID
    assert budget.worst_output(prompt.judge(MODEL, max_tokens=99, max_completion_tokens=SAID)) == 99 and budget.worst_output(prompt.judge(MODEL)) is None


def test_a_call_that_was_lost_when_its_model_had_no_price_costs_what_it_costs_today(tmp_path):
    (tmp_path / "prices.yaml").write_text("date: 2024-08-06\ncurrency: USD\nmodels: {}\n")
    assert Budget(config(tmp_path / "run", prices=str(tmp_path / "prices.yaml")), BY).reserve(pair(3)).nano == -1
    spent = Budget(config(tmp_path / "run", max_cost=1.0), BY).spent()
    assert spent.calls == 1 and Fraction(spent.cost) == cost(spent.input_tokens, SAID) > 0


def test_a_process_that_is_killed_while_it_takes_over_the_lost_calls_does_not_count_them_twice(tmp_path):
    assert Budget(config(tmp_path), BY).reserve(pair(3))
    slot = tmp_path / "attempts" / "in_flight.bin"
    left = slot.read_bytes()
    assert Budget(config(tmp_path), BY).spent().calls == 1
    slot.write_bytes(left)  # as if the last one had ended between lost_calls.json and a file of its own
    assert Budget(config(tmp_path), BY).spent().calls == 1


def test_lost_calls_are_found_after_any_number_of_processes_and_one_that_is_taken_back_counts_once(tmp_path):
    Budget(config(tmp_path), BY).reserve(pair(3, 1))
    for _ in range(3):
        Budget(config(tmp_path), BY).close()
    Budget(config(tmp_path), BY).reserve(pair(3, 2))
    account = Budget(config(tmp_path), BY)
    assert account.spent().calls == 2 and len(account.reclaim([pair(3, 1).key])) == 1
    assert Budget(config(tmp_path), BY).spent().calls == 2  # that process was killed: its call lies in a slot again, and there alone


def test_who_waits_for_room_gets_it_when_a_call_in_flight_used_less(tmp_path):
    async def course():
        account = Budget(config(tmp_path, max_tokens=budget.worst_input(pair(3).messages) + SAID + 100), BY)
        first, waiting = account.reserve(pair(3)), asyncio.create_task(account.hold(pair(3)))
        await asyncio.sleep(0.01)
        assert not waiting.done() and account.stop is None
        account.settle(first, Outcome("ok", input_tokens=50, output_tokens=50, http=200))
        return await asyncio.wait_for(waiting, 5.0)

    assert asyncio.run(course()).input_tokens == budget.worst_input(pair(3).messages)


def test_a_torn_record_of_unknown_usage_is_cut_off(tmp_path):
    for _ in range(2):
        account = Budget(config(tmp_path, max_tokens=10**9), BY)
        held = account.reserve(pair(3))
        account.settle(held, Outcome("timeout"))
        writer = store.Writer(store.path(tmp_path, "v1", "part-00000"))
        writer.append(attempt("timeout", None, None, None))
        account.clear(held)
        with open(tmp_path / "attempts" / "unknown_usage.bin", "ab") as usage:
            usage.write(b"\1\2\3")
    spent = Budget(config(tmp_path, max_tokens=10**9), BY).spent()
    assert (spent.calls, spent.input_tokens, spent.output_tokens) == (2, 2 * held.input_tokens, 2 * SAID)


def test_money_is_counted_in_billionths_each_call_rounded_up(tmp_path):
    (tmp_path / "prices.yaml").write_text(f"date: 2024-08-06\ncurrency: USD\nmodels: {{{MODEL}: {{input: '0.0001', output: '0.0001'}}}}\n")
    account = Budget(config(tmp_path / "run", prices=str(tmp_path / "prices.yaml")), BY)
    assert account.settle(account.reserve(pair(1)), Outcome("ok", input_tokens=10, output_tokens=1, http=200)) == 2e-9  # of 1.1


def test_a_damaged_file_of_the_account_is_refused(tmp_path):
    (tmp_path / "attempts").mkdir()
    (tmp_path / "attempts" / "in_flight.bin").write_bytes(b"nothing of it")
    with pytest.raises(slots.SlotsError, match="in_flight.bin is no file of calls in flight; delete it"):
        Budget(config(tmp_path), BY)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("date: 2024-08-06\ncurrency: USD\n", "its keys must be"),
        ("date: soon\ncurrency: USD\nmodels: {}\n", "the date 'soon'"),
        ("date: 2024-08-06\ncurrency: USD\nmodels: {a: {input: 1}}\n", "the model 'a'"),
        ("date: 2024-08-06\ncurrency: USD\nmodels: {a: {input: -1, output: 1}}\n", "'?-1'? is no price"),
        ("date: 2024-08-06\ncurrency: USD\nmodels: {a: {input: .nan, output: 1}}\n", "nan is no price"),
        ("{", "is no list of prices"),
    ],
)
def test_a_list_of_prices_is_checked(tmp_path, text, why):
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(prices.PriceError, match=why):
        prices.read(tmp_path / "prices.yaml")


def test_prices_are_exact_and_dated():
    found = prices.read()
    assert found.date.year >= 2024 and found.currency == "USD"
    assert found.cost(MODEL, 10**6, 10**6) == Decimal("0.75") and found.cost(MODEL, 1, 0) == Decimal("0.00000015")


def test_the_breaker_trips_where_the_share_of_bad_replies_passes_its_limit():
    breaker = Breaker(0.5, 10)
    for status in ["ok"] * 5 + ["refusal"] * 5 + ["rate limited", "connection", "timeout"] * 20:
        assert breaker.saw(status) is None  # exactly half, and calls without a reply
    for status in ["unevaluable"] * 4:
        assert breaker.saw(status) is None  # four good ones left the window
    told = breaker.saw("not JSON")
    assert told.startswith("6 of the last 10 first replies were bad (5 times refusal), more than bad_share 0.5; mend")


@given(st.lists(st.sampled_from(["ok", "refusal", "server error", "timeout"]), max_size=60), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(1, 12))
def test_the_breaker_agrees_with_counting_the_window_anew(statuses, share, calls):
    breaker, heard = Breaker(share, calls), []
    for status in statuses:
        told = breaker.saw(status)
        heard += [status] * (status != "timeout")
        window = heard[-calls:]
        bad = sum(one in ("refusal", "server error") for one in window)
        assert (told is not None) == (status != "timeout" and len(window) == calls and bad > share * calls)
