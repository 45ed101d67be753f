"""The compiled loops of the block-major inverted file (lib.retrieval.blocks).

Places in arrays are unsigned: a signed one may count from the end, and that test keeps LLVM from vectorising.
"""

import numpy as np
from numba import uint64

from lib.retrieval.compiled import compiled

BLOCK = 4096  # documents a block, so that their sums stay in the fastest cache
SUB = 64  # documents that are skipped together
SUBS = BLOCK // SUB
MANY = 255  # a term frequency of so much or more stands apart
SCALE = 255  # parts of a dense row are multiples of 1/255, rounded up


@compiled
def invert(start, word, count, live, words, first, base, list_word, list_start, doc, tf):
    """Sort the words of live texts by block, word and document; gives how many lists and how many `tf` of MANY or more there are.

    `first` and `base` (int64[blocks + 1]) get the lists and the live documents before each block.
    """
    place = np.zeros(words, np.int64)
    lists = many = at = b = 0
    while b * BLOCK < len(live):
        docs = live[b * BLOCK : (b + 1) * BLOCK]
        for d in docs:
            for j in range(start[d], start[d + 1]):
                place[word[j]] += 1
        for w in range(words):
            if place[w]:
                list_word[lists], list_start[lists] = w, at
                lists += 1
                at, place[w] = at + place[w], at
        for i in range(len(docs)):
            for j in range(start[docs[i]], start[docs[i] + 1]):
                p = place[word[j]]
                place[word[j]] += 1
                doc[p], tf[p] = i, min(count[j], MANY)
                many += count[j] >= MANY
        for w in list_word[first[b] : lists]:
            place[w] = 0
        b += 1
        first[b], base[b] = lists, b * BLOCK - BLOCK + len(docs)
    list_start[lists] = at
    return lists, many


@compiled
def apart(start, word, count, live, first, list_word, list_start, doc, many_at, many_tf):
    """The places of the postings whose term frequency is MANY or more, and that number, in the order of documents."""
    n = 0
    for i in range(len(live)):
        b, d = i // BLOCK, i % BLOCK
        for j in range(start[live[i]], start[live[i] + 1]):
            if count[j] >= MANY:
                one = first[b] + np.searchsorted(list_word[first[b] : first[b + 1]], word[j])
                many_at[n] = list_start[one] + np.searchsorted(doc[list_start[one] : list_start[one + 1]], d)
                many_tf[n] = count[j]
                n += 1


@compiled
def dense_rows(first, list_word, list_start, local, least, rows):
    """rows[b + 1] gets how many lists of block b are dense: wanted, and of at least `least` documents."""
    for b in range(len(first) - 1):
        for one in range(first[b], first[b + 1]):
            rows[b + 1] += local[list_word[one]] >= 0 and list_start[one + 1] - list_start[one] >= least


@compiled
def _frequency(tf, place, many_at, many_tf):
    """The term frequency of a posting."""
    found = np.int64(tf[uint64(place)])
    return np.int64(many_tf[np.searchsorted(many_at, place)]) if found == MANY else found


