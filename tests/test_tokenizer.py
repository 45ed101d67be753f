"""The byte tokenizer beside the regular expression over `str.lower()`, for every code point."""

import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib import text
from lib.retrieval import tokenizer, vocabulary_kernels


def split(texts) -> list[list[str]]:
    """The words of each text, read with a vocabulary of all of them."""
    read = tokenizer.of(texts)
    known = tokenizer.vocabulary(read)
    number, length = tokenizer.words(read, known)
    assert (number >= 0).all() and length.sum() == len(number) and (tokenizer.lengths(read) == length).all()
    names = tokenizer.listed(known)
    assert names == sorted(set(names))
    return [[names[n] for n in part] for part in np.split(number, np.cumsum(length)[:-1])] if len(length) else []


def test_every_code_point_before_after_and_between_letters():
    points = range(sys.maxunicode + 1)
    for first in range(0, len(points), 1 << 17):
        texts = ["".join((c, " a", c, "B ", c, "z", c, " 9", c)) for c in map(chr, points[first : first + (1 << 17)])]
        read = tokenizer.of(texts)
        expected = [text.tokens(one) for one in texts]
        known = tokenizer.of_words(sorted({word for words in expected for word in words}))
        names = tokenizer.listed(known)
        number, length = tokenizer.words(read, known)
        assert length.tolist() == [len(words) for words in expected]
        assert [names[n] for n in number] == [word for words in expected for word in words]


nasty = st.lists(st.sampled_from(["a", "Z", "0", " ", "\u0130", "\u212a", "\u0307", "\u03a3", "\u00e9", "\U0001d400", "\ud800", "\0", "\u0131", "abcdefgh", "abcdefghI"]), max_size=12)
words = st.one_of(nasty.map("".join), st.text(max_size=30))


@settings(max_examples=300, deadline=None)
@given(st.lists(words, max_size=6))
@example([])
@example(["", "", "a"])
@example(["\u0130stanbul", "\u0130", "i\u0130i", "\u212a\u212a", "a\u212a\u0130\u212a"])
@example(["abcdefgh", "abcdefgh\u212a", "ABCDEFGHK", "abcdefghk" * 3, "x" * 100, "abcdefg\u0130x"])
@example(["\ud83d", "\ude00", "a\ud800b"])
def test_equals_the_tokens_of_the_lowered_text(texts):
    assert split(texts) == [text.tokens(one) for one in texts]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_arrow_texts_are_read_where_they_lie(kind):
    texts = ["Let f", "", "be \u0130 x\u212a", "end"]
    array = pa.array(texts, kind)
    expected = [text.tokens(one) for one in texts]
    assert split(array) == expected and split(array[1:]) == expected[1:] and split(array[1:3]) == expected[1:3]
    assert split(pa.chunked_array([array, array[2:], array[:0]])) == expected + expected[2:]
    assert split(pa.chunked_array([array])) == expected and split(pa.chunked_array([], kind)) == [] and split(array[:0]) == []
    if kind != pa.string_view():
        read = tokenizer.of(array)
        assert read.data.ctypes.data == array.buffers()[2].address


def test_a_null_is_refused_with_its_row():
    with pytest.raises(ValueError, match="row 1 of the texts is null; an empty text is ''"):
        tokenizer.of(pa.array(["a", None]))
    with pytest.raises(ValueError, match="row 1 of the texts is None; a text is a str, an empty one is ''"):
        tokenizer.of(["a", None])


@settings(max_examples=200, deadline=None)
@given(st.lists(words, max_size=6), st.lists(words, max_size=3))
@example(["a a b", "", "c"], ["b a"])
@example(["abcdefghij abcdefghik"], ["abcdefghik"])
def test_words_outside_the_vocabulary_have_no_number_and_counts_leave_them_out(texts, queries):
    known, read = tokenizer.vocabulary(tokenizer.of(queries)), tokenizer.of(texts)
    names = {word: n for n, word in enumerate(sorted({word for query in queries for word in text.tokens(query)}))}
    assert tokenizer.listed(known) == list(names)
    number, length = tokenizer.words(read, known)
    assert number.tolist() == [names.get(word, -1) for one in texts for word in text.tokens(one)]
    counted = tokenizer.counts(read, known)
    assert counted.length.tolist() == length.tolist() == [len(text.tokens(one)) for one in texts]
    for i, one in enumerate(texts):
        here = slice(counted.start[i], counted.start[i + 1])
        expected = Counter(names[word] for word in text.tokens(one) if word in names)
        assert list(zip(counted.word[here].tolist(), counted.count[here].tolist(), strict=True)) == sorted(expected.items())


