"""The process that asks a judge for every pair of a set that is owed a call: `python -m lib.judge.client CONFIG.json ...`.

Started by `lib.judge.rounds.ask`. Prints progress on stderr and one JSON summary on stdout. Ends with 0 when
nothing is owed any more, with 3 when the server's answer, a cap or too many bad replies stop the run or nobody answers at the
url, with 128 + n after signal n.

Until the first reply, or the first call that connected and took too long, one call is in flight, and a call that
cannot connect is `unavailable`; the third in a row stops the run. Later, more than 3 x concurrency calls
in a row without an answer do. The waits between failed connections grow from a second or two at the default backoff, so that a
server may start again meanwhile. What else follows a call says `lib.judge.retry`; how many are in flight, `lib.judge.window`.
"""

import asyncio
import contextlib
import itertools
import sys
from collections import Counter
from pathlib import Path

from lib.judge import answers, asking, contract, pairs, retry, store, turns
from lib.judge.answers import Turn
from lib.judge.breaker import Breaker
from lib.judge.budget import Budget
from lib.judge.pairs import Pair
from lib.judge.progress import Progress, pairs_in
from lib.judge.reply import Outcome
from lib.judge.retry import Rule
from lib.judge.turns import Config
from lib.judge.window import Window

_ROUNDS = 3  # of calls without an answer, before nobody is believed to be there
_REFUSED = 10  # requests refused before the first valid reply that stop the run
_SILENT = 20  # calls in a row that took too long, at least, before the server is believed to hang
_BUSY = {429, 503}
_HOLDS = 4  # doublings of the wait that holds all calls: 8 s at the default backoff


class _Part:
    """One part in one pass: its attempts file, open while a pair of it is asked, and whether the next pass has to come back."""

    def __init__(self, name: str, target: Path):
        self.name, self.target, self.writer = name, target, None
        self.pending, self.issued, self.gaps = 0, False, False

    def append(self, row: dict) -> None:
        if self.writer is None:
            self.writer = store.Writer(self.target)
        self.writer.append(row)

    def settle(self) -> None:
        if self.writer and self.issued and not self.pending:
            self.writer.close()
            self.writer = None


