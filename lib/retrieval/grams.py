"""The compiled loops of the n-gram route: an open-addressing table of the queries' n-grams, and the pass over the documents.

A gram's 64-bit hash is a rolling polynomial of its words' keys. Two of its bits stand in a filter that turns away nearly
every gram that no query holds; the table's places hold half of the hash and the gram's number, and what is found there
is compared word by word, so that a hash can never merge two grams. A gram's words are those of the queries from `at[gram]` on.
"""

import numpy as np

from lib.retrieval import word_kernels
from lib.retrieval.compiled import compiled
from lib.retrieval.word_kernels import TOP

_BASE = np.uint64(0xD1342543DE82EF95)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_1, _6, _32, _63, _64 = map(np.uint64, (1, 6, 32, 63, 64))
_NUMBER = np.uint64(0xFFFFFFFF)


@compiled
def _of_word(key):
    mixed = (key ^ key >> _32) * _MIX
    return mixed ^ mixed >> _32


@compiled
def _of_gram(rolled):
    mixed = (rolled ^ rolled >> _32) * _MIX
    return mixed ^ mixed >> _32


@compiled
def _power(n):
    """The factor that the first of n words has in a rolled hash."""
    power = _1
    for _ in range(n - 1):
        power *= _BASE
    return power


@compiled
def _home(hashed, places):
    """The place of a table of 2**m places where the search for a gram begins."""
    return np.int64(hashed >> (_64 - np.uint64(np.log2(places))))


@compiled
def _next(place, room):
    """The place after this one in its range of `room` places; the first one comes after the last."""
    return place & ~(room - 1) | (place + 1) & (room - 1)


@compiled
def _is_gram(word, a, b, n):
    """Whether the n words from a on and from b on are the same numbers."""
    for j in range(n):
        if word[a + j] != word[b + j]:
            return False
    return True


@compiled
def spread(q_first, q_last, word, first, key, n, end, window, hashes, gram):
    """Sort the n-grams of queries by the top bits of their hashes, `len(end)` ranges; end[range] moves on by how many it has.

    Query q has the words `word[first[q]:first[q + 1]]`. Where `gram` has room it becomes -1 at all of them, and the word at which
    a gram begins and the gram's hash go to place end[range] of `window` and `hashes`.
    """
    last, top = _power(n), _64 - np.uint64(np.log2(len(end)))
    for q in range(q_first, q_last):
        rolled, begin = np.uint64(0), first[q]
        for i in range(first[q], first[q + 1]):
            rolled = rolled * _BASE + _of_word(key[word[i]])
            if i - n + 1 >= begin:
                hashed = _of_gram(rolled)
                rolled -= _of_word(key[word[i - n + 1]]) * last
                part = np.int64(hashed >> top) if len(end) > 1 else 0
                if len(gram):
                    window[end[part]], hashes[end[part]] = i - n + 1, hashed
                end[part] += 1
        if len(gram):
            gram[first[q] : first[q + 1]] = -1


@compiled
def number(part, parts, start, window, hashes, word, n, slots, bits, at, gram, size):
    """Put the grams of one of the `parts` ranges into the empty table and the filter, numbered as they come.

    `gram` gets these numbers at the words where grams begin, size[part] how many are distinct, `at[start[part]:]` where their
    words begin. A range with more grams than three quarters of its places is given up, and its size is -1.
    """
    shift, room, known, base = _64 - np.uint64(np.log2(len(bits))), len(slots) // parts, 0, start[part]
    for i in range(base, start[part + 1]):
        hashed, found = hashes[i], -1
        place = _home(hashed, len(slots))
        while slots[place] != 0:
            if slots[place] >> _32 == hashed & _NUMBER:
                found = np.int64(slots[place] & _NUMBER) - 1
                if _is_gram(word, at[base + found], window[i], n):
                    break
                found = -1
            place = _next(place, room)
        if found < 0:
            found = known
            at[base + found] = window[i]
            known += 1
            slots[place] = hashed << _32 | np.uint64(known)
            bits[np.int64(hashed >> shift)] |= _1 << (hashed & _63) | _1 << (hashed >> _6 & _63)
        gram[window[i]] = found
        if 4 * known > 3 * room:
            known = -1
            break
    size[part] = known


@compiled
def renumber(part, parts, start, base, window, slots, gram):
    """Number the grams of a range from base[part] on, in the table and in `gram`."""
    room = len(slots) // parts
    for place in range(part * room, (part + 1) * room):
        slots[place] += np.uint64(base[part]) if slots[place] != 0 else np.uint64(0)
    for i in range(start[part], start[part + 1]):
        gram[window[i]] += base[part]


@compiled
def _once(here):
    """The distinct numbers of `here` to its front, ascending; how many."""
    if len(here) > 100:
        here[:] = np.sort(here)
    else:  # by insertion: most are few
        for i in range(1, len(here)):
            one, j = here[i], i
            while j > 0 and here[j - 1] > one:
                here[j] = here[j - 1]
                j -= 1
            here[j] = one
    n = 0
    for one in here:
        if n == 0 or one != here[n - 1]:
            here[n] = one
            n += 1
    return n


