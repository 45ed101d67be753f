"""The one tokenizer of the lexical routes."""

import hashlib
import json
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib import paths, text

CASE_04 = json.loads((paths.ROOT / "tests/cases/04-tokens-are-lowercase-ascii-runs.json").read_text())
LEGAL = set("abcdefghijklmnopqrstuvwxyz0123456789")


def slow_tokens(value: str) -> list[str]:
    """Character by character."""
    found, open_run = [], False
    for character in value.lower():
        if character in LEGAL:
            if open_run:
                found[-1] += character
            else:
                found.append(character)
        open_run = character in LEGAL
    return found


@pytest.mark.parametrize("value", CASE_04["input"]["texts"])
def test_case_04_tokens_are_the_runs_of_the_lowercased_text(value):
    assert text.tokens(value) == CASE_04["right_answer"]["tokens"][value]


@given(st.text())
@example("\u0130stanbul \u212aelvin")
@example("x\u0661\u00b2_y\n9Z")
def test_tokens_are_what_the_slow_loop_finds(value):
    assert text.tokens(value) == slow_tokens(value)


def test_of_all_characters_only_two_foreign_ones_lower_into_a_token():
    foreign = {chr(n) for n in range(128, sys.maxunicode + 1) if text.tokens(chr(n))}
    assert foreign == {"\u0130", "\u212a"}
    assert text.tokens("\u0130") == ["i"] and text.tokens("\u212a") == ["k"]


def test_grams_are_distinct_word_runs_and_a_short_text_has_none():
    words = "a b c d e f a b c d e".split()
    assert text.grams(words) == {tuple("abcde"), tuple("bcdef"), tuple("cdefa"), tuple("defab"), tuple("efabc"), tuple("fabcd")}
    assert text.grams(words[:4]) == set() and text.grams([]) == set()
    assert text.grams(["x", "x", "x"], n=1) == {("x",)}


@given(st.lists(st.sampled_from("ab"), max_size=12), st.integers(1, 6))
def test_grams_equal_the_slices_of_every_start(words, n):
    assert text.grams(words, n) == {tuple(words[i : i + n]) for i in range(len(words)) if len(words[i : i + n]) == n}


def test_the_hash_of_a_text_is_that_of_its_utf8_bytes():
    assert text.sha256("\u00df") == hashlib.sha256(b"\xc3\x9f").hexdigest()
    assert text.sha256("\u00e9") != text.sha256("e\u0301")
