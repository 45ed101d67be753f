"""The compiled loops of the three routes, over the heap of the best k that they share."""

import numpy as np

from lib.retrieval.compiled import compiled


@compiled
def _ahead(score_a, doc_a, score_b, doc_b):
    return score_a > score_b or (score_a == score_b and doc_a < doc_b)


@compiled
def _sink(doc, score, at, size):
    """Move the entry at place `at` down the heap of `size` entries, the worst at place 0, to where it belongs."""
    moved_doc, moved_score = doc[at], score[at]
    while 2 * at + 1 < size:
        down = 2 * at + 1
        if down + 1 < size and _ahead(score[down], doc[down], score[down + 1], doc[down + 1]):
            down += 1
        if not _ahead(moved_score, moved_doc, score[down], doc[down]):
            break
        doc[at], score[at] = doc[down], score[down]
        at = down
    doc[at], score[at] = moved_doc, moved_score


@compiled
def offer(doc, score, size, new_doc, new_score):
    """Put a document into one query's heap if it is among the best len(doc); the new size."""
    k = len(doc)
    if size < k:
        at = size
        while at > 0:
            up = (at - 1) // 2
            if not _ahead(score[up], doc[up], new_score, new_doc):
                break
            doc[at], score[at] = doc[up], score[up]
            at = up
        doc[at], score[at] = new_doc, new_score
        return size + 1
    if _ahead(new_score, new_doc, score[0], doc[0]):
        doc[0], score[0] = new_doc, new_score
        _sink(doc, score, 0, k)
    return size


@compiled
def offer_all(found, found_score, found_size, rows, row, doc, score, size):
    """Offer the first `found_size` documents of each query; document d is corpus row `row + rows[d]`."""
    for q in range(len(found_size)):
        for i in range(found_size[q]):
            size[q] = offer(doc[q], score[q], size[q], row + rows[found[q, i]], found_score[q, i])


@compiled
def ranked(first, last, doc, score):
    """Put the entries of queries first ... last - 1 in order, best first, in whatever order these stand; then come -1 and 0."""
    for q in range(first, last):
        size = 0
        for i in range(doc.shape[1]):
            if doc[q, i] >= 0:
                doc[q, size], score[q, size] = doc[q, i], score[q, i]
                size += 1
        doc[q, size:], score[q, size:] = -1, 0
        for at in range(size // 2 - 1, -1, -1):
            _sink(doc[q], score[q], at, size)
        for end in range(size - 1, 0, -1):
            doc[q, 0], doc[q, end] = doc[q, end], doc[q, 0]
            score[q, 0], score[q, end] = score[q, end], score[q, 0]
            _sink(doc[q], score[q], 0, end)


@compiled
def merge(doc_a, score_a, doc_b, score_b, doc, score):
    """Fill doc and score [queries, k] from two lists of each query; what is not filled stays."""
    for q in range(doc.shape[0]):
        a = b = 0
        for place in range(doc.shape[1]):
            has_a = a < doc_a.shape[1] and doc_a[q, a] >= 0
            has_b = b < doc_b.shape[1] and doc_b[q, b] >= 0
            if has_a and (not has_b or _ahead(score_a[q, a], doc_a[q, a], score_b[q, b], doc_b[q, b])):
                doc[q, place], score[q, place] = doc_a[q, a], score_a[q, a]
                a += 1
            elif has_b:
                doc[q, place], score[q, place] = doc_b[q, b], score_b[q, b]
                b += 1
            else:
                break


@compiled
def sum_units(first, last, q_start, q_unit, weight, start, member, removed, row, scale, doc, score, size):
    """Sum the weights of the units of queries first ... last - 1 by document, and offer the documents touched (lib.retrieval.postings.add)."""
    sums = np.zeros(len(removed), np.int64)
    touched = np.empty(len(removed), np.int32)
    for q in range(first, last):
        n = 0
        for i in range(q_start[q], q_start[q + 1]):
            unit = q_unit[i]
            for j in range(start[unit], start[unit + 1]):
                d = member[j]
                if sums[d] == 0:
                    touched[n] = d
                    n += 1
                sums[d] += weight[unit]
        for i in range(n):
            d = touched[i]
            if not removed[d]:
                size[q] = offer(doc[q], score[q], size[q], row + d, np.float32(sums[d]) * scale)
            sums[d] = 0


@compiled
def rescore(product, bound, query, vectors, row, doc, score, size):
    """Score in float64 and offer the documents whose fp32 product plus the bound reaches the k-th key (lib.retrieval.dense)."""
    for q in range(product.shape[0]):
        for i in range(product.shape[1]):
            if size[q] == doc.shape[1] and product[q, i] + bound[q] < score[q, 0]:
                continue
            exact = 0.0
            for j in range(query.shape[1]):
                exact += np.float64(query[q, j]) * np.float64(vectors[i, j])
            size[q] = offer(doc[q], score[q], size[q], row[i], np.float32(exact))
