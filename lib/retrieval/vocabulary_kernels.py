"""The compiled loops of the vocabulary: distinct words in an open-addressing table (lib.retrieval.tokenizer.Vocabulary).

A word is found by its key (lib.retrieval.word_kernels.keys); without the top bit equal keys are equal words, with it the
bytes decide.
"""

import numpy as np

from lib.retrieval.compiled import compiled
from lib.retrieval.word_kernels import EXACT, TOP

_MIX = np.uint64(0x9E3779B97F4A7C15)
_EIGHT, _32 = np.uint64(8), np.uint64(32)


@compiled
def held(slot_key, slot_word, key):
    """The key of each word of a table, by its number."""
    for at in range(len(slot_key)):
        if slot_key[at] != 0:
            key[slot_word[at]] = slot_key[at]


@compiled
def home(key, places):
    """The place of a table of 2**n places where the search for a key begins."""
    mixed = (key ^ key >> _32) * _MIX
    return np.int64((mixed ^ mixed >> _32) & np.uint64(places - 1))


@compiled
def is_word(clean, at, after, words, start, number):
    """Whether clean[at:after] is the word of this number."""
    first = start[number]
    if start[number + 1] - first != after - at:
        return False
    for j in range(after - at):
        if clean[at + j] != words[first + j]:
            return False
    return True


@compiled
def numbers(clean, edge, key, words, start, slot_key, slot_word, number):
    """The number of each word in the vocabulary (words, start, slot_key, slot_word), or -1."""
    for i in range(len(key)):
        wanted, at = key[i], home(key[i], len(slot_key))
        while slot_key[at] != 0:
            # without the top bit, equal keys are equal words
            if slot_key[at] == wanted and (wanted < TOP or is_word(clean, edge[2 * i], edge[2 * i + 1], words, start, slot_word[at])):
                break
            at = (at + 1) & (len(slot_key) - 1)
        number[i] = slot_word[at] if slot_key[at] else -1


@compiled
def collect(clean, edge, key, begin, known, words, start, slot_key, slot_word, number):
    """Number the words from `begin` on as they come, in a table that holds `known` words.

    Gives the word it came to and how many are known: it stops where half of the table or all room for bytes is taken.
    """
    for i in range(begin, len(key)):
        first, after, wanted, at = edge[2 * i], edge[2 * i + 1], key[i], home(key[i], len(slot_key))
        while slot_key[at] != 0:
            if slot_key[at] == wanted and (wanted < TOP or is_word(clean, first, after, words, start, slot_word[at])):
                break
            at = (at + 1) & (len(slot_key) - 1)
        if slot_key[at] == 0:
            if 2 * known >= len(slot_key) or start[known] + after - first > len(words):
                return i, known
            for j in range(after - first):
                words[start[known] + j] = clean[first + j]
            slot_key[at], slot_word[at], start[known + 1] = wanted, known, start[known] + after - first
            known += 1
        number[i] = slot_word[at]
    return len(key), known


@compiled
def prefixes(words, start, prefix):
    """The first eight bytes of each word as a number that orders as they do; 0 stands for a byte that is not there."""
    for i in range(len(prefix)):
        found = np.uint64(0)
        for j in range(start[i], start[i] + EXACT):
            found = found << _EIGHT | np.uint64(words[j] if j < start[i + 1] else 0)
        prefix[i] = found


@compiled
def put_in_order(order, words, start, new_words, new_start, slot_key, slot_word, number):
    """Give word order[i] the number i everywhere: in the words themselves, in the table and in `number`."""
    new = np.empty(len(order), np.int32)
    for i in range(len(order)):
        new[order[i]] = i
        first, size = start[order[i]], start[order[i] + 1] - start[order[i]]
        for j in range(size):
            new_words[new_start[i] + j] = words[first + j]
        new_start[i + 1] = new_start[i] + size
    for place in range(len(slot_key)):
        if slot_key[place] != 0:
            slot_word[place] = new[slot_word[place]]
    for i in range(len(number)):
        number[i] = new[number[i]]


@compiled
def count(number, first, tf, out_start, out_word, out_count):
    """Count the known words of each text of a block; how many places they take. `tf` is 0 before and after.

    `out_start[0]` is where the places of the block begin among those of all blocks; the other starts are filled.
    """
    touched, n = np.empty(len(tf), np.int32), 0
    for i in range(len(first) - 1):
        distinct = 0
        for j in range(first[i], first[i + 1]):
            word = number[j]
            if word >= 0:
                if tf[word] == 0:
                    touched[distinct] = word
                    distinct += 1
                tf[word] += 1
        for word in np.sort(touched[:distinct]):
            out_word[n], out_count[n], tf[word] = word, tf[word], 0
            n += 1
        out_start[i + 1] = out_start[0] + n
    return n
