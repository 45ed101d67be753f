"""The calls of attempts files by key, in arrays: 30 bytes a call, so that ten million are held at once.

A call is found by the first 128 bits of its key; of the rest of an attempt only what an answer
needs is kept. Version, status, prompt and model are numbers into lists of names.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts
from lib.judge import store

_NAMED = {"version": "u1", "status": "u1", "prompt_sha256": "u2", "model": "u2"}
_NONE = -1  # no score; evaluable is unknown
_CALL = np.dtype([
    ("low", "u8"), ("high", "u8"), ("home", "u2"), ("pass", "i2"), ("attempt", "i2"), ("score", "i1"), ("query_evaluable", "i1"), *_NAMED.items(),
])  # fmt: skip
_COLUMNS = ("key", "pass", "attempt", "score", "query_evaluable", *_NAMED)
_DIGIT = np.full(256, 255, np.uint8)
_DIGIT[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


class Call(NamedTuple):
    """What is kept of an attempt: the fields of the reply only where it is valid."""

    version: str
    in_pass: int
    number: int
    status: str
    row: dict | None


class Calls:
    """The calls of some parts by key; a part is read again where its files changed."""

    def __init__(self):
        self._stamps: dict[Path, list] = {}  # size and time of change of its files
        self._names: dict[str, dict[str, int]] = {name: {} for name in _NAMED}
        self._texts: dict[str, list[str]] = {name: [] for name in _NAMED}
        self._calls = np.empty(0, _CALL)
        self._low = self._order = None  # the keys' first 64 bits ascending, and whose they are

    def read(self, sources: list[Path]) -> "Calls":
        """Bring the parts up to date; a line that is no attempt is a StoreError."""
        stamps = {source: [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in store.files_of(source)] for source in sources}
        changed = [source for source in sources if self._stamps.get(source) != stamps[source]]
        if not changed:
            return self
        homes = {source: home for home, source in enumerate([*self._stamps, *(source for source in changed if source not in self._stamps)])}
        gone = [homes[source] for source in changed if source in self._stamps]
        kept, known = self._calls[~np.isin(self._calls["home"], gone)] if gone else self._calls, self._stamps
        self._calls, self._low, self._order, self._stamps = np.empty(0, _CALL), None, None, {}  # also what an error leaves
        blocks = [kept]
        del kept
        for source in changed:
            blocks += [self._block(table, homes[source]) for table in store.tables(source, _COLUMNS)]
        self._calls = np.concatenate(blocks)
        del blocks
        self._order = np.argsort(self._calls["low"], kind="stable").astype(np.uint32)
        self._low = self._calls["low"][self._order]
        self._stamps = known | stamps
        return self

    def _block(self, table: pa.Table, home: int) -> np.ndarray:
        table = table.filter(pc.equal(pc.binary_length(table["key"]), 64)).combine_chunks()
        found = np.empty(table.num_rows, _CALL)
        found["home"] = home
        digits = _digits(table["key"])
        words = _words(digits)
        found["low"], found["high"] = words[:, 0], words[:, 1]
        for name in ("pass", "attempt"):
            found[name] = table[name].to_numpy()
        for name in ("score", "query_evaluable"):
            found[name] = pc.fill_null(table[name].cast(pa.int8()), _NONE).to_numpy()
        for name in _NAMED:
            coded = pc.dictionary_encode(table[name]).combine_chunks()
            coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
            names = self._names[name]
            numbers = np.array([names.setdefault(text, len(names)) for text in coded.dictionary.to_pylist()], _NAMED[name])
            self._texts[name] = list(names)
            if len(found):
                found[name] = numbers[coded.indices.to_numpy()]
        return found[(digits < 16).all(axis=1)]  # a key that is no hash in hex is nobody's

    def of(self, key: str) -> list[Call]:
        """The calls under a key in the order they were written; of several parts by pass and number."""
        if not len(self._calls):
            return []
        low, high = np.uint64(int(key[:16], 16)), int(key[16:32], 16)
        first = int(np.searchsorted(self._low, low))
        found = []
        while first < len(self._low) and self._low[first] == low:
            row = self._calls[self._order[first]].tolist()
            first += 1
            if row[1] == high:
                found.append((row[2], self._call(dict(zip(_CALL.names, row, strict=True)))))
        if len({home for home, _ in found}) > 1:
            places = list(self._stamps)
            found.sort(key=lambda one: (one[1].in_pass, one[1].number, places[one[0]]))
        return [call for _, call in found]

    def answered(self, keys: pa.Array) -> np.ndarray:
        """bool[keys]: a valid reply is there under the key. Where two replies share 64 bits, False may stand for True: ask `of`."""
        valid = [number for name, number in self._names["status"].items() if name in contracts.VALID]
        calls = self._calls[np.isin(self._calls["status"], valid)]
        low, first = np.unique(calls["low"], return_index=True)
        if not len(low):
            return np.zeros(len(keys), bool)
        wanted = _words(_digits(keys))
        at = np.minimum(np.searchsorted(low, wanted[:, 0]), len(low) - 1)
        return (low[at] == wanted[:, 0]) & (calls["high"][first[at]] == wanted[:, 1])

    def _call(self, row: dict) -> Call:
        told = {name: self._texts[name][row[name]] for name in _NAMED}
        score, evaluable = (None if row[name] == _NONE else row[name] for name in ("score", "query_evaluable"))
        said = {
            "score": score, "query_evaluable": None if evaluable is None else bool(evaluable),
            "prompt_sha256": told["prompt_sha256"], "model": told["model"],
        }  # fmt: skip
        return Call(told["version"], row["pass"], row["attempt"], told["status"], said if told["status"] in contracts.VALID else None)

    def __len__(self) -> int:
        return len(self._calls)


def _digits(keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """uint8[keys, 32]: the first 32 hex digits of keys of 64, 255 for what is none."""
    return _DIGIT[_bytes(keys, 64)[:, :32]]


def _words(digits: np.ndarray) -> np.ndarray:
    """uint64[keys, 2]: the digits as two numbers."""
    return ((digits[:, 0::2] << 4) | digits[:, 1::2]).view(">u8").astype(np.uint64) if len(digits) else np.empty((0, 2), np.uint64)


def _bytes(column: pa.ChunkedArray, width: int) -> np.ndarray:
    """The texts of a column, each `width` bytes long, as uint8[rows, width]."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) and array.num_chunks else array
    if not len(array):
        return np.empty((0, width), np.uint8)
    start = np.frombuffer(array.buffers()[1], np.int32, count=1, offset=4 * array.offset)[0]
    return np.frombuffer(array.buffers()[2], np.uint8, count=width * len(array), offset=start).reshape(len(array), width)