@compiled
def expand(first, base, list_word, list_start, doc, tf, many_at, many_tf, local, least, norm, rows, entry, part, bound, dense_tf, largest, dense_list):
    """Fill what a search reads (lib.retrieval.blocks.Ready) of the wanted words."""
    for b in range(len(first) - 1):
        row, count = 0, rows[b + 1] - rows[b]
        area = rows[b] * BLOCK
        for one in range(first[b], first[b + 1]):
            word = local[list_word[one]]
            if word < 0:
                continue
            dense = list_start[one + 1] - list_start[one] >= least
            entry[b, word] = -2 - row if dense else one
            for place in range(list_start[one], list_start[one + 1]):
                d = np.int64(doc[uint64(place)])
                frequency = np.float64(_frequency(tf, place, many_at, many_tf))
                value = frequency / (frequency + norm[base[b] + d])
                if dense:
                    level = np.uint8(np.ceil(value * SCALE))
                    bound[area + (d // SUB * count + row) * SUB + d % SUB] = level
                    dense_tf[area + d * count + row] = tf[uint64(place)]
                    largest[rows[b] + row, d // SUB] = max(largest[rows[b] + row, d // SUB], level)
                else:
                    part[uint64(place)] = value
            if dense:
                dense_list[rows[b] + row] = one
                row += 1


@compiled
def _scatter(sums, doc, part, place, end, weight):
    for j in range(uint64(place), uint64(end)):
        sums[uint64(doc[j])] += weight * part[j]


@compiled(fastmath={"contract"})
def _reach(sums, base, limit):
    """How many of a sub-block reach the limit."""
    n = np.int32(0)
    for i in range(uint64(base), uint64(base + SUB)):
        n += np.int32(sums[i] >= limit)
    return n


@compiled(fastmath={"contract"})
def _add_four(sums, bound, base, a, b, c, d, weight_a, weight_b, weight_c, weight_d, limit):
    """Add four dense rows to a sub-block; how many reach the limit."""
    base, a, b, c, d = uint64(base), uint64(a), uint64(b), uint64(c), uint64(d)
    n = np.int32(0)
    for i in range(uint64(SUB)):
        two = weight_a * np.float32(bound[a + i]) + weight_b * np.float32(bound[b + i])
        value = sums[base + i] + (two + (weight_c * np.float32(bound[c + i]) + weight_d * np.float32(bound[d + i])))
        sums[base + i] = value
        n += np.int32(value >= limit)
    return n


@compiled
def _raise(lowest, value):
    """Put a value in the place of the least of a heap; behind its last value stands infinity, so that one with a place below it has two."""
    at, down, k = 0, 1, len(lowest) - 1
    while down < k:
        down += np.int64(lowest[uint64(down + 1)] < lowest[uint64(down)])
        if lowest[uint64(down)] >= value:
            break
        lowest[uint64(at)] = lowest[uint64(down)]
        at = down
        down = 2 * at + 1
    lowest[uint64(at)] = value


@compiled
def _kept(doc, high, size, limit):
    """Drop the candidates below the limit; how many stay."""
    n = 0
    for i in range(size):
        if high[i] >= limit:
            doc[n], high[n] = doc[i], high[i]
            n += 1
    return n


@compiled
def _place(doc, place, end, d):
    """Where a document stands in a list, or -1; no branch hangs on what is found."""
    n = end - place
    while n > 1:
        half = n >> 1
        place += half * (doc[uint64(place + half)] <= d)
        n -= half
    return place if doc[uint64(place)] == d else -1


@compiled
def _exact(b, q, wanted, slot, q_start, q_word, weight, doc, tf, many_at, many_tf, list_start, entry, rows, dense_tf, dense_list, base, norm, score):
    """The float64 scores, rounded to float32, of documents of one block (places among all) for query q; `slot` is int32[BLOCK] of -1."""
    count, n = rows[b + 1] - rows[b], len(wanted)
    total = np.zeros(n, np.float64)
    for i in range(n):
        slot[wanted[i] - base[b]] = i
    for j in range(q_start[q], q_start[q + 1]):
        e = np.int64(entry[b, q_word[j]])
        if e >= 0:
            first, end = list_start[e], list_start[e + 1]
            if end - first > 64 * n:  # each document is looked for in a list that is much longer than they are many
                for i in range(n):
                    place = _place(doc, first, end, wanted[i] - base[b])
                    if place >= 0:
                        frequency = np.float64(_frequency(tf, place, many_at, many_tf))
                        total[i] += weight[j] * (frequency / (frequency + norm[wanted[i]]))
            else:
                for place in range(first, end):
                    i = np.int64(slot[uint64(doc[uint64(place)])])
                    if i >= 0:
                        frequency = np.float64(_frequency(tf, place, many_at, many_tf))
                        total[i] += weight[j] * (frequency / (frequency + norm[wanted[i]]))
        elif e < -1:
            for i in range(n):
                frequency = np.float64(dense_tf[uint64(rows[b] * BLOCK + (wanted[i] - base[b]) * count - 2 - e)])
                if frequency == MANY:
                    one = dense_list[rows[b] - 2 - e]
                    frequency = np.float64(_frequency(tf, _place(doc, list_start[one], list_start[one + 1], wanted[i] - base[b]), many_at, many_tf))
                total[i] += weight[j] * (frequency / (frequency + norm[wanted[i]]))  # 0.0 where the word is not there, which changes nothing
    for i in range(n):
        score[i] = total[i]
        slot[wanted[i] - base[b]] = -1


@compiled
def search(
    q_start, q_word, q_weight, heaviest, margin, k,
    base, list_start, doc, tf, many_at, many_tf, entry, part, rows, bound, dense_tf, largest, dense_list, norm,
    lowest, found, high, score, size,
):
    """Candidates of each query, and their exact scores (lib.retrieval.blocks.add).

    `lowest` [queries, k + 1] is a heap of what the best k documents reach at least, and infinity; `found`, `high` and `score`
    [queries, room] get `size` candidates a query, `room` is above k.
    """
    queries, room = found.shape
    longest = 0
    for q in range(queries):
        longest = max(longest, q_start[q + 1] - q_start[q])
    sums, left = np.zeros(BLOCK, np.float32), np.zeros((longest // 4 + 2, SUBS), np.float32)
    row, row_weight = np.zeros(longest + 4, np.int64), np.zeros(longest + 4, np.float32)
    slot, hit = np.full(BLOCK, -1, np.int32), np.zeros(SUB + 1, np.int64)
    for b in range(len(base) - 1):
        count = rows[b + 1] - rows[b]
        for q in range(queries):
            n, slack, heap = 0, np.float32(0), lowest[q]
            sums[:] = 0
            for i in heaviest[q_start[q] : q_start[q + 1]]:
                e, weight = entry[b, q_word[i]], np.float32(q_weight[i])
                if e >= 0:
                    _scatter(sums, doc, part, list_start[e], list_start[e + 1], weight)
                elif e < -1:
                    row[n], row_weight[n] = -2 - e, weight / np.float32(SCALE)
                    slack += row_weight[n]
                    n += 1
            while n % 4:
                row[n], row_weight[n] = 0, 0
                n += 1
            fours = n // 4
            left[fours] = 0
            for four in range(fours - 1, -1, -1):
                left[four] = left[four + 1]
                for i in range(4 * four, 4 * four + 4):
                    one, weight = uint64(rows[b] + row[i]), row_weight[i]
                    for s in range(uint64(SUBS)):
                        left[four, s] += weight * largest[one, s]
            up, down = np.float32(1 + margin[q]), np.float32(1 - margin[q])
            least = heap[0] / up
            for s in range(SUBS):
                at, area, four = s * SUB, (rows[b] * SUBS + s * count) * SUB, 0
                n = _reach(sums, at, least - left[0, s] * up)
                while n > 0 and four < fours:
                    i = 4 * four
                    four += 1
                    n = _add_four(
                        sums, bound, at, area + row[i] * SUB, area + row[i + 1] * SUB, area + row[i + 2] * SUB, area + row[i + 3] * SUB,
                        row_weight[i], row_weight[i + 1], row_weight[i + 2], row_weight[i + 3], least - left[four, s] * up,
                    )
                if n == 0:
                    continue
                hits = 0
                for i in range(SUB):  # without a branch: which of them reach it cannot be foretold
                    hit[uint64(hits)] = at + i
                    hits += np.int64(sums[uint64(at + i)] >= least)
                for i in range(hits):
                    d = np.int64(hit[i])
                    value = sums[uint64(d)]
                    if value < least or value <= 0:
                        continue
                    if size[q] == room:
                        size[q] = _kept(found[q], high[q], room, least)
                        if size[q] == room:  # so many are so close that only their exact scores tell them apart
                            _settle(
                                b, q, k, slot, q_start, q_word, q_weight, doc, tf, many_at, many_tf, list_start, entry, rows, dense_tf, dense_list,
                                base, norm, found[q], high[q], score[q],
                            )
                            size[q] = k
                    found[q, size[q]], high[q, size[q]] = base[b] + d, value
                    size[q] += 1
                    low = value * down - slack * up
                    if low > heap[0]:
                        _raise(heap, low)
                        least = heap[0] / up
    begun = np.zeros(queries, np.int64)
    for q in range(queries):
        size[q] = _kept(found[q], high[q], size[q], lowest[q, 0] / np.float32(1 + margin[q]))
    for b in range(len(base) - 1):  # block by block, so that its lists are read from a cache
        for q in range(queries):
            end = begun[q]
            while end < size[q] and found[q, end] < base[b + 1]:
                end += 1
            if end > begun[q]:
                _exact(
                    b, q, found[q, begun[q] : end], slot, q_start, q_word, q_weight, doc, tf, many_at, many_tf, list_start, entry, rows,
                    dense_tf, dense_list, base, norm, score[q, begun[q] : end],
                )
                begun[q] = end


@compiled
def _settle(last, q, k, slot, q_start, q_word, weight, doc, tf, many_at, many_tf, list_start, entry, rows, dense_tf, dense_list, base, norm, found, high, score):
    """Leave the best k candidates of a full row, in the order of documents, by their exact scores; ties go to the lower document."""
    begun = 0
    for b in range(last + 1):
        end = begun
        while end < len(found) and found[end] < base[b + 1]:
            end += 1
        if end > begun:
            _exact(
                b, q, found[begun:end], slot, q_start, q_word, weight, doc, tf, many_at, many_tf, list_start, entry, rows,
                dense_tf, dense_list, base, norm, score[begun:end],
            )
        begun = end
    best = np.argsort(-score, kind="mergesort")[:k]
    best.sort()
    for i in range(k):
        found[i], high[i] = found[best[i]], high[best[i]]
