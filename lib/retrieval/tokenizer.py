"""The byte tokenizer: the words of `lib.text.tokens` read from UTF-8 in compiled loops.

`[a-z0-9]+` over `str.lower()` needs three rules on bytes: A-Z are lowered, U+0130 is an i that ends its word,
U+212A is a k; no other code point lowers into the class. A word has a 64-bit key: up to eight bytes its bytes
themselves, so that equal keys are equal words; a longer word's key is a hash, and every hit on it is
compared byte by byte. Texts are read block by block, so that what is being read stays small.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib.retrieval import parallel, vocabulary_kernels, word_kernels

BLOCK = 1 << 18  # bytes of texts that are read together: what they become stays in the cache of a core


class Texts(NamedTuple):
    """UTF-8 texts end to end: text i is `data[start[i]:start[i + 1]]`; start[0] may be above 0."""

    data: np.ndarray  # uint8
    start: np.ndarray  # int64[texts + 1]


class Words(NamedTuple):
    """The words of a block of texts; text i has those of first[i] ... first[i + 1] - 1. It holds until the next block is read."""

    clean: np.ndarray  # uint8, the lowered bytes, 0 between words
    edge: np.ndarray  # int32[2 * words], the first byte of each word and the place after its last, in turn
    key: np.ndarray  # uint64[words]
    first: np.ndarray  # int64[texts + 1]


class Vocabulary(NamedTuple):
    """Distinct words in an open-addressing table; numbered ascending by bytes, but those of `numbered`."""

    data: np.ndarray  # uint8, the words end to end
    start: np.ndarray  # int64[words + 1]
    slot_key: np.ndarray  # uint64[2**n], the key of a word or 0
    slot_word: np.ndarray  # int32[2**n], its number

    @property
    def size(self) -> int:
        return len(self.start) - 1


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


def _joined(data: list[np.ndarray], length: np.ndarray) -> Texts:
    whole = data[0] if len(data) == 1 else np.concatenate([np.empty(0, np.uint8), *data])
    return Texts(whole, np.concatenate([np.zeros(1, np.int64), np.cumsum(length)]))


def of(texts: Sequence[str] | pa.Array | pa.ChunkedArray) -> Texts:
    """The bytes of texts; an Arrow array of one chunk is read where it lies. A null is refused with its row."""
    if isinstance(texts, pa.ChunkedArray):
        if texts.num_chunks == 1:
            return _of_arrow(texts.chunk(0))
        parts = [_of_arrow(chunk) for chunk in texts.chunks]
        data = [part.data[part.start[0] : part.start[-1]] for part in parts]
        return _joined(data, np.concatenate([np.empty(0, np.int64), *(np.diff(part.start) for part in parts)]))
    if isinstance(texts, pa.Array):
        return _of_arrow(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"row {row} of the texts is {text!r}; a text is a str, an empty one is ''")
    # a lone surrogate is no UTF-8; passed through it ends a word, as it does in a str
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return _joined([np.frombuffer(b"".join(encoded), np.uint8)], np.fromiter(map(len, encoded), np.int64, len(encoded)))


def blocks(texts: Texts) -> tuple[np.ndarray, int]:
    """Where each block of texts begins, int64, the end at last, and the bytes of the largest with the end of each text."""
    cuts = np.zeros(len(texts.start), np.int64)
    count, largest = word_kernels.blocks(texts.start, BLOCK, cuts)
    if largest >= 2**31:
        raise ValueError(f"a text of {largest - 1:,} bytes is too long to be read; cut it below 2 GiB")
    return cuts[: count + 1], largest


def room(largest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where blocks are read one after the other: uint64 of their bytes, edges and keys."""
    return np.zeros(largest // 8 + 3 * word_kernels.LANE // 8, np.uint64), np.empty(largest + 2, np.int32), np.empty(largest // 2 + 1, np.uint64)


def read(texts: Texts) -> Iterator[tuple[int, Words]]:
    """The words of texts, block by block, each with its first text; a block holds whole texts, at least one."""
    cuts, largest = blocks(texts)
    eights, edge, key = room(largest)
    for a, b in pairwise(cuts.tolist()):
        first = np.empty(b - a + 1, np.int64)
        words = word_kernels.read(texts.data, texts.start[a : b + 1], eights, edge, key, first)
        yield a, Words(eights.view(np.uint8), edge[: 2 * words], key[:words], first)


def _empty(places: int, room: int) -> Vocabulary:
    """A table of 2**n places, half of which may be taken, with room for the bytes of its words."""
    return Vocabulary(np.empty(room, np.uint8), np.zeros(places // 2 + 1, np.int64), np.zeros(places, np.uint64), np.zeros(places, np.int32))


def keys(table: Vocabulary, known: int) -> np.ndarray:
    """uint64[known]: the key of each word of a table, as it was read."""
    key = np.empty(known, np.uint64)
    vocabulary_kernels.held(table.slot_key, table.slot_word, key)
    return key


def _held(table: Vocabulary, known: int) -> Iterator[Words]:
    """The words of a table by their numbers, each a text, as they were read."""
    key = keys(table, known)
    for a in range(0, known, BLOCK):
        start = table.start[a : min(a + BLOCK, known) + 1]
        edge = np.repeat(start - start[0], 2)[1:-1].astype(np.int32)
        yield Words(table.data[start[0] :], edge, key[a : a + BLOCK], np.arange(len(start)))


def _collected(table: Vocabulary, known: int, block: Words) -> tuple[Vocabulary, int, np.ndarray]:
    """The table, or a larger one, with the words of a block; how many it then holds, numbered as they came; the number of each word of the block."""
    number, at = np.empty(len(block.key), np.int32), 0
    while True:
        at, known = vocabulary_kernels.collect(*block[:3], at, known, *table, number)
        if at == len(number):
            return table, known, number
        larger, moved = _empty(2 * len(table.slot_key), 2 * len(table.data) + int(block.edge[2 * at + 1] - block.edge[2 * at])), 0
        for words in _held(table, known):
            larger, moved, _ = _collected(larger, moved, words)
        table = larger


def _in_order(table: Vocabulary, number: np.ndarray) -> Vocabulary:
    """The words of a table in the order of their bytes; `number` is changed to their new numbers."""
    data, start, *slots = table
    known = table.size
    prefix = np.empty(known, np.uint64)
    vocabulary_kernels.prefixes(data, start, prefix)
    order = np.argsort(prefix)
    turns = np.flatnonzero(np.diff(prefix[order], prepend=np.uint64(0), append=np.uint64(0)))  # no prefix is 0
    for i in np.flatnonzero(np.diff(turns) > 1).tolist():  # long words with the same first eight bytes
        first, end = turns[i : i + 2].tolist()
        order[first:end] = sorted(order[first:end].tolist(), key=lambda word: data[start[word] : start[word + 1]].tobytes())
    new_data, new_start = np.empty(start[known], np.uint8), np.zeros(known + 1, np.int64)
    vocabulary_kernels.put_in_order(order, data, start, new_data, new_start, *slots, number)
    return Vocabulary(new_data, new_start, *slots)


def _cut(table: Vocabulary, known: int) -> Vocabulary:
    """A table without the room for more words."""
    return table._replace(data=table.data[: table.start[known]], start=table.start[: known + 1])


def _numbered(texts: Texts) -> tuple[Vocabulary, int, list[np.ndarray], np.ndarray]:
    """The words of texts in a table, how many there are, and the numbers, block by block, and lengths as `numbered` gives them."""
    size = int(texts.start[-1] - texts.start[0])
    places = 1 << min(max(size // 16, 1 << 6).bit_length(), 20)  # enough at first for most texts; more are made where it is not
    table, known, numbers, length = _empty(places, 8 * places), 0, [], [np.empty(0, np.int64)]
    for _, block in read(texts):
        table, known, number = _collected(table, known, block)
        numbers.append(number)
        length.append(np.diff(block.first))
    return table, known, numbers, np.concatenate(length)


def numbered(texts: Texts, threads: int = 1) -> tuple[Vocabulary, np.ndarray, np.ndarray]:
    """The distinct words of texts numbered as they come, and what `words` gives with them, in one reading."""
    if threads == 1 or len(texts.start) == 1:
        table, known, numbers, length = _numbered(texts)
        return _cut(table, known), np.concatenate([np.empty(0, np.int32), *numbers]), length
    cuts = np.searchsorted(texts.start, np.linspace(texts.start[0], texts.start[-1], threads + 1))
    cuts[0], cuts[-1] = 0, len(texts.start) - 1
    parts = parallel.each(lambda ends: _numbered(Texts(texts.data, texts.start[ends[0] : ends[1] + 1])), list(pairwise(cuts.tolist())), threads)
    # the words of the later parts join the table of the first; their numbers say what the numbers of each part become
    table, known, *_ = parts[0]
    joined = [np.arange(known, dtype=np.int32)]
    for other, size, *_ in parts[1:]:
        numbers = [np.empty(0, np.int32)]
        for words_ in _held(other, size):
            table, known, number = _collected(table, known, words_)
            numbers.append(number)
        joined.append(np.concatenate(numbers))
    length = np.concatenate([part[3] for part in parts])
    number, begins = np.empty(length.sum(), np.int32), np.cumsum([0, *(part[3].sum() for part in parts)])

    def renumber(t: int) -> None:
        at = begins[t]
        for old in parts[t][2]:  # "clip" writes to `out` without a copy; no number is out of range
            joined[t].take(old, out=number[at : at + len(old)], mode="clip")
            at += len(old)

    parallel.each(renumber, range(threads), threads)
    return _cut(table, known), number, length


def vocabulary(texts: Texts, threads: int = 1) -> Vocabulary:
    """The distinct words of texts, numbered in the order of their bytes."""
    known, number, _ = numbered(texts, threads)
    return _in_order(known, number)


def of_words(words: Iterable[str]) -> Vocabulary:
    """The vocabulary of distinct lowered words, which come ascending."""
    words = list(words)
    known, number, _ = numbered(of(words))
    known = _in_order(known, number)
    if not np.array_equal(number, np.arange(len(words))):
        raise ValueError(f"{len(words)} words are no vocabulary; its words are lowered, distinct and ascending by bytes")
    return known


def _bytes(data: np.ndarray, start: np.ndarray) -> list[bytes]:
    data, cuts = data[: start[-1]].tobytes(), start.tolist()
    return [data[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def listed(known: Vocabulary) -> list[str]:
    """The words of a vocabulary in the order of their numbers."""
    return [word.decode() for word in _bytes(known.data, known.start)]


def lengths(texts: Texts) -> np.ndarray:
    """int64[texts]: how many words each text has."""
    return np.concatenate([np.empty(0, np.int64), *(np.diff(block.first) for _, block in read(texts))])


def words(texts: Texts, known: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """The word numbers of all texts end to end, int32 (-1: not known), and the length of each text in words, int64."""
    number, length = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for _, block in read(texts):
        number.append(np.empty(len(block.key), np.int32))
        vocabulary_kernels.numbers(*block[:3], *known, number[-1])
        length.append(np.diff(block.first))
    return np.concatenate(number), np.concatenate(length)


def counts(texts: Texts, known: Vocabulary) -> Counts:
    """The known words of each text with their number in it, and its length; no list of all words is made."""
    tf, start = np.zeros(known.size, np.int32), np.zeros(len(texts.start), np.int64)
    word, count, length = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for row, block in read(texts):
        number, here, times = (np.empty(len(block.key), np.int32) for _ in range(3))
        vocabulary_kernels.numbers(*block[:3], *known, number)
        n = vocabulary_kernels.count(number, block.first, tf, start[row : row + len(block.first)], here, times)
        word.append(here[:n].copy())
        count.append(times[:n].copy())
        length.append(np.diff(block.first))
    return Counts(start, np.concatenate(word), np.concatenate(count), np.concatenate(length))
