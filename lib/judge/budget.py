"""Hard caps on the calls, tokens and money of a run folder, over all its sets: reserved at worst case before a call, settled after.

The worst case of a call is a token for each byte that is sent, and as many output tokens as its parameters allow. What a call used
is what its reply says. A refusal (400, 401, 429 ...) uses nothing, neither does a call that made no connection; any other call
without a count, a lost one above all, stays at its worst case.

Nothing is forgotten with a process: each call in flight holds a slot of `attempts/in_flight.bin` from before it is sent until its
attempt is written. What a killed process left there moves to `attempts/lost_calls.json`, and is spent. A call killed between its
attempt and its slot counts twice: caps err on the side of not paying. (lib.judge.slots)
"""

import asyncio
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import paths
from lib.judge import contract, prices, slots, store
from lib.judge.pairs import Pair
from lib.judge.prompt import Judge
from lib.judge.reply import Outcome
from lib.judge.slots import Reservation
from lib.judge.turns import Config

# refused before the model was asked
FREE = frozenset({"rate limited", "quota", "unavailable", "too long", "rejected"})
_NANO = 1_000_000_000  # money is counted in whole billionths, each call rounded up
_WRAPPING = 64  # tokens that a server puts around the messages
_LONGEST = 4 * 100_000  # bytes of the longest document that is sent, for calls that nothing is known of
_CAPS = {"max_calls": "calls", "max_tokens": "tokens", "max_cost": "cost"}


class BudgetError(ValueError):
    """A cap that cannot be held with this configuration."""


class Spent(NamedTuple):
    """What a run folder has spent; `cost` is None where not every call has a price."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: Decimal | None


class _Sum:
    """Calls, tokens and billionths, added up."""

    def __init__(self):
        self.calls, self.input, self.output, self.nano = 0, 0, 0, 0

    def add(self, calls: int, sent: int, said: int, nano: int) -> None:
        self.calls, self.input, self.output, self.nano = self.calls + calls, self.input + sent, self.output + said, self.nano + nano


def worst_input(messages: Sequence[dict]) -> int:
    """A bound of the prompt's tokens: the bytes of messages and schema, since no token is shorter than a byte."""
    return sum(len(message["content"].encode()) for message in messages) + len(contract.canonical(contract.flat_schema())) + _WRAPPING


def worst_output(by: Judge) -> int | None:
    """The most output tokens of a call, None where no parameter says."""
    said = [by.parameters[name] for name in ("max_completion_tokens", "max_tokens") if name in by.parameters]
    return max(said) if said else None


def used(status: str, input_tokens: int | None, output_tokens: int | None) -> tuple[int, int] | None:
    """The tokens of a call as far as they are known, from its status and what its reply counted."""
    if input_tokens is not None and output_tokens is not None:
        return input_tokens, output_tokens
    return (0, 0) if status in FREE else None