def test_words_of_one_key_are_told_apart_by_their_bytes():
    known = tokenizer.of_words(["abcdefghij", "abcdefghik"])
    key = known.slot_key[np.flatnonzero((known.slot_key > 0) & (known.slot_word == 1))[0]]
    slots = np.zeros_like(known.slot_key), np.zeros_like(known.slot_word)
    for number in (0, 1):  # both words under the key of the second, the first where the search begins
        at = (vocabulary_kernels.home(key, len(slots[0])) + number) % len(slots[0])
        slots[0][at], slots[1][at] = key, number
    number, _ = tokenizer.words(tokenizer.of(["abcdefghik"]), known._replace(slot_key=slots[0], slot_word=slots[1]))
    assert number.tolist() == [1]


@pytest.mark.parametrize("block", [1, 7, 64, 500])
def test_blocks_change_nothing(block, monkeypatch):
    texts = ["let f be a function", "", "\u212aelvin " * 30, "x" * 200, "", "a\u0130b", "end " * 70]
    known = tokenizer.vocabulary(tokenizer.of(texts))
    whole = tokenizer.words(tokenizer.of(texts), known), tokenizer.counts(tokenizer.of(texts), known)
    monkeypatch.setattr(tokenizer, "BLOCK", block)
    again = tokenizer.vocabulary(tokenizer.of(texts))
    parts = tokenizer.words(tokenizer.of(texts), again), tokenizer.counts(tokenizer.of(texts), again)
    for one, other in zip((*whole[0], *whole[1], *known), (*parts[0], *parts[1], *again), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(list(tokenizer.read(tokenizer.of(texts)))) > 1
    for threads in (2, 3):
        known, number, length = tokenizer.numbered(tokenizer.of(texts), threads)
        spelled = [tokenizer.listed(known)[one] for one in number]
        assert spelled == [word for one in texts for word in text.tokens(one)] and length.tolist() == [len(text.tokens(one)) for one in texts]


@pytest.mark.parametrize("words", [["a", "b", "b"], ["b", "a"], ["a b"], [""]])
def test_what_is_no_vocabulary_is_refused(words):
    with pytest.raises(ValueError, match=f"{len(words)} words are no vocabulary; its words are lowered, distinct and ascending by bytes"):
        tokenizer.of_words(words)


def test_a_vocabulary_grows_with_its_words():
    texts = [" ".join(f"w{n}" for n in range(first, first + 1000)) for first in range(0, 30_000, 1000)] + ["x" * 100_000]
    known = tokenizer.vocabulary(tokenizer.of(texts))
    assert known.size == 30_001 and tokenizer.words(tokenizer.of(texts), known)[0].min() == 0
    assert tokenizer.listed(known) == sorted({word for one in texts for word in one.split()})


def test_long_words_that_begin_alike_are_numbered_in_the_order_of_their_bytes():
    names = ["function", "functional", "functionals", "functor", "functionally", "function0", "f", "functio"]
    known = tokenizer.vocabulary(tokenizer.of([" ".join(names[::-1]), " ".join(names)]))
    assert tokenizer.listed(known) == sorted(names)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_a_vocabulary_is_the_same_whatever_the_threads(threads):
    texts = tokenizer.of([" ".join(f"w{(70 * first + n) % 997}" for n in range(90)) for first in range(40)] + ["", "functionals functional"])
    one, several = tokenizer.vocabulary(texts), tokenizer.vocabulary(texts, threads)
    assert one.size == 999 and tokenizer.listed(one) == tokenizer.listed(several) == sorted(tokenizer.listed(one))
    for known in (one, several):
        assert tokenizer.words(texts, known)[0].tolist() == tokenizer.words(texts, one)[0].tolist()
