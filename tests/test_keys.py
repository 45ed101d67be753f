"""Pairs as keys beside plain sets of tuples."""

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from lib import keys

ROW = st.integers(0, 2**31 - 1)
PAIRS = st.lists(st.tuples(st.integers(0, 3) | ROW, st.integers(0, 3) | ROW), max_size=30)


def of(pairs) -> np.ndarray:
    return keys.of(pa.table({name: pa.array([pair[i] for pair in pairs], pa.int32()) for i, name in enumerate(("query", "doc"))}))


@given(PAIRS, PAIRS)
@example([], [])
@example([(0, 2**31 - 1), (1, 0)], [(1, 0)])  # the last document of a query stands before the next query's first
def test_keys_are_ordered_and_told_apart_as_pairs_are(some, known):
    found, others = of(some), of(known)
    assert [(key >> 32, key & 0xFFFFFFFF) for key in keys.distinct(found).tolist()] == sorted(set(some))
    assert [(key >> 32, key & 0xFFFFFFFF) for key in keys.repeated(found).tolist()] == sorted({pair for pair in some if some.count(pair) > 1})
    assert keys.inside(found, np.sort(others)).tolist() == [pair in set(known) for pair in some]


@given(st.lists(st.lists(st.integers(-1, 5), min_size=4, max_size=4), max_size=5))
def test_the_pairs_of_lists_are_those_of_their_filled_places(docs):
    query = np.arange(7, 7 + len(docs), dtype=np.int32)
    found = keys.listed(query, np.array(docs, np.int32).reshape(len(docs), 4))
    assert found.tolist() == sorted({q << 32 | doc for q, row in zip(query.tolist(), docs, strict=True) for doc in row if doc >= 0})


def test_errors_name_ten_pairs_in_their_order():
    assert keys.first_ten(of([(1, 5), (0, 7)])) == "query 0 document 7, query 1 document 5"
    assert keys.first_ten(of([(0, doc) for doc in range(30)])).endswith("query 0 document 9")


def test_a_grid_of_pairs_keeps_its_shape():
    wanted = keys.of_pairs(np.array([[0], [1]], np.int32), np.array([[1, 2], [3, 4]], np.int32))
    assert keys.inside(wanted, of([(0, 2), (1, 3)])).tolist() == [[False, True], [True, False]]
    assert keys.inside(wanted, np.zeros(0, np.int64)).shape == (2, 2)
    assert wanted.dtype == np.int64 and wanted[1, 1] == (1 << 32) + 4
