"""The student's own planted set: four families of combinatorics, eight pages a query, every page labelled.

A query asks a problem with its numbers. Of its eight pages four state that very problem and go on with a full solution (2),
with a lemma, a method or a solved subcase (1), or with nothing but a sigh (0). The other four are made alike for another
problem of the family, often one in which a single number is changed, and are worth 0. So the kind of a page, all that a
layer of width 8 sees, says little within a query; for more the numbers of query and page have to be compared. A problem
has one wording, and its numbers are small, so that a small model learns in a minute to compare them.

Measured with `runs/student.yaml` at the seeds 0, 1 and 2 (of set, weights and order alike), within-query R2 on 150 held-out
queries: the larger arm 0.61, 0.69, 0.79, the smaller one 0.13, 0.13, 0.14, in 78 CPU seconds a seed for both on one thread
(93 with planting and evaluation).
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

from lib import files
from lib.sample import chat, truth
from lib.sample.draft import Draft, Problem, problem
from lib.sample.families import FAMILIES
from lib.sample.families.family import Family
from lib.sample.world import docid

_DRAWER = dict.fromkeys("rbg", (12, 40))  # fewer numbers than in the world, so that each is met often
GROUP = (*(FAMILIES[name] for name in ("committee", "paths_through", "bounded_stars")),
         replace(FAMILIES["sock_drawer"], ranges={**FAMILIES["sock_drawer"].ranges, **_DRAWER}))
WORDING = ("ask", 0)
PAGES = 8  # a query
KINDS = {"full_solution": 45, "help": 40, "no_answer": 15}  # of the pages beyond the first two of either problem, by weight
HELPS = ("lemma", "method", "subcase")
ONE_NUMBER = 0.4  # of the pages about another problem have all numbers but one


def plant(folder: str | Path, seed: int = 0, queries: int = 4150) -> dict[str, int]:
    """Write texts and truth of both tables as JSONL, and `qrels.txt`, into a folder; the counts: queries, documents, labels.

    Same arguments, same bytes. No two queries ask the same problem, every query has pages of all three labels, and rows,
    hence ids, are shuffled. ValueError where the group has not so many problems.
    """
    rng, asked, pages = Random(f"student:{seed}"), [], []
    for i, p in enumerate(_problems(rng, queries)):
        asked.append({"qid": f"q{i:05d}", "text": p.say(WORDING[0], which=WORDING[1]), "source_docid": None, **_truth(p)})
        pages += [(i, *made) for made in _pages(rng, p)]
    rng.shuffle(pages)
    planted = [
        {"docid": docid(row), "text": draft.text, "removed": False, "kind": kind, "family": about.family.name, "relations": draft.relations}
        for row, (_, kind, about, draft) in enumerate(pages)
    ]
    labels = [truth.label(asked[i], page, len(page["text"]))["score"] for (i, *_), page in zip(pages, planted, strict=True)]
    folder = Path(folder)
    _split(folder, "queries", asked, ("qid", "text", "source_docid"))
    _split(folder, "documents", planted, ("docid", "text", "removed"))
    judged = ((asked[i]["qid"], page["docid"], label) for (i, *_), page, label in zip(pages, planted, labels, strict=True))
    files.write_text(folder / "qrels.txt", "".join(f"{qid} 0 {doc} {label}\n" for qid, doc, label in judged))
    return {"queries": len(asked), "documents": len(planted)} | {f"label {label}": n for label, n in sorted(Counter(labels).items())}


def _problems(rng: Random, n: int) -> list[Problem]:
    """n different problems of the group."""
    found: dict[str, Problem] = {}
    for _ in range(20 * n):
        if len(found) == n:
            break
        p = _problem(rng, rng.choice(GROUP))
        found.setdefault(p.key, p)
    if len(found) < n:
        raise ValueError(f"the student's set cannot have {n:,} queries, of which no two ask the same; take fewer than {len(found):,}")
    return list(found.values())


def _problem(rng: Random, family: Family) -> Problem:
    return problem(family, family.draw(rng))


def _pages(rng: Random, p: Problem) -> list[tuple[str, Problem, Draft]]:
    """Kind, problem and draft of the pages of a query: half about its problem, half about others of the family."""
    made = []
    for own in (True, False):
        kinds = ["full_solution", "help", *rng.choices(list(KINDS), list(KINDS.values()), k=PAGES // 2 - 2)]
        for kind in kinds:
            about = p if own else _another(rng, p)
            name = rng.choice(HELPS) if kind == "help" else kind
            made.append((name if own else "distractor", about, _page(rng, about, name)))
    return made


def _another(rng: Random, p: Problem) -> Problem:
    """A problem of the family that differs in one number, or in as many as chance will have it."""
    if rng.random() < ONE_NUMBER:
        return problem(p.family, p.family.neighbour(p.parameters, rng))
    while (other := _problem(rng, p.family)).key == p.key:
        pass
    return other


def _page(rng: Random, p: Problem, kind: str) -> Draft:
    draft = Draft()
    draft.state(p, WORDING)
    if kind == "full_solution":
        draft.derive(p, "terse")
    elif kind == "no_answer":
        draft.put(chat.pick(rng, chat.UNANSWERED))
    else:
        draft.help(p, kind)
    return draft


def _truth(p: Problem) -> dict:
    return {"problem": p.key, "family": p.family.name, "query_evaluable": True, "reason_codes": []}


def _split(folder: Path, name: str, rows: list[dict], seen: tuple[str, ...]) -> None:
    """Write the columns that a reader sees, and beside them the id with all others, the truth."""
    hidden = seen[0], *(key for key in rows[0] if key not in seen)
    for path, keys in ((folder / f"{name}.jsonl", seen), (folder / f"truth_{name}.jsonl", hidden)):
        files.write_text(path, "".join(json.dumps({key: row[key] for key in keys}, ensure_ascii=False) + "\n" for row in rows))
