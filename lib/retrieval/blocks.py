"""The block-major inverted file of one document part, and the exact search of it.

Documents that are not removed stand in blocks of 4,096. A block has a list of (document, term frequency) for each
word, 3 bytes a posting. For a search the lists become parts p = tf/(tf + norm) of BM25: float32 where a list is
short, and a row of a byte for each document where it is long (p rounded up to a multiple of 1/255).

Key of a document: sum over the query's words, ascending, of weight * p in float64, rounded to float32; then corpus row.

Certificate. Let u be 2^-24 and n the distinct words of the query. All terms are above 0 (at least 1e-20, far from
what float32 cannot hold), so sums of them in any order, with or without fused multiply-add, stay within a factor
1 +- (n + 5) u of the sum S of the rounded-up terms (Higham 2002, section 3.1; n - 1 additions, a product, the rounding
of weight and of p or of weight/255), and the float64 loop with its last rounding within 1 +- 2u of the true sum.
Rounding up adds at most the weights of long lists over 255. With the margin m = 2(n + 8) u, a float32 sum A says that the
key is at most A (1 + m) and at least A (1 - m) - (1 + m) sum(weights)/255. The k largest of these lower bounds, over the
documents met so far and the lists carried from other parts, give a threshold that only rises; a document whose upper
bound is below it cannot reach or tie the k-th key. A sub-block of 64 documents is left as soon as none of its sums,
with the largest bytes of the rows that are left, reaches the threshold. What stays is scored by the float64 loop.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lib.retrieval import block_kernels, kernels, parallel
from lib.retrieval.block_kernels import BLOCK, MANY, SUBS
from lib.retrieval.hits import Heap
from lib.retrieval.postings import Groups
from lib.retrieval.tokenizer import Counts

DENSE = 0.25  # a list of more than this share of a block's documents becomes a row
QUERIES = 8192  # that are searched together: 4 kB a query
_MOST = 2**20  # distinct words of a query up to which the margin is below 1/8
_ANY = 2.0**40  # the margin beyond: a sum is no less than its largest term, so that only a sum of 0 is let go, and infinity times 0 would be no number


class Blocks(NamedTuple):
    """One document part. Block b has the lists first[b] ... first[b + 1] - 1, and the documents base[b] ... base[b + 1] - 1 of `row`."""

    row: np.ndarray  # int32[documents], rows inside the part, ascending: the removed ones are left out
    length: np.ndarray  # int64[documents], in words
    first: np.ndarray  # int64[blocks + 1]
    base: np.ndarray  # int64[blocks + 1]
    word: np.ndarray  # int32[lists], ascending inside a block
    start: np.ndarray  # int64[lists + 1]
    doc: np.ndarray  # uint16[postings], places inside the block, ascending inside a list
    tf: np.ndarray  # uint8[postings], 255 for 255 and more
    many_at: np.ndarray  # int64, the postings whose tf is 255 or more, ascending
    many_tf: np.ndarray  # int32


class Ready(NamedTuple):
    """What a search reads of a part, for the words that it asks for; word w of theirs has number w here."""

    blocks: Blocks
    norm: np.ndarray  # float64[documents]
    entry: np.ndarray  # int32[blocks, words]: a list, or -2 - row for a long one, or -1
    part: np.ndarray  # float32[postings], of short lists
    rows: np.ndarray  # int64[blocks + 1], the long lists before each block
    bound: np.ndarray  # uint8, a block's rows sub-block by sub-block: [64, rows, 64]
    dense_tf: np.ndarray  # uint8, a block's rows document by document: [4096, rows]
    largest: np.ndarray  # uint8[rows, 64], the largest byte of each sub-block
    dense_list: np.ndarray  # int64[rows], the list of each row


def invert(counts: Counts, words: int, removed: np.ndarray) -> Blocks:
    """The blocks of counted texts; the words of a text ascend."""
    live = np.flatnonzero(~removed)
    blocks = -(-len(live) // BLOCK)
    size = int(np.diff(counts.start)[live].sum())
    first, base = np.zeros(blocks + 1, np.int64), np.zeros(blocks + 1, np.int64)
    word, start = np.empty(min(size, blocks * words), np.int32), np.empty(min(size, blocks * words) + 1, np.int64)
    doc, tf = np.empty(size, np.uint16), np.empty(size, np.uint8)
    lists, many = block_kernels.invert(counts.start, counts.word, counts.count, live, words, first, base, word, start, doc, tf)
    at, number = np.empty(many, np.int64), np.empty(many, np.int32)
    if many:
        block_kernels.apart(counts.start, counts.word, counts.count, live, first, word[:lists], start[: lists + 1], doc, at, number)
    order = np.argsort(at)
    row, length = live.astype(np.int32), counts.length[live]
    return Blocks(row, length, first, base, word[:lists].copy(), start[: lists + 1].copy(), doc, tf, at[order], number[order])


def joined(parts: Sequence[Blocks], rows: Sequence[int]) -> Blocks:
    """Several parts as one; `rows` are the first rows of the parts."""

    def ends(columns: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.zeros(1, np.int64), *(column[1:] + before for column, before in zip(columns, _before(columns), strict=True))])

    if len(parts) == 1 and rows[0] == 0:
        return parts[0]
    row = np.concatenate([np.empty(0, np.int32), *(part.row + np.int32(first) for part, first in zip(parts, rows, strict=True))])
    many_at = [part.many_at + before for part, before in zip(parts, _before([part.start for part in parts]), strict=True)]
    plain = {
        name: np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in {"length": np.int64, "word": np.int32, "doc": np.uint16, "tf": np.uint8, "many_tf": np.int32}.items()
    }
    stacked = {name: ends([getattr(part, name) for part in parts]) for name in ("first", "base", "start")}
    return Blocks(row=row, many_at=np.concatenate([np.empty(0, np.int64), *many_at]), **plain, **stacked)


def _before(columns: list[np.ndarray]) -> np.ndarray:
    """What the parts before each hold."""
    return np.cumsum([0, *(column[-1] for column in columns)])[:-1]


def ready(blocks: Blocks, words: np.ndarray, size: int, norm: np.ndarray) -> Ready:
    """Make a part ready for queries that hold no other than these of `size` words (int, ascending); `norm` goes with its documents."""
    local = np.full(size, -1, np.int32)
    local[words] = np.arange(len(words), dtype=np.int32)
    least, count = int(DENSE * BLOCK) + 1, len(blocks.first) - 1
    rows = np.zeros(count + 1, np.int64)
    block_kernels.dense_rows(blocks.first, blocks.word, blocks.start, local, least, rows)
    rows = np.cumsum(rows)
    made = Ready(
        blocks, norm, np.full((count, len(words)), -1, np.int32), np.empty(len(blocks.doc), np.float32), rows,
        np.zeros(rows[-1] * BLOCK, np.uint8), np.zeros(rows[-1] * BLOCK, np.uint8), np.zeros((rows[-1], SUBS), np.uint8), np.zeros(rows[-1], np.int64),
    )
    block_kernels.expand(
        blocks.first, blocks.base, blocks.word, blocks.start, blocks.doc, blocks.tf, blocks.many_at, blocks.many_tf, local, least, norm,
        rows, made.entry, made.part, made.bound, made.dense_tf, made.largest, made.dense_list,
    )
    return made


def add(best: Heap, part: Ready, queries: Groups, weight: np.ndarray, heaviest: np.ndarray, row: int = 0, threads: int = 1) -> None:
    """Put the documents of a part into the heaps, `row` is the corpus row of its first.

    `queries` groups words of `ready` by query, ascending, and `weight` (float64, above 0) goes with `queries.member`.
    `heaviest` has the places of each query's words by weight: dense rows are read in this order, so that what is left is small.
    """
    k, blocks = best.doc.shape[1], part.blocks
    distinct = np.diff(queries.start)
    margin = np.where(distinct <= _MOST, (distinct + 8) * 2.0**-23, _ANY).astype(np.float32)
    room = 2 * k + 56

    def some(first: int, last: int) -> None:
        n, mine = last - first, slice(first, last)
        lowest = np.full((n, k + 1), np.inf, np.float32)
        lowest[:, :k] = np.sort(np.maximum(best.score[mine], 0), axis=1)  # ascending, it is a heap; 0 where a list is not full
        found, high, score = np.empty((n, room), np.int32), np.empty((n, room), np.float32), np.empty((n, room), np.float32)
        size = np.zeros(n, np.int32)
        block_kernels.search(
            queries.start[first : last + 1], queries.member, weight, heaviest, margin[mine], k,
            blocks.base, blocks.start, blocks.doc, blocks.tf, blocks.many_at, blocks.many_tf, part.entry, part.part, part.rows, part.bound,
            part.dense_tf, part.largest, part.dense_list, part.norm, lowest, found, high, score, size,
        )
        kernels.offer_all(found, score, size, blocks.row, row, best.doc[mine], best.score[mine], best.size[mine])

    def one_range(first: int, last: int) -> None:
        for at in range(first, last, QUERIES):
            some(at, min(at + QUERIES, last))

    if len(blocks.row):
        parallel.in_ranges(one_range, len(best.size), threads)