@compiled
def distinct(q_first, q_last, gram, first, size):
    """The distinct grams of queries q_first ... q_last - 1: `gram[first[q]:]` becomes size[q] of them, ascending. They leave out -1."""
    for q in range(q_first, q_last):
        n = first[q]
        for i in range(first[q], first[q + 1]):
            if gram[i] >= 0:
                gram[n] = gram[i]
                n += 1
        size[q] = _once(gram[first[q] : n])


@compiled
def packed(q_first, q_last, gram, first, size, start, member):
    """Move the grams that `distinct` left at first[q] to start[q]."""
    for q in range(q_first, q_last):
        member[start[q] : start[q] + size[q]] = gram[first[q] : first[q] + size[q]]


@compiled
def sift(key, n, bits, at, hashes):
    """The places whose n words may be a known gram, across the borders of texts too, and their hashes; how many.

    Three loops: the words do not wait for what rolls over them, nor that for the filter.
    """
    rolled, last, shift = np.uint64(0), _power(n), _64 - np.uint64(np.log2(len(bits)))
    for i in range(len(key)):
        hashes[i] = _of_word(key[i])
    for i in range(len(key)):
        rolled = rolled * _BASE + hashes[i]
        if i >= n - 1:
            first = hashes[i - n + 1]
            hashes[i - n + 1] = _of_gram(rolled)
            rolled -= first * last
    kept = 0
    for i in range(len(key) - n + 1):
        hashed = hashes[i]
        here = bits[np.int64(hashed >> shift)]
        at[kept], hashes[kept] = i, hashed
        kept += np.int64(here >> (hashed & _63) & here >> (hashed >> _6 & _63) & _1)  # no branch: nobody can foretell it
    return kept


@compiled
def _are_words(clean, edge, key, i, n, word, begin, key_of, data, start):
    """Whether the words of a text from i on are the n words of the queries from `begin` on."""
    for j in range(n):
        number_ = word[begin + j]
        if key[i + j] != key_of[number_]:
            return False
        if key[i + j] >= TOP:  # the key of a long word is a hash
            a, size = edge[2 * (i + j)], edge[2 * (i + j) + 1] - edge[2 * (i + j)]
            if start[number_ + 1] - start[number_] != size:
                return False
            for byte in range(size):
                if clean[a + byte] != data[start[number_] + byte]:
                    return False
    return True


@compiled
def match(places, hashes, clean, edge, key, first, n, slots, room, at, word, key_of, data, start, row, unit, doc):
    """The known grams at the places sifted out, each once a text, with the text's number from `row` on; how many."""
    # three loops of loads that do not wait for each other bring what the last one reads into the cache
    for s in range(len(places)):
        here = slots[_home(hashes[s], len(slots))]
        unit[s] = np.int64(here & _NUMBER) - 1 if here >> _32 == hashes[s] & _NUMBER else -1
    for s in range(len(places)):
        doc[s] = at[unit[s]] if unit[s] >= 0 else 0
    for s in range(len(places)):
        unit[s] = word[doc[s]]
    text = begin = found = 0
    for s in range(len(places)):
        i, hashed = places[s], hashes[s]
        if first[text + 1] <= i:
            begin = found = begin + _once(unit[begin:found])
            while first[text + 1] <= i:
                text += 1
        if i + n > first[text + 1]:
            continue
        place = _home(hashed, len(slots))
        while slots[place] != 0:
            if slots[place] >> _32 == hashed & _NUMBER:
                gram = np.int64(slots[place] & _NUMBER) - 1
                if _are_words(clean, edge, key, i, n, word, at[gram], key_of, data, start):
                    unit[found], doc[found] = gram, row + text
                    found += 1
                    break
            place = _next(place, room)
    return begin + _once(unit[begin:found])


@compiled
def find(data, start, cuts, block, eights, edge, key, places, hashes, n, bits, slots, room, at, word, key_of, words, words_start, length, found, unit, doc):
    """The known grams of texts, each once a text: `unit` and `doc` get their numbers and the rows of their texts, which ascend, from `found` on.

    The texts are read block by block from `block` on, nobody waiting for another thread meanwhile; `length` gets the words of each.
    The block where the next one may be too much for `unit` and `doc`, or the last, and how many are found.
    """
    while block < len(cuts) - 1 and found + len(key) <= len(unit):
        a, b = cuts[block], cuts[block + 1]
        first = np.empty(b - a + 1, np.int64)
        here = word_kernels.read(data, start[a : b + 1], eights, edge, key, first)
        kept = sift(key[:here], n, bits, places, hashes)
        found += match(places[:kept], hashes[:kept], eights.view(np.uint8), edge, key[:here], first, n, slots, room, at, word,
                       key_of, words, words_start, a, unit[found:], doc[found:])  # fmt: skip
        for i in range(b - a):
            length[a + i] = first[i + 1] - first[i]
        block += 1
    return block, found


@compiled
def count(unit, first, last, start):
    """Count the units first ... last - 1 into start[unit + 2]."""
    for u in unit:  # those of a document ascend, so that the branch is guessed well
        if first <= u < last:
            start[u + 2] += 1


@compiled
def place(unit, doc, row, first, last, start, member):
    """Put the documents, counted from `row` on, behind those of their units first ... last - 1: to start[unit + 1], which moves on."""
    for i in range(len(unit)):
        u = unit[i]
        if first <= u < last:
            member[start[u + 1]] = row + doc[i]
            start[u + 1] += 1
