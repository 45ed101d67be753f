"""The byte tokenizer: the words of `lib.text.tokens` read from UTF-8 in compiled loops.

`[a-z0-9]+` over `str.lower()` needs three rules on bytes: A-Z are lowered, U+0130 (bytes C4 B0) is an i
that ends its word, U+212A (bytes E2 84 AA) is a k; no other code point lowers into the class. A word has a
64-bit key: up to eight bytes its bytes themselves, so that equal keys are equal words; a longer word's
key is a hash, and every hit on it is compared byte by byte. The compiled loops that read words stand in
this one file, because numba's cache on disk watches only the file that a function stands in.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa

EXACT = 8  # bytes of a word whose key is no hash
MIX = np.uint64(0x9E3779B97F4A7C15)

_LOWER = np.zeros(256, np.uint8)  # the lowered byte of a word, 0 for what ends one
_LOWER[ord("0") : ord("9") + 1] = np.arange(ord("0"), ord("9") + 1)
_LOWER[ord("a") : ord("z") + 1] = _LOWER[ord("A") : ord("Z") + 1] = np.arange(ord("a"), ord("z") + 1)


class Texts(NamedTuple):
    """UTF-8 texts end to end: text i is `data[start[i]:start[i + 1]]`; start[0] may be above 0."""

    data: np.ndarray  # uint8
    start: np.ndarray  # int64[texts + 1]


class Vocabulary(NamedTuple):
    """Distinct words, numbered ascending by bytes, in an open-addressing table of 2**bits places."""

    data: np.ndarray  # uint8, the words end to end
    start: np.ndarray  # int64[words + 1]
    key: np.ndarray  # uint64[words]
    place: np.ndarray  # int32[2**bits], the number of a word or -1

    @property
    def size(self) -> int:
        return len(self.key)


class Counts(NamedTuple):
    """The known words of each text, each once: text i has `word[start[i]:start[i + 1]]`, ascending, each `count` times."""

    start: np.ndarray  # int64[texts + 1]
    word: np.ndarray  # int32
    count: np.ndarray  # int32
    length: np.ndarray  # int64[texts], all words of the text, the unknown ones too


def _of_arrow(array: pa.Array) -> Texts:
    if array.null_count:
        raise ValueError(f"row {array.is_null().index(True).as_py()} of the texts is null; an empty text is ''")
    if not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
        array = array.cast(pa.large_string())
    if not len(array):
        return Texts(np.empty(0, np.uint8), np.zeros(1, np.int64))
    _, offsets, data = array.buffers()
    width = np.int32 if pa.types.is_string(array.type) else np.int64
    start = np.frombuffer(offsets, width, len(array) + 1, array.offset * width().itemsize)
    return Texts(np.frombuffer(data or b"", np.uint8), start.astype(np.int64))


def of(texts: Sequence[str] | pa.Array | pa.ChunkedArray) -> Texts:
    """The bytes of texts; an Arrow array of one chunk is read where it lies. A null is refused with its row."""
    if isinstance(texts, pa.ChunkedArray):
        if texts.num_chunks == 1:
            return _of_arrow(texts.chunk(0))
        parts = [_of_arrow(chunk) for chunk in texts.chunks]
        length = [np.diff(part.start) for part in parts]
        data = [part.data[part.start[0] : part.start[-1]] for part in parts]
        return _joined(data, np.concatenate([np.empty(0, np.int64), *length]))
    if isinstance(texts, pa.Array):
        return _of_arrow(texts)
    # a lone surrogate is no UTF-8; passed through it ends a word, as it does in a str
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return _joined([np.frombuffer(b"".join(encoded), np.uint8)], np.fromiter(map(len, encoded), np.int64, len(encoded)))


def _joined(data: list[np.ndarray], length: np.ndarray) -> Texts:
    return Texts(np.concatenate([np.empty(0, np.uint8), *data]), np.concatenate([np.zeros(1, np.int64), np.cumsum(length)]))


@numba.njit(cache=True, nogil=True)
def next_word(data, at, end):
    """The first word of data[at:end]: its key, first byte, the place after its last byte, its length in lowered bytes (0: no word)."""
    while at < end:
        byte = data[at]
        if _LOWER[byte] or _special(data, at, end):
            break
        at += 1
    first, size, key, high = at, 0, np.uint64(0), np.uint64(0)
    while at < end:
        low, step = np.uint64(_LOWER[data[at]]), 1
        if low == 0:
            step = _special(data, at, end)
            if step == 0:
                break
            low = np.uint64(ord("i") if step == 2 else ord("k"))
        if size and size % EXACT == 0:
            high = (high ^ key) * MIX
            high ^= high >> np.uint64(29)
            key = np.uint64(0)
        key = key << np.uint64(8) | low
        size += 1
        at += step
        if step == 2:  # U+0130 is i and a combining dot, which ends the word
            break
    if size > EXACT:
        key = (high ^ key) * MIX
        key ^= key >> np.uint64(32)
    return key, first, at, size


@numba.njit(cache=True, nogil=True)
def _special(data, at, end):
    """How many bytes the code point at `at` has if it is one of the two outside ASCII that lower into the class, else 0."""
    if data[at] == 0xC4 and at + 1 < end and data[at + 1] == 0xB0:
        return 2
    if data[at] == 0xE2 and at + 2 < end and data[at + 1] == 0x84 and data[at + 2] == 0xAA:
        return 3
    return 0


@numba.njit(cache=True, nogil=True)
def same_word(data, first, after, other, start):
    """Whether the word read from data[first:after] is the lowered word that stands at other[start:]; their lengths are equal."""
    while first < after:
        low, step = _LOWER[data[first]], 1
        if low == 0:
            step = 2 if data[first] == 0xC4 else 3
            low = np.uint8(ord("i") if step == 2 else ord("k"))
        if low != other[start]:
            return False
        first += step
        start += 1
    return True


@numba.njit(cache=True, nogil=True)
def home(key, places):
    """The place where the search for a key begins; `places` is a power of two."""
    mixed = key * MIX
    return np.int64((mixed ^ mixed >> np.uint64(32)) & np.uint64(places - 1))


@numba.njit(cache=True, nogil=True)
def find(data, key, first, after, size, words, start, keys, place):
    """The number of a word in the vocabulary (words, start, keys, place), or -1."""
    at = home(key, len(place))
    while place[at] >= 0:
        number = place[at]
        if keys[number] == key and start[number + 1] - start[number] == size:
            if size <= EXACT or same_word(data, first, after, words, start[number]):
                return number
        at = (at + 1) & (len(place) - 1)
    return -1


@numba.njit(cache=True, nogil=True)
def _count_words(data, start, length):
    for i in range(len(start) - 1):
        at, end, n = start[i], start[i + 1], 0
        while True:
            _, _, at, size = next_word(data, at, end)
            if size == 0:
                break
            n += 1
        length[i] = n


@numba.njit(cache=True, nogil=True)
def _read_words(data, start, words, word_start, keys, place, number, length):
    n = 0
    for i in range(len(start) - 1):
        at, end, before = start[i], start[i + 1], n
        while True:
            key, first, at, size = next_word(data, at, end)
            if size == 0:
                break
            number[n] = find(data, key, first, at, size, words, word_start, keys, place)
            n += 1
        length[i] = n - before
    return n


@numba.njit(cache=True, nogil=True)
def _collect(data, start, first_of, after_of, size_of, key_of, place):
    """Put the distinct words into the table, as far as half of its places; the number of words, or -1 where more room is needed."""
    n = 0
    for i in range(len(start) - 1):
        at, end = start[i], start[i + 1]
        while True:
            key, first, at, size = next_word(data, at, end)
            if size == 0:
                break
            where = home(key, len(place))
            while place[where] >= 0:
                known = place[where]
                if key_of[known] == key and size_of[known] == size and (size <= EXACT or _same_raw(data, first, at, first_of[known], after_of[known])):
                    break
                where = (where + 1) & (len(place) - 1)
            if place[where] < 0:
                if 2 * (n + 1) > len(place):
                    return -1
                first_of[n], after_of[n], size_of[n], key_of[n], place[where] = first, at, size, key, n
                n += 1
    return n


@numba.njit(cache=True, nogil=True)
def _same_raw(data, first, after, other, other_after):
    """Whether two raw words of the same lowered length are the same word."""
    while first < after:
        low, step = _LOWER[data[first]], 1
        if low == 0:
            step = 2 if data[first] == 0xC4 else 3
            low = np.uint8(ord("i") if step == 2 else ord("k"))
        low_other, step_other = _LOWER[data[other]], 1
        if low_other == 0:
            step_other = 2 if data[other] == 0xC4 else 3
            low_other = np.uint8(ord("i") if step_other == 2 else ord("k"))
        if low != low_other:
            return False
        first += step
        other += step_other
    return True


@numba.njit(cache=True, nogil=True)
def _fill(data, start, keys, place):
    for i in range(len(start) - 1):
        key, _, _, _ = next_word(data, start[i], start[i + 1])
        keys[i] = key
        at = home(key, len(place))
        while place[at] >= 0:
            at = (at + 1) & (len(place) - 1)
        place[at] = i


def _room(words: int) -> int:
    """The places of a table of so many words: a power of two, at most half of it full."""
    return 1 << max(4, int(2 * words - 1).bit_length())


def of_words(words: Iterable[str]) -> Vocabulary:
    """The vocabulary of distinct lowered words, which come ascending."""
    texts = of(list(words))
    keys, place = np.empty(len(texts.start) - 1, np.uint64), np.full(_room(len(texts.start) - 1), -1, np.int32)
    _fill(texts.data, texts.start, keys, place)
    return Vocabulary(texts.data, texts.start, keys, place)


def vocabulary(texts: Texts) -> Vocabulary:
    """The distinct words of texts, numbered in the order of their bytes."""
    n, room = -1, 1 << 12
    while n < 0:
        room *= 4
        first, after, size, key = (np.empty(room // 2, kind) for kind in (np.int64, np.int64, np.int64, np.uint64))
        n = _collect(texts.data, texts.start, first, after, size, key, np.full(room, -1, np.int32))
    data = texts.data.tobytes() if n else b""
    raw = (data[a:b] for a, b in zip(first[:n].tolist(), after[:n].tolist(), strict=True))
    return of_words(sorted(_lowered(word) for word in raw))


def _lowered(word: bytes) -> str:
    """A word as it stands in a vocabulary; the dot of U+0130 goes."""
    return word.decode().lower().removesuffix("\u0307")


def listed(known: Vocabulary) -> list[str]:
    """The words of a vocabulary in the order of their numbers."""
    data, start = known.data.tobytes(), known.start.tolist()
    return [data[a:b].decode() for a, b in zip(start[:-1], start[1:], strict=True)]


def lengths(texts: Texts) -> np.ndarray:
    """int64[texts]: how many words each text has."""
    length = np.empty(len(texts.start) - 1, np.int64)
    _count_words(texts.data, texts.start, length)
    return length


def words(texts: Texts, known: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """The word numbers of all texts end to end, int32 (-1: not known), and the length of each text in words, int64."""
    # a word and what ends it are two bytes at least; the last of a text may end with it
    number = np.empty((int(texts.start[-1] - texts.start[0]) + len(texts.start)) // 2 + 1, np.int32)
    length = np.empty(len(texts.start) - 1, np.int64)
    n = _read_words(texts.data, texts.start, *known, number, length)
    return number[:n].copy(), length


@numba.njit(cache=True, nogil=True)
def _count_known(data, start, words, word_start, keys, place, out_start, out_word, out_count, length):
    """Fill the counts of each text in the order of words; how many places they take, or -(text + 1) where the room ends."""
    tf, touched, n = np.zeros(len(keys), np.int32), np.empty(len(keys), np.int32), 0
    for i in range(len(start) - 1):
        at, end, seen, distinct = start[i], start[i + 1], 0, 0
        while True:
            key, first, at, size = next_word(data, at, end)
            if size == 0:
                break
            seen += 1
            number = find(data, key, first, at, size, words, word_start, keys, place)
            if number >= 0:
                if tf[number] == 0:
                    touched[distinct] = number
                    distinct += 1
                tf[number] += 1
        if n + distinct > len(out_word):
            return -(i + 1)
        found = np.sort(touched[:distinct])
        for number in found:
            out_word[n], out_count[n], tf[number] = number, tf[number], 0
            n += 1
        out_start[i + 1], length[i] = n, seen
    return n


def counts(texts: Texts, known: Vocabulary) -> Counts:
    """The known words of each text with their number in it, and its length; no list of all words is made."""
    n, start, length = len(texts.start) - 1, np.zeros(len(texts.start), np.int64), np.empty(len(texts.start) - 1, np.int64)
    room, filled = max(1024, int(texts.start[-1] - texts.start[0]) // 8), -1
    while filled < 0:
        word, count = np.empty(room, np.int32), np.empty(room, np.int32)
        filled = _count_known(texts.data, texts.start, *known, start, word, count, length) if n else 0
        room *= 2
    return Counts(start, word[:filled].copy(), count[:filled].copy(), length)