class Run:
    """The window of pairs that are being asked, and what came of the others."""

    def __init__(self, config: Config, key: str):
        from lib.judge import drivers  # here, so that the environment is cleared before the SDK reads it

        self.config = turns.checked(config)
        self.by = turns.judge(config)
        self.budget = Budget(config, self.by)
        self.breaker = Breaker(config.bad_share, config.bad_window)
        self.driver = drivers.connect(config, key)
        self.window, self.progress = Window(config.concurrency), Progress()
        self.slots = asyncio.Semaphore(1)  # of pairs; the others come with the first reply
        self.met = False  # somebody answers at the url
        self.unheard = 0  # failed connections since the last reply, or call that connected
        self.unanswered = 0  # those and timeouts since the last reply
        self.refused: int | None = 0  # requests refused so far; None after the first valid reply
        self.halt = asyncio.Event()  # no further call
        self.stop: str | None = None  # no further pair: pairs that are being asked end their tries
        self.signal: int | None = None
        self.asked, self.classes, self.in_pass = 0, Counter(), 0
        self.tasks: set[asyncio.Task] = set()
        self.fault: BaseException | None = None

    def interrupt(self, number: int) -> None:
        self.signal = number
        self._end()

    def _end(self) -> None:
        self.halt.set()
        self.window.end()
        self.budget.end()

    async def close(self) -> None:
        await self.driver.close()
        self.budget.close()

    async def ask_all(self) -> None:
        render, names = pairs.Pairs(self.config.run, self.by), turns.part_names(self.config)
        for name in names:  # a line that is no attempt is found before anything is paid
            answers.history(self.config.run, name, store.SETS[self.config.set])
        try:
            for self.in_pass in range(1, self.config.passes + 1):
                self.progress.begin(pairs_in(self.config, names))
                parts = [_Part(name, store.path(self.config.run, self.config.set, name)) for name in names]
                for part in parts:
                    before = self.progress.seen
                    await self._issue(render, part)
                    self.progress.come_to(before + pairs_in(self.config, [part.name]))
                await self._landed()
                if self.fault:
                    raise self.fault
                names = [part.name for part in parts if part.gaps]
        finally:
            self._end()
            await self._landed()

    async def _landed(self) -> None:
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def _issue(self, render: pairs.Pairs, part: _Part) -> None:
        before = self.progress.seen
        try:
            for come, pair, intent, turn in turns.owed(self.config, render, part.name):
                if self.stop or self.halt.is_set():
                    break
                self.progress.come_to(before + come)
                if turn is None or turn.in_pass != self.in_pass:
                    part.gaps = part.gaps or turn is not None
                    await asyncio.sleep(0)
                    continue
                await self.slots.acquire()
                if self.stop or self.halt.is_set():  # a call that ended meanwhile said so
                    self.slots.release()
                    break
                if not self.asked:
                    store.remember(self.config.run, self.config.set)
                part.pending += 1
                self.asked += 1
                task = asyncio.create_task(self._ask(part, pair, intent, turn))
                self.tasks.add(task)
                task.add_done_callback(lambda task: self._done(task, part))
        finally:
            part.issued = True
            part.settle()

    def _done(self, task: asyncio.Task, part: _Part) -> None:
        self.tasks.discard(task)
        self.slots.release()
        part.pending -= 1
        error = task.exception()
        try:
            if error is None:
                part.settle()
        except OSError as closing:
            error = closing
        if error:
            self.fault = self.fault or error
            self._end()

    async def _ask(self, part: _Part, pair: Pair, intent: dict, turn: Turn) -> None:
        left = turn.left
        for tries in itertools.count():
            outcome = await self._call(part, pair, intent, turn.number + tries)
            if outcome is None:
                return
            self.classes[outcome.status] += 1
            if tries == 0 and turn == (1, 1, self.config.budget) and not outcome.stop:
                outcome = outcome._replace(stop=self.breaker.saw(outcome.status))
            if outcome.stop:
                self.stop = self.stop or outcome.stop
            rule = retry.RULES[outcome.status]
            if outcome.stop or rule is Rule.FINAL:
                return
            left -= rule is not Rule.STOP
            spent = left == 0 or rule is Rule.LATER
            part.gaps = part.gaps or spent
            if outcome.lost or (rule is Rule.WAIT and not spent):  # where nobody is there, the next pair waits too
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.halt.wait(), self._wait(pair.key, self._round() if outcome.lost else tries, outcome.wait))
            if spent:
                return

    async def _call(self, part: _Part, pair: Pair, intent: dict, number: int) -> Outcome | None:
        """One call, settled and written, within the window and the caps; None where none was made since the run ends."""
        async with self.window as cuts:
            if self.halt.is_set():
                return None
            held = await self.budget.hold(pair)
            if held is None:
                self.stop = self.stop or self.budget.stop
                self._end()
                return None
            if self.halt.is_set():
                self.budget.release(held)
                return None
            outcome = self._heard(await self.driver.call(self.by, pair))
            part.append(asking.row(self._known(pair, intent, number), outcome, outcome.latency, self.budget.settle(held, outcome)))
            self.budget.clear(held)
            if outcome.status == "rate limited" or outcome.http in _BUSY and not outcome.stop:
                held_for = self._wait(pair.key, min(self.window.unserved, _HOLDS), outcome.wait)
                self.window.busy(cuts, held_for if outcome.http == 429 else 0.0)
            elif outcome.http is not None:
                self.window.served()
            return outcome

    def _heard(self, outcome: Outcome) -> Outcome:
        """Keep count of who answers; the outcome, with a reason to stop where nobody does, or where all is refused."""
        if outcome.judgment:
            self.refused = None
        elif outcome.status == "rejected" and self.refused is not None:
            self.refused += 1
            if self.refused >= _REFUSED:
                reason = f"the first {self.refused} requests were refused and none was answered ({outcome.detail})"
                outcome = outcome._replace(stop=f"{reason}; mend the model, its sampling or the server")
        replied, most = outcome.http is not None, _ROUNDS * self.config.concurrency
        self.unanswered = 0 if replied else self.unanswered + 1
        if not outcome.lost:
            self.unheard = 0 if replied else self.unheard
            if not self.met:
                self.met = True
                for _ in range(self.config.concurrency - 1):
                    self.slots.release()
            if self.unanswered > max(most, _SILENT):
                self._end()
                silence = f"{self.unanswered} calls in a row had no answer within {self.config.timeout:g} s"
                return outcome._replace(stop=f"{silence} at {turns.shown(self.config.base_url)}; look at the server, or raise timeout")
            return outcome
        self.unheard += 1
        absent = outcome.unreached and not self.met
        if self.unheard >= _ROUNDS if absent else self.unheard > most:
            self._end()
            outcome = outcome._replace(stop=f"nobody answers at {turns.shown(self.config.base_url)}; start the server or check the url")
        return outcome._replace(status="unavailable") if absent else outcome

    def _round(self) -> int:
        return 2 + (self.unheard - 1) // (self.config.concurrency if self.met else 1)

    def _wait(self, key: str, doublings: int, asked_for: float | None) -> float:
        return retry.seconds(key, doublings, asked_for, self.config.backoff, self.config.longest_wait)

    def _known(self, pair: Pair, intent: dict, number: int) -> dict:
        return {
            **intent, "key": pair.key, "task_id": pair.task, "query": pair.query, "doc": pair.doc, "pass": self.in_pass, "attempt": number,
            "prompt_sha256": self.by.prompt.sha256, "schema_sha256": contract.SCHEMA_SHA256, "model": self.by.model,
        }  # fmt: skip

    def summary(self) -> dict:
        return asking.summary(self)


async def _report(run: Run, seconds: float = 5.0) -> None:
    while True:
        await asyncio.sleep(seconds)
        answered = sum(run.classes[name] for name in answers.VALID)
        line = run.progress.line(run.classes.total(), answered, run.budget.spent().cost, run.budget.currency)
        flying = f"{run.window.flying} of {int(run.window.size)} in flight"
        print(f"judge {run.config.set} pass {run.in_pass}: {line}, {flying}", file=sys.stderr, flush=True)


async def _main(config: Config, key: str) -> tuple[dict, int]:
    return await asking.to_the_end(Run(config, key), _report)


def main(arguments: list[str] | None = None) -> int:
    """Ask the sets of the configurations that the arguments name."""
    return asking.each("lib.judge.client", sys.argv[1:] if arguments is None else arguments, _main)


if __name__ == "__main__":
    sys.exit(main())
