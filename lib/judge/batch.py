"""The process that asks for every owed pair of a set by the Batch API: `python -m lib.judge.batch CONFIG.json ...`.

A second driver of the same store: configuration, summary, exit codes and attempts are those of `lib.judge.client`, and
so is which pair is owed how many calls. Each round of a pass puts the owed pairs of each part into files, a batch each;
`concurrency` batches are open at once. A client that ends while a batch runs finds it again: what was submitted is in
`attempts/<set>/batches` until its lines are in the attempts, and no pair of it is submitted meanwhile.
"""

import asyncio
import sys
import time
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from lib import paths
from lib.judge import answers, asking, batch_files, batch_lines, pairs, store, turns
from lib.judge.batch_files import DONE, KEPT, SUBMITTED, UPLOADED, WRITTEN, Submission
from lib.judge.breaker import Breaker
from lib.judge.budget import Budget
from lib.judge.pairs import Pair
from lib.judge.progress import duration
from lib.judge.reply import Asked
from lib.judge.slots import Reservation
from lib.judge.turns import Config


class Run:
    """The open batches of a set, and what came of the others."""

    def __init__(self, config: Config, key: str):
        from lib.judge import batch_api  # here, so that the environment is cleared before the SDK reads it

        self.config, self.key = turns.checked(config), key
        self.by = turns.judge(config)
        self.halt = asyncio.Event()
        self.away = batch_api
        self.api = batch_api.Api(config, key, self.halt)
        self.slots = asyncio.Semaphore(config.concurrency)
        self.budget = Budget(config, self.by)
        self.breaker = Breaker(config.bad_share, config.bad_window)
        self.held: dict[str, Reservation] = {}  # by key, of requests in a batch
        self.capped: str | None = None
        self.busy: set[str] = set()  # keys in a batch of this round
        self.tasks: set[asyncio.Task] = set()
        self.stop: str | None = None
        self.signal: int | None = None
        self.fault: BaseException | None = None
        self.asked, self.batches, self.classes, self.in_pass = 0, 0, Counter(), 1

    def interrupt(self, number: int) -> None:
        self.signal = number
        self.halt.set()

    async def ask_all(self) -> None:
        render, names = pairs.Pairs(self.config.run, self.by), turns.part_names(self.config)
        for name in names:  # a line that is no attempt is found before anything is paid
            answers.history(self.config.run, name, store.SETS[self.config.set])
        for held in self.budget.reclaim(batch_files.unsent(self.config.run, self.config.set)):
            self.budget.release(held)
        try:
            for it in batch_files.unfinished(self.config.run, self.config.set):
                self._start(render, it, resumed=True)
            for self.in_pass in range(1, self.config.passes + 1):
                while await self._round(render, names):
                    pass
                if self._ended:
                    break
        finally:
            self.halt.set()
            await self._landed()
        if self.fault:
            raise self.fault

    @property
    def _ended(self) -> bool:
        return bool(self.stop or self.fault or self.halt.is_set())

    async def _round(self, render: pairs.Pairs, names: list[str]) -> bool:
        """Submit what is owed in this pass and wait for all of it; whether there was anything."""
        had = bool(self.tasks)
        for name in names:
            files = batch_files.gather(self.config, render, name, self.in_pass, self.busy, self._admit)
            while not self._ended:
                async with self.slots:
                    it = None if self._ended else next(files, None)
                if it is None:
                    break
                had = True
                self._start(render, it, resumed=False)
                await asyncio.sleep(0)
        self.stop = self.stop or self.capped
        await self._landed()
        self.busy.clear()  # not before: a part is read as its attempts were when its round began
        return had and not self._ended

    def _admit(self, pair: Pair) -> bool:
        """Set the worst case of a request aside; where a cap forbids it, the file ends before it."""
        if self._ended or (held := self.budget.reserve(pair)) is None:
            self.capped = self.capped or self.budget.stop
            return False
        self.held[pair.key] = held
        return True

    async def _landed(self) -> None:
        while self.tasks:
            await asyncio.wait(self.tasks)

    def _start(self, render: pairs.Pairs, it: Submission, resumed: bool) -> None:
        asked = batch_files.asked(self.config.run, it)
        self.busy.update(asked)
        if resumed:
            self.held |= {held.key: held for held in self.budget.reclaim(list(asked))}
        store.remember(self.config.run, self.config.set)
        self.batches += 1
        task = asyncio.create_task(self._carry(render, it, asked, resumed))
        self.tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task) -> None:
        self.tasks.discard(task)
        error = task.exception()
        if isinstance(error, self.away.Stopped):
            self.stop = self.stop or (None if self.signal else str(error))
            self.halt.set()  # what is submitted is found again
        elif error:
            self.fault = self.fault or error
            self.halt.set()

    async def _carry(self, render: pairs.Pairs, it: Submission, asked: dict[str, dict], resumed: bool) -> None:
        async with self.slots:
            try:
                await self._carried(render, it, asked, resumed)
            except self.away.Gone as gone:
                reason = self._unknown(it, gone)
                self._unstart(it, asked)
                raise self.away.Stopped(reason) from None
            except self.away.Stopped:
                self._unstart(it, asked)
                raise

    def _unstart(self, it: Submission, asked: dict[str, dict]) -> None:
        """Where a stopped run has not uploaded a submission, its text does not stay behind."""
        state = batch_files.path(self.config.run, it)
        if state.exists() and batch_files.state(state).stage == WRITTEN:
            self._forget(it, asked)

    def _forget(self, it: Submission, asked: dict[str, dict]) -> None:
        batch_files.forget(self.config.run, it)
        for key in asked:
            if held := self.held.pop(key, None):
                self.budget.release(held)

    def _unknown(self, it: Submission, gone: Exception) -> str:
        """Why a 404 ends the run, and what to do."""
        url, state = turns.shown(self.config.base_url), batch_files.path(self.config.run, it)
        it = batch_files.state(state)
        if it.stage != SUBMITTED:
            return f"{url} does not know {gone}, so it has no Batch API; take another driver"
        return (
            f"{url} does not know {gone} {it.batch}; run with the url that it was submitted to, "
            f"or delete {paths.shown(state)} to ask its pairs again"
        )

    async def _carried(self, render: pairs.Pairs, it: Submission, asked: dict[str, dict], resumed: bool) -> None:
        """Take one submission from where it stands to its end."""
        run = self.config.run
        if it.stage in (WRITTEN, UPLOADED) and resumed:
            made = await self.api.find(it)
            if made is None:
                await self._drop(it, asked)
                return
            it = batch_files.save(run, it, stage=SUBMITTED, batch=made)
        if it.stage == WRITTEN:
            it = batch_files.save(run, it, stage=UPLOADED, file=await self.api.upload(it, batch_files.path(run, it, "requests.jsonl")))
        batch_files.forget(run, it, "requests.jsonl")
        if it.stage == UPLOADED:
            it = batch_files.save(run, it, stage=SUBMITTED, batch=await self.api.create(it))
        if it.stage == SUBMITTED:
            it = await self._fetched(render, it, asked)
        if it.stage == KEPT:
            await self.api.remove(it.file, *it.results)
            batch_files.save(run, it, stage=DONE)
            batch_files.forget(run, it, "keys.jsonl", "output.jsonl", "error.jsonl")

    async def _drop(self, it: Submission, asked: dict[str, dict]) -> None:
        """A submission that never became a batch, or did not run: nothing of it stays, here or there."""
        await self.api.remove_uploads(it)
        self._forget(it, asked)

    async def _fetched(self, render: pairs.Pairs, it: Submission, asked: dict[str, dict]) -> Submission:
        """Wait for the batch, and write its lines as attempts."""
        batch = await self.api.ended(it)
        if batch.status == "failed":
            fault = self.api.fault(batch)
            await self._drop(it, asked)
            raise self.away.Stopped(f"the server did not run the batch of {it.requests} requests of {it.part} ({fault}); mend that and run again")
        run, results = self.config.run, {"output.jsonl": batch.output_file_id, "error.jsonl": batch.error_file_id}
        for kind, name in results.items():
            if name:
                await self.api.download(name, batch_files.path(run, it, kind))
        lines = batch_lines.read([batch_files.path(run, it, kind) for kind in results], asked)
        lines = lines._replace(unknown=[self.api.clean(name) for name in lines.unknown])
        seconds = max(0.0, float((batch.completed_at or batch.expired_at or batch.cancelled_at or batch.created_at) - batch.created_at))
        counts = self._kept(render, it, asked, lines, batch.status, seconds)
        if lines.unknown or lines.unreadable:
            print(f"judge {it.set} batch {batch.id}: {_odd(lines)}", file=sys.stderr, flush=True)
        if batch.status == "cancelled":
            self.stop = self.stop or f"the batch {batch.id} was cancelled at the server; what it had answered is kept"
        names = [name for name in results.values() if name]
        return batch_files.save(run, it, stage=KEPT, status=batch.status, results=names, unknown=lines.unknown, unreadable=lines.unreadable, **counts)

    def _kept(self, render, it: Submission, asked: dict[str, dict], lines: batch_lines.Lines, status: str, seconds: float) -> dict[str, int]:
        """Append the attempts of a batch that are not there yet, in the order of its requests; how many lines were missing or double."""
        calls = answers.history(self.config.run, it.part, store.SETS[it.set])
        doubtful = {key for key, said in lines.said.items() if len(said) != 1 or (said[0].get("response") or {}).get("status_code") != 200}
        sent = self._sent(render, it, asked, doubtful)
        counts = Counter()
        writer = store.Writer(store.path(self.config.run, it.set, it.part))
        try:
            for key, known in asked.items():
                judged = Asked(known["task_id"], sent.get(key, ""), self.key, self.config.key_variable)
                outcome, repeated, differing = batch_lines.outcome(lines.said[key], judged, status)
                counts.update(missing=not lines.said[key], repeated=repeated, differing=differing)
                if key in doubtful and key not in sent and outcome.detail:  # today's intents lack it: nobody can tell what it quotes
                    outcome = outcome._replace(detail=f"{outcome.status} (the pair is no longer asked for, so the message is left out)")
                held = self.held.pop(key, None)  # None where a record of it was deleted; the attempt's tokens tell the next process
                if (known["version"], known["pass"], known["attempt"]) in {(call.version, call.in_pass, call.number) for call in calls.of(key)}:
                    if held:  # its attempt counts
                        self.budget.release(held)
                    continue
                writer.append(asking.row(known, outcome, seconds, self.budget.settle(held, outcome) if held else None))
                if held:
                    self.budget.clear(held)
                first = known["attempt"] == 1
                self.asked += first
                self.classes[outcome.status] += 1
                if first and known["pass"] == 1:
                    self.stop = self.stop or self.breaker.saw(outcome.status)
                if outcome.stop:
                    self.stop = self.stop or outcome.stop
                    self.halt.set()
        finally:
            writer.close()
        return dict(counts)

    def _sent(self, render: pairs.Pairs, it: Submission, asked: dict[str, dict], keys: set[str]) -> dict[str, str]:
        """The messages of some pairs of a submission, which no detail may quote."""
        docs = pa.array(sorted({asked[key]["doc"] for key in keys}), pa.int64())
        rows = pairs.intents(self.config.run, it.set, it.part)
        found = rows.filter(pc.is_in(rows["doc"].cast(pa.int64()), value_set=docs))
        return {pair.key: pair.messages[-1]["content"] for pair in render.render(it.part, found) if pair.key in keys}

    async def close(self) -> None:
        self.budget.close()
        await self.api.close()

    def summary(self) -> dict:
        return asking.summary(self) | {"batches": self.batches}


