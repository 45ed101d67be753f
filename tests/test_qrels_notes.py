"""A hop is skipped only by a note that says, as a whole, that it is not needed: everything else that touches the subject asks."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.qrels.notes import note_class

SKIP = [
    "not needed", "Not needed.", "NOT NEEDED", "This hop is not needed.", "This hop isn\u2019t needed",
    "it is not needed", "the hop is not required", "no longer necessary", "This hop is no longer needed", "unnecessary",
    "this is unnecessary", "unneeded", "not required for the answer", "not needed to answer the question",
    "not needed for the final answer", "not needed anymore", "not needed any more", "not necessary at all",
    "can be skipped", "This hop can be skipped.", "it should be dropped", "skip", "Skip.", "skip this hop",
    "please skip", "omit", "redundant", "This sub-question is redundant.", "superfluous", "no need for this hop",
    "there is no need for this hop", "It's not needed", "can be left out",
]
LIVE = [
    None, "", " ", "\u00a0\n", ".", "...", "Wrong year in the excerpt.", "The page names another film",
    "see document 3", "checked twice", "see G\u00f6del's paper, with \u03b1 = 2", "needle in a haystack",
    "still needed", "needed", "This hop is still needed.", "required for the answer", "do not skip",
    "Don\u2019t skip this hop", "never omit", "cannot be skipped", "must not be dropped", "keep", "keep this hop",
    "not redundant", "it isn't superfluous", "essential",
]
ASK = [
    "not needed?", "not needed ?", "Is this not needed", "not needed, but keep", "I first thought not needed",
    "it is not true that it is not needed", "not needed for hop 2", "hop 2 is not needed", "hop 2 not needed",
    '"not needed"', "\u201cnot needed\u201d", "'not needed'", "(not needed)", "not needed; see the comment",
    "not needed if hop 1 holds", "maybe not needed", "probably unnecessary", "not not needed", "not unnecessary",
    "not needed - really", "Not needed. Or is it", "may be skipped", "was not needed", "skip?", "skip to hop 3",
    "skip hop 2", "skip the first document", "not needed 2", "no need", "no, not needed", "not neded", "not requird",
    "unecessary", "needed?", "needed, I think", "don't skip?", "keep in mind that the year is off", "nicht n\u00f6tig",
    "nicht noetig", "\u00fcberfl\u00fcssig", "pas n\u00e9cessaire", "inutile", "no hace falta", "non serve",
    "niet nodig", "\u4e0d\u9700\u8981", "\u5426", "\u043d\u0435 \u043d\u0443\u0436\u043d\u043e",
    "\u03b4\u03b5\u03bd \u03c7\u03c1\u03b5\u03b9\u03ac\u03b6\u03b5\u03c4\u03b1\u03b9", "n\u043et needed",
    "n\u0336o\u0336t\u0336 n\u0336e\u0336e\u0336d\u0336e\u0336d\u0336", "n/a", "irrelevant", "?", "\u00ac needed",
    "not needed \U0001f44d", "not needed\nfor hop 2", "not needed\uff1f", "not needed\u203d", "n'est pas utile",
    "drop the", "skip the", "\u00d3rale.",
]


@pytest.mark.parametrize("note", SKIP)
def test_a_note_that_says_not_needed_and_nothing_else_skips(note):
    assert note_class(note) == "skip"


@pytest.mark.parametrize("note", LIVE)
def test_a_blank_a_note_about_something_else_and_the_opposite_are_live(note):
    assert note_class(note) == "live"


@pytest.mark.parametrize("note", ASK)
def test_whatever_else_touches_the_subject_asks(note):
    assert note_class(note) == "ask"


PHRASE = st.sampled_from(SKIP)
WORDS = st.lists(st.sampled_from("I think hop 2 but maybe not true was said never if unless document see d1 or".split()), min_size=1, max_size=4)
MARKS = st.sampled_from(["?", " ?", "\uff1f", "\u061f", '"', "'", ")", ":", ";", ",", "-", "/", "\u2026 or", "~"])


@given(PHRASE, WORDS, st.booleans())
@example("skip.", ["hop", "2"], False)
def test_a_skip_phrase_inside_a_longer_sentence_never_skips(phrase, words, before):
    other = " ".join(words)
    longer = f"{other} {phrase}" if before else f"{phrase.rstrip('.')} {other}"
    assert note_class(longer) != "skip"


@given(PHRASE, MARKS)
def test_a_skip_phrase_with_a_mark_of_doubt_or_quotation_asks(phrase, mark):
    assert note_class(phrase.rstrip(".") + mark) == "ask"
    if mark.strip() in ('"', "'"):
        assert note_class(mark + phrase + mark) == "ask"


@given(PHRASE, st.sampled_from([
    str.upper, str.title, str.lower, lambda text: text.replace(" ", "\u00a0\n"), lambda text: "\ufeff" + "\u200b".join(text),
    lambda text: f"  {text}\t", lambda text: text + "..", lambda text: text + " \u2026",
    lambda text: "".join(chr(ord(one) + 0xFEE0) if one.isalpha() and one.isascii() else one for one in text),  # full width
]))
def test_case_white_space_width_and_dots_at_the_end_do_not_count(phrase, written):
    assert note_class(written(phrase)) == "skip"


@given(st.text())
@example("\u0345")
def test_any_text_has_one_of_three_classes(note):
    assert note_class(note) in ("skip", "live", "ask")
    if note_class(note) == "skip":
        assert note_class(f"{note}?") == "ask" and note_class(f"not that {note}") == "ask" and note_class(f"{note} but read it") == "ask"
