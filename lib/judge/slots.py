"""The calls in flight, in a file that outlives its process: `attempts/in_flight.bin`, mapped into memory.

A header and one slot of 64 bytes a call: whether it is held (the last that is written, the first that is cleared), its worst
case, its key. Who opens the folder next moves the slots that are still held to `attempts/lost_calls.json`. The number in the
header keeps that from happening twice. `attempts/unknown_usage.bin` holds the worst case, two whole numbers, of each call whose
attempt has no count of tokens.
"""

import json
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lib import files, paths

_SLOT = struct.Struct("<qqqq32s")  # held, input tokens, output tokens, billionths or -1, key
_HELD = struct.Struct("<q")
_USAGE = struct.Struct("<qq")
_HEAD = struct.Struct("<qqq")  # what file this is, its number, the slots that it was made with
_MAGIC = 0x71_62_66_6C_79_31
_MOST = 2**50  # tokens or billionths of a call: more is damage


class SlotsError(ValueError):
    """A file of the account is damaged."""


class Reservation(NamedTuple):
    """The worst case of one call; `nano` is in billionths, -1 where the model has no price."""

    slot: int
    input_tokens: int
    output_tokens: int
    nano: int
    key: str


def _sound(call: Reservation) -> bool:
    return all(0 <= value < _MOST for value in call[1:3]) and -1 <= call.nano < _MOST


class Slots:
    """The slots of one run folder, with the calls that were `lost` in former processes."""

    def __init__(self, folder: Path, count: int):
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._lost, self._usage = folder / "in_flight.bin", folder / "lost_calls.json", folder / "unknown_usage.bin"
        taken, self.lost = self._remembered()
        number, left = self._left()
        if left and number != taken:
            self.lost += left
            self._remember(number)
        self._number = max(taken, number) + 1
        with files.whole(self._file) as fresh:
            fresh.write_bytes(_HEAD.pack(_MAGIC, self._number, count).ljust(_SLOT.size, b"\0") + bytes(_SLOT.size * count))
        self._fd = os.open(self._file, os.O_RDWR)
        self._map = mmap.mmap(self._fd, 0)
        self._free = list(range(count, 0, -1))
        self._count = count
        self._usage_fd = os.open(self._usage, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._usage_fd, os.fstat(self._usage_fd).st_size // _USAGE.size * _USAGE.size)  # a torn record

    def _remembered(self) -> tuple[int, list[Reservation]]:
        if not self._lost.exists():
            return 0, []
        try:
            known = json.loads(files.read_bytes(self._lost))
            taken, calls = known["taken"], [Reservation(0, *map(int, call[:3]), str(call[3])) for call in known["calls"]]
            if type(taken) is not int or not 0 <= taken < _MOST or not all(map(_sound, calls)):
                raise ValueError("a number in it is out of range")
            return taken, calls
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
            raise SlotsError(f"{paths.shown(self._lost)} is no list of lost calls ({error}); delete it where they need not count") from None

    def _remember(self, taken: int) -> None:
        files.write_json(self._lost, {"taken": taken, "calls": [list(call[1:]) for call in self.lost]})

    def _left(self) -> tuple[int, list[Reservation]]:
        """The number of the file that is there, and the calls in it."""
        if not self._file.exists():
            return 0, []
        data = files.read_bytes(self._file)
        magic, number, count = _HEAD.unpack_from(data) if len(data) >= _SLOT.size else (0, 0, 0)
        sound = magic == _MAGIC and 0 <= number < _MOST and 0 <= count < len(data) // _SLOT.size and not len(data) % _SLOT.size
        found = []
        for slot, (held, *worst, key) in enumerate(_SLOT.iter_unpack(data[_SLOT.size :]) if sound else (), 1):
            if held:
                found.append(Reservation(slot, *worst, key.hex()))
                sound = sound and held == 1 and _sound(found[-1])
        if not sound:
            raise SlotsError(f"{paths.shown(self._file)} is no file of calls in flight; delete it where they need not count")
        return number, found

    def fill(self, key: str, input_tokens: int, output_tokens: int, nano: int) -> Reservation:
        if not self._free:
            self._grow()
        slot = self._free.pop()
        _SLOT.pack_into(self._map, slot * _SLOT.size, 0, input_tokens, output_tokens, nano, bytes.fromhex(key))
        _HELD.pack_into(self._map, slot * _SLOT.size, 1)
        return Reservation(slot, input_tokens, output_tokens, nano, key)

    def _grow(self) -> None:
        more = self._count
        self._map.close()
        os.ftruncate(self._fd, (1 + self._count + more) * _SLOT.size)
        self._map = mmap.mmap(self._fd, 0)
        self._free = list(range(self._count + more, self._count, -1))
        self._count += more
        _HELD.pack_into(self._map, 2 * _HELD.size, self._count)

    def clear(self, held: Reservation) -> None:
        _HELD.pack_into(self._map, held.slot * _SLOT.size, 0)
        self._free.append(held.slot)

    def note_unknown(self, held: Reservation) -> None:
        """Keep the worst case of a call whose attempt will have no count of tokens."""
        os.write(self._usage_fd, _USAGE.pack(held.input_tokens, held.output_tokens))

    def unknown(self) -> np.ndarray:
        """int64[n, 2]: input and output tokens, one row a call."""
        known = np.frombuffer(files.read_bytes(self._usage), dtype="<i8").reshape(-1, 2)
        if not ((known >= 0) & (known < 2**31)).all():
            raise SlotsError(f"{paths.shown(self._usage)} holds numbers that no call has; delete it, then each such call counts as the longest")
        return known

    def reclaim(self, keys: Sequence[str]) -> list[Reservation]:
        """Take lost calls back into slots: one a key, where there is one."""
        wanted, found, kept = set(keys), [], []
        for call in self.lost:
            if call.key in wanted:
                wanted.discard(call.key)
                found.append(self.fill(call.key, *call[1:4]))
            else:
                kept.append(call)
        if found:
            self.lost = kept
            taken, _ = self._remembered()
            self._remember(taken)
        return found

    def close(self) -> None:
        """Where no call is in flight, nothing stays."""
        self._map.close()
        os.close(self._fd)
        os.close(self._usage_fd)
        if len(self._free) == self._count:
            self._forget()

    def _forget(self) -> None:
        self._remember(self._number) if self.lost else None
        self._file.unlink()
        if not self._usage.stat().st_size:
            self._usage.unlink()
