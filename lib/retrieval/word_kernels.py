"""The compiled loops that read words from the bytes of texts (lib.retrieval.tokenizer), eight bytes at a time.

A block of texts is lowered into clean bytes: [a-z0-9] and 0 for everything else, a 0 after each text. Its words
are then the runs of bytes above 0; `edge` holds the first byte of each word and the place after its last, in turn.
"""

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from lib.retrieval.compiled import compiled

EXACT = 8  # bytes of a word whose key is no hash
LANE = 64  # clean bytes that are read together; LANE zeros at least follow the last text
TOP = np.uint64(1 << 63)  # of a key: it is a hash, and so the key of a long word

_MIX = np.uint64(0x9E3779B97F4A7C15)
_ONE, _29, _32, _56, _63 = map(np.uint64, (1, 29, 32, 56, 63))
_HIGH, _LOW, _GATHER = map(np.uint64, (0x8080808080808080, 0x7F7F7F7F7F7F7F7F, 0x0102040810204080))


@compiled
def _lowered(byte):
    """The byte of a word in lower case, 0 for what ends one."""
    low = np.uint8(byte | 0x20)
    if np.uint8(low - 97) < 26:
        return low
    return np.uint8(byte) if np.uint8(byte - 48) < 10 else np.uint8(0)


@compiled
def _lower_all(source, clean):
    """Lower a text that may hold U+0130 (C4 B0: an i that ends its word) or U+212A (E2 84 AA: a k); how many clean bytes it takes."""
    at, to = 0, 0
    while at < len(source):
        if source[at] == 0xC4 and at + 1 < len(source) and source[at + 1] == 0xB0:
            clean[to], clean[to + 1] = ord("i"), 0
            at, to = at + 2, to + 2
        elif source[at] == 0xE2 and at + 2 < len(source) and source[at + 1] == 0x84 and source[at + 2] == 0xAA:
            clean[to] = ord("k")
            at, to = at + 3, to + 1
        else:
            clean[to] = _lowered(source[at])
            at, to = at + 1, to + 1
    return to


@compiled
def lower(data, start, clean, begin):
    """Lower the texts into clean bytes; text i begins at begin[i]. How many lanes they take."""
    at = 0
    for i in range(len(start) - 1):
        source = data[start[i] : start[i + 1]]
        size, marked = len(source), np.uint8(0)
        begin[i], to = at, clean[at : at + size]
        for j in range(size):
            to[j] = _lowered(source[j])
        for j in range(size - 1):  # neither loop branches or widens a byte, so that both work on a vector of them
            dotted, kelvin = (source[j] == 0xC4) & (source[j + 1] == 0xB0), (source[j] == 0x84) & (source[j + 1] == 0xAA)
            marked = np.uint8(marked | np.uint8(dotted | kelvin))
        if marked:
            size = _lower_all(source, to)
        clean[at + size] = 0
        at += size + 1
    begin[len(start) - 1] = at
    clean[at : at + 2 * LANE] = 0
    return (at + LANE - 1) // LANE


@compiled
def edges(eights, lanes, edge):
    """Find the edges of the words in lanes of eight uint64; the number of words."""
    n, carry = 0, np.uint64(0)
    for lane in range(lanes):
        inside = np.uint64(0)  # bit j: byte j of the lane belongs to a word
        for j in range(8):  # no clean byte is above 0x7f, so that none carries into its neighbour
            bits = ((eights[8 * lane + j] + _LOW) & _HIGH) >> np.uint64(7)
            inside |= ((bits * _GATHER) >> _56) << np.uint64(8 * j)
        turns = inside ^ (inside << _ONE | carry)
        carry = inside >> _63
        while turns:
            edge[n] = lane * LANE + trailing_zeros(turns)
            n += 1
            turns &= turns - _ONE
    return n // 2


@compiled
def _eight(eights, at):
    """The eight bytes from byte `at` on."""
    word, shift = at >> 3, np.uint64(8 * (at & 7))
    return eights[word] >> shift | (eights[word + 1] << _ONE) << (_63 - shift)


@compiled
def keys(eights, edge, key):
    """The key of each word, never 0: up to EXACT bytes the bytes themselves, moved to the top; of a longer one a hash, the top bit set."""
    for i in range(len(key)):
        at, size = edge[2 * i], edge[2 * i + 1] - edge[2 * i]
        bytes_ = _eight(eights, at)
        if size <= EXACT:
            key[i] = bytes_ << np.uint64(8 * (EXACT - size))
            continue
        mixed = np.uint64(size)
        while size > EXACT:
            mixed = (mixed ^ bytes_) * _MIX
            mixed ^= mixed >> _29
            at, size = at + EXACT, size - EXACT
            bytes_ = _eight(eights, at)
        mixed = (mixed ^ bytes_ << np.uint64(8 * (EXACT - size))) * _MIX
        key[i] = mixed ^ mixed >> _32 | TOP


@compiled
def first_words(edge, words, begin, first):
    """The first word of each text: how many words stand before begin[i]; first[texts] is `words`."""
    for i in range(len(first)):
        low, high = 0, words
        while low < high:
            middle = (low + high) // 2
            if edge[2 * middle] < begin[i]:
                low = middle + 1
            else:
                high = middle
        first[i] = low


@compiled
def blocks(start, size, cuts):
    """Cut texts into blocks of whole texts, at most `size` bytes or one text each.

    `cuts`, whose first is 0, gets where the next ones begin, the end at last; how many blocks, and the room that the largest takes.
    """
    n, largest, texts = 0, np.int64(0), len(start) - 1
    while cuts[n] < texts:
        a = b = cuts[n]
        while b == a or b < texts and start[b + 1] - start[a] <= size:
            b += 1
        n += 1
        cuts[n], largest = b, max(largest, start[b] - start[a] + b - a)
    return n, largest


@compiled
def read(data, start, eights, edge, key, first):
    """Read the words of a block of texts; how many there are. `first` gets the first word of each text, and their number at last."""
    begin = np.empty(len(start), np.int64)
    lanes = lower(data, start, eights.view(np.uint8), begin)
    words = edges(eights, lanes, edge)
    keys(eights, edge, key[:words])
    first_words(edge, words, begin, first)
    return words
