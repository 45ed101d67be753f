"""The compiled loops of the n-gram route: an open-addressing table of the queries' n-grams, and the pass over the documents.

A gram's 64-bit hash is a rolling polynomial of its words' keys. Two of its bits stand in a filter that turns away nearly
every gram that no query holds; the table's places hold half of the hash and the gram's number, and what is found there
is compared word by word, so that a hash can never merge two grams. A gram's words are those of the queries from `at[gram]` on.
They stand in one file because numba's cache on disk watches only the file that a function stands in.
"""

import numba
import numpy as np

_BASE = np.uint64(0xD1342543DE82EF95)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_1, _6, _12, _32, _63, _64 = map(np.uint64, (1, 6, 12, 32, 63, 64))
_NUMBER, _TOP = np.uint64(0xFFFFFFFF), np.uint64(1 << 63)


@numba.njit(cache=True, nogil=True)
def _of_word(key):
    mixed = (key ^ key >> _32) * _MIX
    return mixed ^ mixed >> _32


@numba.njit(cache=True, nogil=True)
def _of_gram(rolled):
    mixed = (rolled ^ rolled >> _32) * _MIX
    return mixed ^ mixed >> _32


@numba.njit(cache=True, nogil=True)
def _power(n):
    """The factor that the first of n words has in a rolled hash."""
    power = _1
    for _ in range(n - 1):
        power *= _BASE
    return power


@numba.njit(cache=True, nogil=True)
def _home(hashed, places):
    return np.int64(hashed >> _12 & np.uint64(places - 1))


@numba.njit(cache=True, nogil=True)
def _is_gram(word, a, b, n):
    """Whether the n words from a on and from b on are the same numbers."""
    for j in range(n):
        if word[a + j] != word[b + j]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def number(word, first, key, n, slots, bits, at, gram):
    """Put the n-grams of the queries into the empty table and the filter, numbered as they come; how many are distinct.

    Query q has the words `word[first[q]:first[q + 1]]`; gram[i] becomes the number of the gram that begins at word i, -1 where none does.
    """
    known, last, shift = 0, _power(n), _64 - np.uint64(np.log2(len(bits)))
    longest = 0
    for q in range(len(first) - 1):
        longest = max(longest, first[q + 1] - first[q])
    hashes, warm = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    for q in range(len(first) - 1):
        rolled, begin = np.uint64(0), first[q]
        for i in range(first[q], first[q + 1]):
            rolled = rolled * _BASE + _of_word(key[word[i]])
            gram[i] = -1
            if i - n + 1 >= begin:
                hashes[i - n + 1 - begin] = _of_gram(rolled)
                rolled -= _of_word(key[word[i - n + 1]]) * last
        windows = first[q + 1] - begin - n + 1
        for j in range(windows):  # loads that do not wait for each other bring the places into the cache
            warm[j] = slots[_home(hashes[j], len(slots))]
        for j in range(windows):
            hashed, found = hashes[j], -1
            place = _home(hashed, len(slots))
            while slots[place] != 0:
                if slots[place] >> _32 == hashed >> _32:
                    found = np.int64(slots[place] & _NUMBER) - 1
                    if _is_gram(word, at[found], begin + j, n):
                        break
                    found = -1
                place = (place + 1) & (len(slots) - 1)
            if found < 0:
                found = known
                at[found] = begin + j
                known += 1
                slots[place] = hashed >> _32 << _32 | np.uint64(known)
                bits[np.int64(hashed >> shift)] |= _1 << (hashed & _63) | _1 << (hashed >> _6 & _63)
            gram[begin + j] = found
    return known


@numba.njit(cache=True, nogil=True)
def by_words(word, at, chosen, n, words):
    """The chosen grams in the order of their words' numbers, the first word first: stable counting sorts from the last word on."""
    order, ordered, here = chosen.copy(), np.empty_like(chosen), np.empty_like(chosen)
    for j in range(n - 1, -1, -1):
        start = np.zeros(words + 1, np.int32)
        for i in range(len(order)):
            here[i] = word[at[order[i]] + j]
            start[here[i] + 1] += 1
        for i in range(words):
            start[i + 1] += start[i]
        for i in range(len(order)):
            ordered[start[here[i]]] = order[i]
            start[here[i]] += 1
        order, ordered = ordered, order
    return order


@numba.njit(cache=True, nogil=True)
def renumber(order, slots, at, gram):
    """Give gram order[i] the number i, in the table, in `gram` and in the new `at` that comes back."""
    new, moved = np.empty(len(order), np.int32), np.empty_like(at)
    for i in range(len(order)):
        new[order[i]], moved[i] = i, at[order[i]]
    for place in range(len(slots)):
        if slots[place] != 0:
            slots[place] = slots[place] >> _32 << _32 | np.uint64(new[np.int64(slots[place] & _NUMBER) - 1] + 1)
    for i in range(len(gram)):
        if gram[i] >= 0:
            gram[i] = new[gram[i]]
    return moved