class Budget:
    """The account of one run folder, for one process at a time (the run's lock sees to that).

    A call goes `hold` (or `reserve`), the call itself, `settle`, its attempt's row, `clear`; `release` where nothing was sent.
    """

    def __init__(self, config: Config, by: Judge):
        self._config, self._by = config, by
        self._caps = {name: getattr(config, name) for name in _CAPS}
        self._output = worst_output(by)
        self._capped = any(cap is not None for cap in self._caps.values())
        for name, cap in self._caps.items():
            if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int | float) or not cap >= 0):
                raise BudgetError(f"{name} is {cap!r}; it must be a number from 0, or left out")
        for name in ("max_tokens", "max_cost"):
            if self._caps[name] is not None and self._output is None:
                raise BudgetError(f"{name} is set and the judge has no max_completion_tokens; set it, so that a call has a worst case")
        self._prices = prices.read(config.prices)
        self._priced = by.model in self._prices.models
        if self._caps["max_cost"] is not None:
            self._prices.cost(by.model, 0, 0)
        self.stop: str | None = None
        self._spent, self._reserved = _Sum(), _Sum()
        self._freed, self._ended = asyncio.Event(), False
        folder = Path(config.run) / "attempts"
        self._slots = slots.Slots(folder, config.concurrency)
        self._account(folder)

    def _account(self, folder: Path) -> None:
        """Take in what the run has spent, where a cap needs it."""
        for lost in self._slots.lost:
            self._spend(lost.input_tokens, lost.output_tokens, self._nano(lost.input_tokens, lost.output_tokens) if lost.nano < 0 else lost.nano)
        if not self._capped:
            return
        unknown, bound = 0, (_LONGEST + len(self._by.prompt.text.encode()) + _WRAPPING, self._output or 0)
        names = sorted(path.name for path in folder.iterdir() if path.is_dir())
        for name in names:
            for rows in store.scan(self._config.run, name, ["status", "input_tokens", "output_tokens", "cost", "model"]):
                unknown += self._take_in(rows, bound)
        known = self._slots.unknown()
        self._spent.add(0, known[:, 0].sum().item(), known[:, 1].sum().item(), 0)
        missing = max(0, unknown - len(known))  # their record was deleted
        self._spent.add(0, missing * bound[0], missing * bound[1], 0)

    def _take_in(self, rows: pa.Table, bound: tuple[int, int]) -> int:
        """Add attempts to what is spent; how many of them have no count of tokens."""
        free = pc.is_in(rows["status"], value_set=pa.array(sorted(FREE))).to_numpy()
        counted = pc.and_(rows["input_tokens"].is_valid(), rows["output_tokens"].is_valid()).to_numpy()
        sent, said = (np.where(counted, rows[name].fill_null(0).to_numpy(), 0) for name in ("input_tokens", "output_tokens"))
        nano = np.rint(rows["cost"].fill_null(0.0).to_numpy() * _NANO).astype(np.int64).sum().item()
        if self._caps["max_cost"] is not None:
            unpriced = rows["cost"].is_null().to_numpy() & ~(free & ~counted)
            models = rows["model"].to_numpy()[unpriced] if unpriced.any() else []
            for model in sorted(set(models)):
                mine = unpriced.copy()
                mine[unpriced] = models == model
                lacking = (mine & ~counted).sum().item()
                nano += self._nano(sent[mine].sum().item() + lacking * bound[0], said[mine].sum().item() + lacking * bound[1], model)
        self._spent.add(rows.num_rows, sent.sum().item(), said.sum().item(), nano)
        return (~free & ~counted).sum().item()

    def _nano(self, sent: int, said: int, model: str | None = None) -> int:
        if model is None and not self._priced:
            return 0
        cost = self._prices.cost(model or self._by.model, sent, said)
        return int((cost * _NANO).to_integral_value(ROUND_CEILING))

    def _spend(self, sent: int, said: int, nano: int) -> None:
        self._spent.add(1, sent, said, nano)

    @property
    def currency(self) -> str:
        return self._prices.currency

    def spent(self) -> Spent:
        """All calls of the run folder so far (of this process alone, and those lost, where no cap is set); none in flight."""
        it = self._spent
        return Spent(it.calls, it.input, it.output, Decimal(it.nano) / _NANO if self._priced else None)

    def _passed(self, sent: int, said: int, nano: int, flying: bool) -> str | None:
        """The cap that one more call would pass, with or without the calls in flight."""
        here, held = self._spent, self._reserved if flying else _Sum()
        after = {
            "max_calls": here.calls + held.calls + 1,
            "max_tokens": here.input + here.output + held.input + held.output + sent + said,
            "max_cost": Decimal(here.nano + held.nano + nano) / _NANO,
        }
        return next((name for name, cap in self._caps.items() if cap is not None and after[name] > Decimal(str(cap))), None)

    def reserve(self, pair: Pair) -> Reservation | None:
        """Set the worst case of a call aside, or None; then `stop` says why, or is None too where calls in flight may yet leave room."""
        sent, said = worst_input(pair.messages), self._output or 0
        nano = self._nano(sent, said)
        if self.stop:
            return None
        if self._passed(sent, said, nano, flying=True):
            if alone := self._passed(sent, said, nano, flying=False):
                self.stop = self._sentence(alone)
            return None
        held = self._slots.fill(pair.key, sent, said, nano if self._priced else -1)
        self._reserved.add(1, sent, said, nano)
        return held

    async def hold(self, pair: Pair) -> Reservation | None:
        """`reserve`, waiting as long as calls in flight may leave room; None once `stop` says why not, or after `end`."""
        while (held := self.reserve(pair)) is None and not self.stop and not self._ended:
            self._freed.clear()
            await self._freed.wait()
        return held

    def end(self) -> None:
        """Nobody waits any more."""
        self._ended = True
        self._freed.set()

    def _sentence(self, name: str) -> str:
        it, cap = self._spent, self._caps[name]
        spent = {"max_calls": it.calls, "max_tokens": it.input + it.output, "max_cost": Decimal(it.nano) / _NANO}[name]
        unit = self._prices.currency if name == "max_cost" else _CAPS[name]
        return f"{paths.shown(self._config.run)} has spent {spent:,} of {name} {cap:,} {unit}, and another call might pass it; raise {name} to go on"

    def settle(self, held: Reservation, outcome: Outcome) -> float | None:
        """Replace the worst case of a call by what it used; its cost for the attempt's row, None where the model has no price."""
        self._let_go(held)
        tokens = used(outcome.status, outcome.input_tokens, outcome.output_tokens)
        if tokens is None:
            self._slots.note_unknown(held)
        sent, said = tokens or (held.input_tokens, held.output_tokens)
        nano = self._nano(sent, said)
        self._spend(sent, said, nano)
        return nano / _NANO if self._priced else None

    def _let_go(self, held: Reservation) -> None:
        self._reserved.add(-1, -held.input_tokens, -held.output_tokens, -max(held.nano, 0))
        self._freed.set()

    def clear(self, held: Reservation) -> None:
        """The attempt of a settled call is written."""
        self._slots.clear(held)

    def release(self, held: Reservation) -> None:
        """Nothing was sent."""
        self._let_go(held)
        self._slots.clear(held)

    def reclaim(self, keys: Sequence[str]) -> list[Reservation]:
        """Of the calls that a former process left in flight, those that are not lost after all: a batch that goes on. They are reserved again."""
        found = self._slots.reclaim(keys)
        for held in found:
            nano = max(held.nano, 0)
            self._spent.add(-1, -held.input_tokens, -held.output_tokens, -nano)
            self._reserved.add(1, held.input_tokens, held.output_tokens, nano)
        return found

    def close(self) -> None:
        """Calls that are neither settled nor released stay in their slots, for the next process to find."""
        self._slots.close()
