"""The planted world: mathematics questions and pages whose true labels follow from how they were made.

What a document is depends on the seed, the two sizes and its row alone, so any number of them streams in constant
memory. Each query owns a kit of pages; one handbook page belongs to each family; all other pages are background
about problems that nobody asks. A keyed permutation of the rows hides who is who.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from lib.sample import pages
from lib.sample.draft import Draft, Problem, any_problem
from lib.sample.families import FAMILIES
from lib.sample.permutation import backward, forward
from lib.sample.questions import damaged, question

ALWAYS = ("source", "full_solution", "lemma")
# kind -> chance that a query has the page; otherwise its place goes to background
SOMETIMES = (("semantic_only", 0.5), ("lexical_only", 0.5), ("method", 0.9), ("subcase", 0.9), ("lemma", 0.5),
             ("method", 0.5), ("subcase", 0.5), ("near_copy", 0.9), ("exact_copy", 0.8), ("changed_condition", 0.9),
             ("changed_condition", 0.9), ("no_answer", 0.8), ("major_error", 0.9), ("unverifiable", 0.8),
             ("exercises", 0.7), ("long_late", 0.75), ("booklet", 0.4))
KIT_SHARE = 0.7
BLOCK = 12
BACKGROUND = (("solved", 38), ("lemma", 6), ("method", 6), ("subcase", 6), ("notes", 9), ("booklet", 6),
              ("exercises", 7), ("topic", 5), ("no_answer", 7), ("major_error", 4), ("unverifiable", 3),
              ("changed_condition", 3))
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


def _world(seed: int, queries: int, documents: int) -> World:
    world = World(seed, queries, documents)
    if queries < 1 or world.kit < 1:
        raise ValueError(f"a planted world of {queries} queries and {documents} documents has no room for a source page "
                         f"a query; take at least 1 query and {len(FAMILIES)} + {1 / KIT_SHARE:.2f} documents a query")
    return world


def docid(row: int) -> str:
    """The text id of a row, 1,000 documents a shard."""
    return f"shard_{row // 1000:05d}_{row % 1000:05d}"


def _asked(world: World, i: int) -> tuple[Problem, tuple[str, int], Random]:
    """The problem of query i, the wording it is asked in, and the stream that goes on from there."""
    rng = world.rng("query", i)
    p = any_problem(rng)
    return p, pages.a_wording(rng, p), rng


def _query(world: World, i: int) -> dict:
    p, wording, rng = _asked(world, i)
    text = question(rng, p, wording)
    truth = {"problem": p.key, "family": p.family.name, "query_evaluable": True, "reason_codes": []}
    if rng.random() < 0.03:
        # equal texts must have equal truths, and a damaged text names no problem any more
        code, text = damaged(rng, text)
        truth = {"problem": code, "family": "none", "query_evaluable": False, "reason_codes": [code]}
    return {"qid": f"q{i:05d}", "text": text, "source_docid": _source_docid(world, i), **truth}


def _has_source(world: World, i: int) -> bool:
    return world.rng("has source", i).random() >= 0.01


def _source_docid(world: World, i: int) -> str | None:
    return docid(backward(world.key, world.documents, i * world.kit)) if _has_source(world, i) else None


def _kit_kind(world: World, i: int, place: int) -> str:
    """The kind at a place of a query's kit; a kit too small for all keeps a random part of the kinds after `ALWAYS`."""
    if place < len(ALWAYS):
        return ALWAYS[place] if place or _has_source(world, i) else "background"
    rng = world.rng("kit", i)
    kinds = rng.sample(SOMETIMES, len(SOMETIMES)) if world.kit < len(ALWAYS) + len(SOMETIMES) else SOMETIMES
    kind, chance = kinds[place - len(ALWAYS)]
    return kind if world.rng("chance", i * world.kit + place).random() < chance else "background"


def _kit_page(world: World, i: int, place: int, kind: str) -> tuple[Draft, str]:
    p, wording, _ = _asked(world, i)
    slot = i * world.kit + place
    rng = world.rng("page", slot)
    if kind == "exact_copy":
        place = rng.choice((1, 2))
        return _kit_page(world, i, place, ALWAYS[place])
    if kind == "near_copy":
        return pages.solved(world.rng("page", i * world.kit + 1), p, but=wording, deciding=False), p.family.name
    if kind == "source":
        return pages.source(rng, p, wording), p.family.name
    if kind == "full_solution":
        return pages.solved(rng, p, but=wording), p.family.name
    if kind == "booklet":
        beside = _asked(world, (i + 1) % world.queries)[0]
        problems = [p, beside, *(any_problem(rng) for _ in range(rng.randint(1, 3)))]
        return pages.booklet(rng, rng.sample(problems, len(problems))), "mixed"
    return _about(rng, p, kind), p.family.name