@numba.njit(cache=True, nogil=True)
def distinct(q_first, q_last, gram, first, size, count):
    """The distinct grams of queries q_first ... q_last - 1: `gram[first[q]:]` becomes size[q] of them, ascending, each `count` times."""
    for q in range(q_first, q_last):
        here = gram[first[q] : first[q + 1]]
        if len(here) > 100:
            here[:] = np.sort(here)
        else:  # by insertion: most queries are short
            for i in range(1, len(here)):
                one, j = here[i], i
                while j > 0 and here[j - 1] > one:
                    here[j] = here[j - 1]
                    j -= 1
                here[j] = one
        n, before = 0, np.int32(-1)
        for one in here:
            if one >= 0:
                if one != before:
                    here[n], count[first[q] + n], before = one, 0, one
                    n += 1
                count[first[q] + n - 1] += 1
        size[q] = n


@numba.njit(cache=True, nogil=True)
def packed(gram, first, size, count, start, member, times):
    """Move the grams and counts that `distinct` left at first[q] to start[q]."""
    for q in range(len(size)):
        for i in range(size[q]):
            member[start[q] + i], times[start[q] + i] = gram[first[q] + i], count[first[q] + i]


@numba.njit(cache=True, nogil=True)
def sift(key, n, bits, at, hashes):
    """The places whose n words may be a known gram, across the borders of texts too, and their hashes; how many."""
    kept, rolled, last, shift = 0, np.uint64(0), _power(n), _64 - np.uint64(np.log2(len(bits)))
    for i in range(min(n - 1, len(key))):
        rolled = rolled * _BASE + _of_word(key[i])
    for i in range(n - 1, len(key)):
        rolled = rolled * _BASE + _of_word(key[i])
        hashed = _of_gram(rolled)
        here = bits[np.int64(hashed >> shift)]
        at[kept], hashes[kept] = i - n + 1, hashed
        kept += np.int64(here >> (hashed & _63) & here >> (hashed >> _6 & _63) & _1)  # no branch: nobody can foretell it
        rolled -= _of_word(key[i - n + 1]) * last
    return kept


@numba.njit(cache=True, nogil=True)
def _are_words(clean, edge, key, i, n, word, begin, key_of, data, start):
    """Whether the words of a text from i on are the n words of the queries from `begin` on."""
    for j in range(n):
        number_ = word[begin + j]
        if key[i + j] != key_of[number_]:
            return False
        if key[i + j] >= _TOP:  # the key of a long word is a hash
            a, size = edge[2 * (i + j)], edge[2 * (i + j) + 1] - edge[2 * (i + j)]
            if start[number_ + 1] - start[number_] != size:
                return False
            for byte in range(size):
                if clean[a + byte] != data[start[number_] + byte]:
                    return False
    return True


@numba.njit(cache=True, nogil=True)
def match(places, hashes, clean, edge, key, first, n, slots, at, word, key_of, data, start, unit, doc):
    """The known grams at the places sifted out, each with its text; how many."""
    # three loops of loads that do not wait for each other bring what the last one reads into the cache
    for s in range(len(places)):
        unit[s] = np.int64(slots[_home(hashes[s], len(slots))] & _NUMBER) - 1
    for s in range(len(places)):
        doc[s] = at[unit[s]] if unit[s] >= 0 else 0
    for s in range(len(places)):
        unit[s] = word[doc[s]]
    text = found = 0
    for s in range(len(places)):
        i, hashed = places[s], hashes[s]
        while first[text + 1] <= i:
            text += 1
        if i + n > first[text + 1]:
            continue
        place = _home(hashed, len(slots))
        while slots[place] != 0:
            if slots[place] >> _32 == hashed >> _32:
                gram = np.int64(slots[place] & _NUMBER) - 1
                if _are_words(clean, edge, key, i, n, word, at[gram], key_of, data, start):
                    unit[found], doc[found] = gram, text
                    found += 1
                    break
            place = (place + 1) & (len(slots) - 1)
    return found


@numba.njit(cache=True, nogil=True)
def add(unit, start):
    """Count the units into start[unit + 1]."""
    for u in unit:
        start[u + 1] += 1


@numba.njit(cache=True, nogil=True)
def place(unit, doc, end, member):
    """Put each document behind those of its unit; `end` holds where the next one of each unit goes, and moves on."""
    for i in range(len(unit)):
        member[end[unit[i]]] = doc[i]
        end[unit[i]] += 1


@numba.njit(cache=True, nogil=True)
def once(start, member, count):
    """Keep each document of a unit once, in place, and count it; `start` moves along. How many are kept."""
    n = i = 0
    for unit in range(len(start) - 1):
        end, begin = start[unit + 1], n
        start[unit] = n
        while i < end:
            if n > begin and member[n - 1] == member[i]:
                count[n - 1] += 1
            else:
                member[n], count[n] = member[i], 1
                n += 1
            i += 1
    start[len(start) - 1] = n
    return n
