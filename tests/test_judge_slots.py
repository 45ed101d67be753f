"""The files of the account, damaged: refused in a sentence, and never fewer tokens spent than none."""

import random
import struct

import pytest
from test_judge_budget import BY, config, pair

from lib.judge import slots
from lib.judge.budget import Budget
from lib.judge.reply import Outcome

NAMES = ("in_flight.bin", "lost_calls.json", "unknown_usage.bin")


@pytest.fixture
def folder(tmp_path):
    """An account with two calls lost, two in flight and two of unknown usage."""
    for first in (0, 4):
        account = Budget(config(tmp_path, max_tokens=10**7), BY)
        for number in range(first, first + 2):
            account.reserve(pair(3, number))
        held = account.reserve(pair(3, first + 2))
        account.settle(held, Outcome("timeout"))
        account.clear(held)
    return tmp_path / "attempts"


@pytest.mark.parametrize("text", [
    b'{"taken": null, "calls": []}', b'{"taken": 1e400, "calls": []}', b'{"taken": true, "calls": []}', b'{"taken": 1, "calls": [[-5, 1, 1, "ab"]]}',
    b'{"taken": 1, "calls": [[1e999, 1, 1, "ab"]]}', b'{"taken": 1, "calls": [[1, 2]]}', b"[" * 100_000, b"", b"[]", b"3", b"\xff",
], ids=range(11))  # fmt: skip
def test_a_list_of_lost_calls_with_other_numbers_is_refused(folder, text):
    (folder / "lost_calls.json").write_bytes(text)
    with pytest.raises(slots.SlotsError, match="lost_calls.json is no list of lost calls .*; delete it"):
        Budget(config(folder.parent, max_tokens=10**7), BY)


def test_a_file_of_calls_in_flight_that_was_cut_between_two_slots_is_refused(folder):
    data = (folder / "in_flight.bin").read_bytes()
    for size in range(len(data)):
        (folder / "in_flight.bin").write_bytes(data[:size])
        with pytest.raises(slots.SlotsError, match="in_flight.bin is no file of calls in flight; delete it"):
            Budget(config(folder.parent, max_tokens=10**7), BY)


@pytest.mark.parametrize("count", [-1, -(2**62), 2**62])
def test_a_usage_that_no_call_has_is_refused(folder, count):
    with open(folder / "unknown_usage.bin", "ab") as handle:
        handle.write(struct.pack("<qq", 5, count))
    with pytest.raises(slots.SlotsError, match="unknown_usage.bin holds numbers that no call has; delete it"):
        Budget(config(folder.parent, max_tokens=10**7), BY)


def test_garbage_in_any_file_never_gives_tokens_back(folder):
    draws, kept = random.Random(1), {name: (folder / name).read_bytes() for name in NAMES}
    opened = 0
    for _ in range(300):
        name = draws.choice(NAMES)
        at, size = draws.randrange(len(kept[name])), draws.randrange(1, 20)
        for other, data in kept.items():
            (folder / other).write_bytes(data[:at] + draws.randbytes(size) + data[at + size :] if other == name else data)
        try:
            spent = Budget(config(folder.parent, max_tokens=10**7), BY).spent()
        except slots.SlotsError:
            continue
        opened += 1
        assert spent.input_tokens >= 0 and spent.output_tokens >= 0
    assert 0 < opened < 300
