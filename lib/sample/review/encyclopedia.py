"""Pages of an invented encyclopaedia, and the edits that make near copies of them.

A page is a title and sentences in paragraphs. What it states of a question follows from its text: a fact is stated by one
of its sentences, whole, and by nothing else; all other sentences are colour that no two pages share by more than chance.
"""

import re
import textwrap
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random

from lib import text
from lib.sample.review.chains import word

_WHEN = (
    "In the spring of {year},", "Until {year},", "From {year} on,", "By {year},", "For {n} years", "Late in {year}", "Twice in {year}",
    "Every {n} years",
)
_WHO = (
    "the {job} {name}", "a {job} from {name}", "the {job}s' guild of {name}", "the widow of a {job}", "{name} the younger",
    "the parish of {name}", "a {adj} {job}", "two brothers named {name}", "the {adj} council of {name}", "an envoy of {name}",
)
_DID = (
    "kept", "sold", "described", "restored", "counted", "drew", "lent out", "inherited", "catalogued", "lost", "rebuilt", "photographed",
    "gave away", "measured", "guarded", "painted over", "repaired", "disputed",
)
_WHAT = (
    "{n} {adj} {thing}s", "the {adj} {thing} of {name}", "a {thing} and {n} {other}s", "every {thing} near {name}",
    "the {thing}s in the {adj} hall", "a {adj} {thing} with a {other}", "some {n} pages on the {thing}", "the oldest {thing} of the {job}s",
)
_END = (
    "at the market of {name}", "for {n} crowns", "despite the {adj} weather", "as {name} noted in {year}", "beside the {other}",
    "with the help of a {job}", "before the {adj} fire", "on the road to {name}", "to the joy of the {job}s", "and said so in a {adj} letter",
)
_JOBS = "miller printer ferryman weaver surveyor organist glazier baker tutor clerk shepherd cooper notary gardener smith apothecary".split()
_ADJECTIVES = "narrow silver northern quiet copper early crooked marble grey famous wooden lesser painted former hollow western amber plain".split()
_THINGS = "lantern map bell orchard ledger staircase loom chapel gate barge herbarium sundial granary mural seal archive clock harp kiln meadow".split()
_HEADINGS = "History,Name,Reception,Surroundings,Legacy,Collections,In later years,Sources,Local custom,Buildings".split(",")
PARAGRAPH = 5  # sentences


@dataclass(frozen=True)
class Page:
    """A page: its sentences in order, and the (qid, hop) pairs that they state."""

    title: str
    sentences: tuple[str, ...]
    facts: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    wrapped: bool = False  # lines of at most 72 characters, so that a sentence runs over a line's end

    @property
    def text(self) -> str:
        paragraphs = [" ".join(self.sentences[i : i + PARAGRAPH]) for i in range(0, len(self.sentences), PARAGRAPH)]
        if self.wrapped:
            paragraphs = [textwrap.fill(paragraph, 72, break_long_words=False, break_on_hyphens=False) for paragraph in paragraphs]
        return "\n\n".join([self.title, *paragraphs]) + "\n"

    @cached_property
    def grams(self) -> set[tuple[str, ...]]:
        return text.grams(text.tokens(self.text))


def colour(rng: Random) -> str:
    """One sentence that states nothing of any question."""
    parts = [rng.choice(_WHEN), rng.choice(_WHO), rng.choice(_DID), rng.choice(_WHAT), rng.choice(_END)]
    thing, other = rng.sample(_THINGS, 2)
    said = [part.format(year=rng.randint(1701, 1899), n=rng.randint(3, 97), name=word(rng), job=rng.choice(_JOBS),
                        adj=rng.choice(_ADJECTIVES), thing=thing, other=other) for part in parts]
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", " ".join(said)) + "."


def page(rng: Random, title: str, sentences: list[str], facts: set[tuple[str, int]] = frozenset(), length: int = 24,
         start: int = 0, wrapped: bool = False) -> Page:
    """A page of `length` sentences about `title`: the given ones in their order, from place `start` on, amid colour."""
    about = f"{title} is the subject of {rng.randint(3, 60)} entries in the {rng.choice(_ADJECTIVES)} {rng.choice(_THINGS)} of {word(rng)}."
    made = [about, *(colour(rng) for _ in range(length - 1 - len(sentences)))]
    places = sorted(rng.sample(range(max(start, 1), len(made) + 1), len(sentences)))
    for shift, (place, sentence) in enumerate(zip(places, sentences, strict=True)):
        made.insert(place + shift, sentence)
    return Page(f"{title} ({rng.choice(_HEADINGS)})", tuple(made), frozenset(facts), wrapped)


def jaccard(a: Page, b: Page) -> float:
    """The Jaccard similarity of the pages' sets of word 5-grams."""
    left, right = a.grams, b.grams
    return len(left & right) / len(left | right)


def without(a_page: Page, sentence: str, fact: tuple[str, int]) -> Page:
    """The page without a sentence and the fact that it stated."""
    return replace(a_page, sentences=tuple(s for s in a_page.sentences if s != sentence), facts=a_page.facts - {fact})


def exchanged(a_page: Page, sentence: str, by: str) -> Page:
    """The page with one sentence in another's place; the facts stay as they are named."""
    return replace(a_page, sentences=tuple(by if s == sentence else s for s in a_page.sentences))


def joined(rng: Random, a_page: Page, sentence: str, fact: tuple[str, int]) -> Page:
    """The page with one more sentence, anywhere after the first, and the fact that it states."""
    place = rng.randint(1, len(a_page.sentences))
    return replace(a_page, sentences=(*a_page.sentences[:place], sentence, *a_page.sentences[place:]), facts=a_page.facts | {fact})


def edited(rng: Random, a_page: Page, parent: Page, kept: set[str], most: float, least: float = 0.7) -> Page:
    """The page with colour exchanged, never a `kept` sentence, until it is at most `most` like the parent and still `least`.

    A sentence is exchanged whole, or in its last words where the whole would be too much. ValueError where neither lands
    between the two.
    """
    free = [i for i, sentence in enumerate(a_page.sentences) if sentence not in kept and i > 0]
    rng.shuffle(free)
    found, likeness = a_page, jaccard(parent, a_page)
    for i in free:
        if likeness <= most:
            break
        old, new = found.sentences[i], colour(rng)
        for tried in (new, " ".join([*old.split()[:-4], *new.split()[-4:]])):
            exchange = exchanged(found, old, tried)
            if (measured := jaccard(parent, exchange)) >= least:
                found, likeness = exchange, measured
                break
    if not least <= likeness <= most:
        raise ValueError(f"no edit of the page {a_page.title!r} is between {least} and {most} like its parent; "
                         "take a longer page or a wider range")
    return found
