"""The compiled loops of the dense route: candidates above a threshold that rises, and their scores in float64."""

import numpy as np

from lib.retrieval.compiled import compiled

_U = np.uint64
_WIDE = 64  # products that are compared at once; from 64 on the compiler counts many a step
_FEW = 5  # of them above the cut: from so many on a branch for each is guessed wrong more often than it saves


@compiled(fastmath={"reassoc", "contract"})
def lengths(values, length):
    """Euclidean lengths of rows, in float64 and in any order of summation; not finite where a number is not."""
    for i in range(values.shape[0]):
        row, total = values[i], 0.0
        for j in range(_U(values.shape[1])):
            total += np.float64(row[j]) * np.float64(row[j])
        length[i] = np.sqrt(total)


@compiled(fastmath={"reassoc", "contract", "nnan", "nsz"})
def in_bytes(values, largest, whole, step, rest):
    """Each row, whose numbers are `largest` at most, as whole numbers from -127 to 127 times a step, and the length of what is left of it."""
    for i in range(values.shape[0]):
        row, made, left = values[i], whole[i], 0.0
        step[i] = largest[i] / np.float32(127)
        times = np.float32(127) / largest[i] if step[i] > 1e-30 else np.float32(0)
        for j in range(_U(values.shape[1])):
            made[j] = np.int8(np.int32(row[j] * times + np.float32(0.5 if row[j] > 0 else -0.5)))
        for j in range(_U(values.shape[1])):
            apart = np.float64(row[j]) - np.float64(made[j]) * np.float64(step[i])
            left += apart * apart
        rest[i] = np.sqrt(left)


@compiled
def _keep_largest(found, coarse, size, keep):
    """Put the `keep` largest of the first `size` in front; the least of them (Hoare's quickselect)."""
    low, high = 0, size - 1
    while low < high:
        pivot = coarse[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while coarse[i] > pivot:
                i += 1
            while coarse[j] < pivot:
                j -= 1
            if i <= j:
                coarse[i], coarse[j] = coarse[j], coarse[i]
                found[i], found[j] = found[j], found[i]
                i += 1
                j -= 1
        if keep - 1 <= j:
            high = j
        elif keep - 1 >= i:
            low = i
        else:
            break
    least = coarse[0]
    for i in range(1, keep):
        least = min(least, coarse[i])
    return least


@compiled
def _collect(q, row, documents, first, keep, found, coarse, size, cut, dropped):
    least, n, room = cut[q], size[q], found.shape[1]
    for group in range(_U(documents + _WIDE - 1) // _U(_WIDE)):
        above = np.int32(0)
        for at in range(group * _U(_WIDE), (group + _U(1)) * _U(_WIDE)):
            above += np.int32(row[at] > least)
        if above:
            if n + _WIDE > room:
                least = _keep_largest(found[q], coarse[q], n, keep)
                cut[q] = dropped[q] = least
                n = keep
            end = min((group + _U(1)) * _U(_WIDE), _U(documents))
            if above < _FEW:
                for at in range(group * _U(_WIDE), end):
                    if row[at] > least:
                        found[q, n], coarse[q, n] = first + np.int64(at), row[at]
                        n += 1
            else:
                for at in range(group * _U(_WIDE), end):
                    found[q, n], coarse[q, n] = first + np.int64(at), row[at]
                    n += np.int64(row[at] > least)
    size[q] = n


@compiled
def collect(product, documents, first, keep, found, coarse, size, cut, dropped):
    """Note the documents `first`, `first + 1`, ... whose product is above the query's cut: where they are many, the `keep` largest.

    `product` is float32[queries, a multiple of 64], of which the first `documents` count. `found` and `coarse` [queries, room] hold
    the first `size` of each query; the room is `keep` and 64 at least. What is let go besides is at most `dropped`, as high as the cut.
    """
    for q in range(product.shape[0]):
        _collect(q, product[q], documents, first, keep, found, coarse, size, cut, dropped)


@compiled
def collect_sums(sums, of_query, of_document, first, keep, found, coarse, size, cut, dropped):
    """The same of sums of whole numbers, int32[queries, documents], times the steps float32 of their rows."""
    documents = sums.shape[1]
    product = np.zeros((documents + _WIDE - 1) // _WIDE * _WIDE, np.float32)  # of one query at a time, which stays in the cache
    for q in range(sums.shape[0]):
        row, step = sums[q], of_query[q]
        for j in range(_U(documents)):
            product[j] = np.float32(row[j]) * (step * of_document[j])
        _collect(q, product, documents, first, keep, found, coarse, size, cut, dropped)


@compiled
def narrow(k, bound, found, coarse, size):
    """Let go of candidates that k others surely pass: their product lies more than twice the bound below the k-th."""
    for q in range(len(size)):
        if size[q] <= k:
            continue
        least, n = _keep_largest(found[q], coarse[q], size[q], k) - 2 * bound[q], 0
        for i in range(size[q]):
            if coarse[q, i] >= least:
                found[q, n], coarse[q, n] = found[q, i], coarse[q, i]
                n += 1
        size[q] = n


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _any_order(x, y):
    total = 0.0
    for j in range(_U(len(x))):
        total += np.float64(x[j]) * np.float64(y[j])
    return total


@compiled
def _in_order(x, y):
    total = 0.0
    for j in range(_U(len(x))):
        total += np.float64(x[j]) * np.float64(y[j])
    return total


@compiled
def exact(query, vectors, apart, found, size, score):
    """The score of each candidate in float64, dimensions ascending, rounded to float32.

    `apart` float64[queries] is above the difference of two float64 sums in different orders. So where a sum in any order, which
    is many times as fast, rounds to one float32 with that much added and taken away, the sum in order rounds to it too.
    """
    for q in range(len(size)):
        for i in range(size[q]):
            total = _any_order(query[q], vectors[found[q, i]])
            low, high = np.float32(total - apart[q]), np.float32(total + apart[q])
            # zeros may differ in their sign
            score[q, i] = low if low == high and low != 0 else np.float32(_in_order(query[q], vectors[found[q, i]]))