def _about(rng: Random, p: Problem, kind: str) -> Draft:
    """The page of a kind that needs nothing but its problem."""
    if kind in ("lemma", "method", "subcase"):
        return pages.helping(rng, p, kind)
    return {"semantic_only": pages.semantic_only, "lexical_only": pages.lexical_only, "exercises": pages.exercises,
            "changed_condition": pages.changed_condition, "no_answer": pages.no_answer, "topic": pages.topic,
            "major_error": pages.major_error, "unverifiable": pages.unverifiable,
            "long_late": pages.long_late}[kind](rng, p)


def _background_page(world: World, slot: int, place: int) -> tuple[Draft, str, str]:
    """A page about problems that no query asks; in a block the last copies the first and the one before it the second."""
    if place == BLOCK - 1:
        draft, _, family = _background_page(world, slot - place, 0)
        return draft, "exact_copy", family
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
        return pages.booklet(rng, problems), kind, "mixed"
    if kind == "solved":
        draft = pages.solved(rng, p, rng.choice(("solution", "solution", "other", "terse")))
    else:
        draft = _about(rng, p, "long_late" if kind == "notes" else kind)
    return draft, kind if kind in PLAIN_KINDS else "distractor", p.family.name


def _background_solved(world: World, slot: int, deciding: bool = True) -> tuple[Draft, str, str]:
    rng = world.rng("page", slot)
    p = any_problem(rng)
    return pages.solved(rng, p, "solution", deciding=deciding), "distractor" if deciding else "near_copy", p.family.name


def _document(world: World, row: int) -> dict:
    slot = forward(world.key, world.documents, row)
    i, place = divmod(slot, world.kit)
    beyond = slot - world.queries * world.kit
    kind = _kit_kind(world, i, place) if beyond < 0 else "background"
    if 0 <= beyond < len(FAMILIES):
        family = list(FAMILIES)[beyond]
        draft, kind = pages.general_method(FAMILIES[family]), "method"
    elif kind == "background":
        # kit places given up stand outside the blocks, as their third page
        place = 2 if beyond < 0 else (beyond - len(FAMILIES)) % BLOCK
        draft, kind, family = _background_page(world, slot, place)
    else:
        draft, family = _kit_page(world, i, place, kind)
    removed = kind == "exact_copy" or kind == "near_copy" and world.rng("removed", slot).random() < 0.8
    return {"docid": docid(row), "text": draft.text, "removed": removed, "kind": kind, "family": family,
            "relations": draft.relations}


def documents(seed: int, queries: int, documents: int) -> Iterator[dict]:
    """All documents in row order: docid, text, removed, and the truth (kind, family, relations)."""
    world = _world(seed, queries, documents)
    return (_document(world, row) for row in range(documents))


def queries(seed: int, queries: int, documents: int) -> Iterator[dict]:
    """All queries in order: qid, text, source_docid or null, and the truth (problem, family, query_evaluable, codes)."""
    world = _world(seed, queries, documents)
    return (_query(world, i) for i in range(queries))


def _split(rows: Iterator[dict], folder: Path, name: str, key: str, seen: tuple[str, ...]) -> Iterator[dict]:
    """Write rows as texts and truth, line by line, and pass them on."""
    targets = folder / f"{name}.jsonl", folder / f"truth_{name}.jsonl"
    unfinished = [target.with_name(f".{target.name}.{os.getpid()}") for target in targets]
    try:
        with open(unfinished[0], "w", encoding="utf-8", newline="\n") as texts, \
                open(unfinished[1], "w", encoding="utf-8", newline="\n") as truths:
            for row in rows:
                texts.write(json.dumps({k: row[k] for k in (key, *seen)}, ensure_ascii=False) + "\n")
                truths.write(json.dumps({k: v for k, v in row.items() if k not in seen}, ensure_ascii=False) + "\n")
                yield row
        for temporary, target in zip(unfinished, targets, strict=True):
            os.replace(temporary, target)
    finally:
        for temporary in unfinished:
            temporary.unlink(missing_ok=True)


def write(folder: str | Path, seed: int = 0, queries: int = 300, documents: int = 12_000) -> dict[str, int]:
    """Write documents, queries and the truth of both as JSONL into a folder; return how many pages each kind has.

    Same arguments, same bytes. Files appear under their names only when complete.
    """
    world = _world(seed, queries, documents)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    asked = (_query(world, i) for i in range(queries))
    for _ in _split(asked, folder, "queries", "qid", ("text", "source_docid")):
        pass
    rows = (_document(world, row) for row in range(documents))
    rows = _split(rows, folder, "documents", "docid", ("text", "removed"))
    return dict(sorted(Counter(row["kind"] for row in rows).items()))


def main() -> None:
    """The command line: write a world and print the number of pages by kind."""
    parser = argparse.ArgumentParser(prog="python -m lib.sample.world", description="Write a planted world.")
    parser.add_argument("folder")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--documents", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    try:
        counts = write(asked.folder, asked.seed, asked.queries, asked.documents)
    except ValueError as refusal:
        parser.exit(2, f"{refusal}\n")
    for kind, count in counts.items():
        print(f"{count:>9,}  {kind}")


if __name__ == "__main__":
    main()
