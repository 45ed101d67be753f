"""Who stands where in the planted world before the rows are shuffled: kits, handbook pages, background."""

from random import Random
from typing import NamedTuple

from lib.sample import pages
from lib.sample.draft import Draft, Problem, any_problem
from lib.sample.families import FAMILIES

ALWAYS = ("source", "full_solution", "lemma")
# kind -> chance that a query has the page; otherwise its place goes to background
SOMETIMES = (("semantic_only", 0.5), ("lexical_only", 0.5), ("method", 0.9), ("subcase", 0.9), ("lemma", 0.5),
             ("method", 0.5), ("subcase", 0.5), ("near_copy", 0.9), ("exact_copy", 0.8), ("changed_condition", 0.9),
             ("changed_condition", 0.9), ("no_answer", 0.8), ("major_error", 0.9), ("unverifiable", 0.8),
             ("exercises", 0.7), ("long_late", 0.75), ("booklet", 0.4), ("full_solution", 0.8), ("full_solution", 0.6),
             ("full_solution", 0.4))
KIT_SHARE = 0.7  # of the documents, at most
BLOCK = 12  # background pages, of which two are copies of others
# kind of a background page -> weight; "solved" and "notes" are single problems and long pages
BACKGROUND = (("solved", 38), ("lemma", 6), ("method", 6), ("subcase", 6), ("notes", 9), ("booklet", 6),
              ("exercises", 7), ("topic", 5), ("no_answer", 7), ("major_error", 4), ("unverifiable", 3),
              ("changed_condition", 3))
# background pages of these kinds are called so, others distractors
PLAIN_KINDS = ("booklet", "exercises", "topic", "no_answer", "major_error", "unverifiable", "changed_condition")


class World(NamedTuple):
    """The three numbers that everything follows from."""

    seed: int
    queries: int
    documents: int

    def rng(self, purpose: str, number: int) -> Random:
        """The random stream of one thing of the world."""
        return Random(f"{self.seed}:{purpose}:{number}")

    @property
    def kit(self) -> int:
        """Pages reserved for each query."""
        room = int(KIT_SHARE * (self.documents - len(FAMILIES)) / self.queries)
        return min(len(ALWAYS) + len(SOMETIMES), room)

    @property
    def key(self) -> str:
        return f"{self.seed}:{self.queries}:{self.documents}"


def asked(world: World, i: int) -> tuple[Problem, tuple[str, int], Random]:
    """The problem of query i, the wording it is asked in, and the stream that goes on from there."""
    rng = world.rng("query", i)
    p = any_problem(rng)
    return p, pages.a_wording(rng, p), rng


def has_source(world: World, i: int) -> bool:
    """Whether query i has a page of its own; one in a hundred has none."""
    return world.rng("has source", i).random() >= 0.01


def page(world: World, slot: int) -> tuple[str, str, Draft]:
    """Kind, family and text of the page in a slot: first the kits, query by query, then a page a family, then the rest."""
    i, place = divmod(slot, world.kit)
    beyond = slot - world.queries * world.kit
    if beyond < 0:
        kind = _kit_kind(world, i, place)
        # a kit place given up is background like the third page of a block, which nothing copies
        return _background_page(world, slot, 2) if kind == "background" else (kind, *_kit_page(world, i, place, kind))
    if beyond < len(FAMILIES):
        family = list(FAMILIES.values())[beyond]
        return "method", family.name, pages.general_method(family)
    return _background_page(world, slot, (beyond - len(FAMILIES)) % BLOCK)


def _kit_kind(world: World, i: int, place: int) -> str:
    """The kind at a place of a query's kit; a kit too small for all keeps a random part of the kinds after `ALWAYS`."""
    if place < len(ALWAYS):
        return ALWAYS[place] if place or has_source(world, i) else "background"
    rng = world.rng("kit", i)
    kinds = rng.sample(SOMETIMES, len(SOMETIMES)) if world.kit < len(ALWAYS) + len(SOMETIMES) else SOMETIMES
    kind, chance = kinds[place - len(ALWAYS)]
    return kind if world.rng("chance", i * world.kit + place).random() < chance else "background"


def _kit_page(world: World, i: int, place: int, kind: str) -> tuple[str, Draft]:
    p, wording, _ = asked(world, i)
    slot = i * world.kit + place
    rng = world.rng("page", slot)
    if kind == "exact_copy":
        place = rng.choice((1, 2))
        return _kit_page(world, i, place, ALWAYS[place])
    if kind == "near_copy":
        return p.family.name, pages.solved(world.rng("page", i * world.kit + 1), p, but=wording, deciding=False)
    if kind == "source":
        return p.family.name, pages.source(rng, p, wording)
    if kind == "full_solution":
        first = place < len(ALWAYS)  # the first is retold, further ones may ask in the query's own wording
        return p.family.name, pages.solved(rng, p, but=wording) if first else pages.solved(rng, p, rng.choice(("other", "terse")))
    if kind == "booklet":
        beside = asked(world, (i + 1) % world.queries)[0]
        problems = [p, beside, *(any_problem(rng) for _ in range(rng.randint(1, 3)))]
        return "mixed", pages.booklet(rng, rng.sample(problems, len(problems)))
    return p.family.name, _about(rng, p, kind)


def _about(rng: Random, p: Problem, kind: str) -> Draft:
    """The page of a kind that needs nothing but its problem."""
    if kind in ("lemma", "method", "subcase"):
        return pages.helping(rng, p, kind)
    return {"semantic_only": pages.semantic_only, "lexical_only": pages.lexical_only, "exercises": pages.exercises,
            "changed_condition": pages.changed_condition, "no_answer": pages.no_answer, "topic": pages.topic,
            "major_error": pages.major_error, "unverifiable": pages.unverifiable,
            "long_late": pages.long_late}[kind](rng, p)


def _background_page(world: World, slot: int, place: int) -> tuple[str, str, Draft]:
    """A page about problems that no query asks; in a block the last copies the first and the one before it the second."""
    if place == BLOCK - 1:
        return "exact_copy", *_background_page(world, slot - place, 0)[1:]
    if place == BLOCK - 2:
        return _background_solved(world, slot - place + 1, deciding=False)
    if place == 1:
        return _background_solved(world, slot)
    rng = world.rng("page", slot)
    kinds, weights = zip(*BACKGROUND, strict=True)
    kind = rng.choices(kinds, weights)[0]
    p = any_problem(rng)
    if kind == "booklet":
        problems = [p, *(any_problem(rng) for _ in range(rng.randint(2, 5)))]
        return kind, "mixed", pages.booklet(rng, problems)
    if kind == "solved":
        draft = pages.solved(rng, p, rng.choice(("solution", "solution", "other", "terse")))
    else:
        draft = _about(rng, p, "long_late" if kind == "notes" else kind)
    return kind if kind in PLAIN_KINDS else "distractor", p.family.name, draft


def _background_solved(world: World, slot: int, deciding: bool = True) -> tuple[str, str, Draft]:
    rng = world.rng("page", slot)
    p = any_problem(rng)
    return "distractor" if deciding else "near_copy", p.family.name, pages.solved(rng, p, "solution", deciding=deciding)