def _odd(lines: batch_lines.Lines) -> str:
    shown = ", ".join(lines.unknown[:3])
    unknown = f"{len(lines.unknown)} ids that were not asked for ({shown})" if lines.unknown else ""
    unreadable = f"{lines.unreadable} lines that cannot be read" if lines.unreadable else ""
    return " and ".join(filter(None, (unknown, unreadable)))


async def _report(run: Run, seconds: float = 5.0) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(seconds)
        answered, cost = sum(run.classes[name] for name in answers.VALID), run.budget.spent().cost
        spent = "" if cost is None else f", {cost:,.2f} {run.budget.currency} spent"
        print(
            f"judge {run.config.set} pass {run.in_pass}: {answered:,} answered in {run.classes.total():,} calls{spent}, {len(run.tasks)} of "
            f"{run.batches} batches open with {sum(run.api.worked.values()):,} requests done, after {duration(time.monotonic() - started)}",
            file=sys.stderr, flush=True,
        )  # fmt: skip


async def _main(config: Config, key: str) -> tuple[dict, int]:
    return await asking.to_the_end(Run(config, key), _report, "; its batches go on, run again to fetch them")


def main(arguments: list[str] | None = None) -> int:
    """Ask the sets of the configurations that the arguments name."""
    return asking.each("lib.judge.batch", sys.argv[1:] if arguments is None else arguments, _main)


if __name__ == "__main__":
    sys.exit(main())
