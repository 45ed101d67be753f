"""The planted world: mathematics questions and pages whose true labels follow from how they were made.

What a document is depends on the seed, the two sizes and its row alone, so any number of them streams in constant
memory. Each query owns a kit of pages; one handbook page belongs to each family; all other pages are background
about problems that nobody asks. A keyed permutation of the rows hides who is who.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lib import files
from lib.sample import roster
from lib.sample.families import FAMILIES
from lib.sample.permutation import backward, forward
from lib.sample.questions import damaged, question
from lib.sample.roster import KIT_SHARE, World


def _world(seed: int, queries: int, documents: int) -> World:
    world = World(seed, queries, documents)
    if queries < 1 or world.kit < 1:
        raise ValueError(f"a planted world of {queries} queries and {documents} documents has no room for a source page "
                         f"a query; take at least 1 query and {len(FAMILIES)} + {1 / KIT_SHARE:.2f} documents a query")
    return world


def docid(row: int) -> str:
    """The text id of a row, 1,000 documents a shard."""
    return f"shard_{row // 1000:05d}_{row % 1000:05d}"


def _query(world: World, i: int) -> dict:
    p, wording, rng = roster.asked(world, i)
    text = question(rng, p, wording)
    truth = {"problem": p.key, "family": p.family.name, "query_evaluable": True, "reason_codes": []}
    if rng.random() < 0.03:
        # equal texts must have equal truths, and a damaged text names no problem any more
        code, text = damaged(rng, text)
        truth = {"problem": code, "family": "none", "query_evaluable": False, "reason_codes": [code]}
    return {"qid": f"q{i:05d}", "text": text, "source_docid": _source_docid(world, i), **truth}


def _source_docid(world: World, i: int) -> str | None:
    return docid(backward(world.key, world.documents, i * world.kit)) if roster.has_source(world, i) else None


def _document(world: World, row: int) -> dict:
    slot = forward(world.key, world.documents, row)
    kind, family, draft = roster.page(world, slot)
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
    with files.whole(folder / f"{name}.jsonl") as text_file, files.whole(folder / f"truth_{name}.jsonl") as truth_file, \
            open(text_file, "w", encoding="utf-8", newline="\n") as texts, open(truth_file, "w", encoding="utf-8", newline="\n") as truths:
        for row in rows:
            texts.write(json.dumps({k: row[k] for k in (key, *seen)}, ensure_ascii=False) + "\n")
            truths.write(json.dumps({k: v for k, v in row.items() if k not in seen}, ensure_ascii=False) + "\n")
            yield row


def write(folder: str | Path, seed: int = 0, queries: int = 300, documents: int = 12_000) -> dict[str, int]:
    """Write documents, queries and the truth of both as JSONL into a folder; return how many pages each kind has.

    Same arguments, same bytes. Files appear under their names only when complete.
    """
    world = _world(seed, queries, documents)
    folder = Path(folder)
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
