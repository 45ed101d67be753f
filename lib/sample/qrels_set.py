"""A planted set for the qrels line, whose truth is known: a reviewer's workbook, verified questions, documents and their copies.

`python -m lib.sample.qrels_set FOLDER` writes `review.xlsm`, `verified.jsonl`, `documents.jsonl` with its index,
`near_dup/doc_duplicates_t70/`, `duplicate_groups.jsonl` and `truth.jsonl`. Same arguments, same bytes.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from random import Random

from lib import files, ids
from lib.sample import documents
from lib.sample.review import chains, duplicate_files, encyclopedia, planted_pool, review_workbook
from lib.sample.review.chains import Question
from lib.sample.review.encyclopedia import PARAGRAPH
from lib.sample.review.planted_pool import Planted
from lib.sample.review.review_workbook import HopLine, VoteLine

NEAR = Path("near_dup/doc_duplicates_t70")
SHARDS = ("00012", "00045", "00103")
PAGES = 25  # a question, background included
_REMARKS = ("Checked against the page.", "See the second paragraph.", "Second reader agrees.")


def write(folder: str | Path, questions: int = 24, seed: int = 0, faults: bool = False) -> dict[str, int]:
    """Write the set into a folder and return how many there are of each thing and of each kind of page.

    With `faults` the workbook also holds a contradiction, a note that asks instead of saying, and a question that is not
    among the verified ones. ValueError for fewer than one question.
    """
    if questions < 1:
        raise ValueError(f"a set of {questions} questions holds nothing to judge; take at least 1")
    folder = Path(folder)
    rng = Random(f"qrels:{seed}")
    asked = chains.questions(rng, questions)
    planted = {q.qid: planted_pool.plant(Random(f"qrels:{seed}:{q.qid}"), q, turn) for turn, q in enumerate(asked)}
    every = [one for pages in planted.values() for one in pages]
    every += _background(rng, PAGES * questions - len(every))
    _number(rng, every)
    every.sort(key=lambda one: one.docid.split("_")[1:2] + [int(one.docid.split("_")[2])])
    texts = {one.docid: one.page.text for one in every}

    documents.write(folder, texts)
    _lines(folder / "verified.jsonl", [_verified(q) for q in asked])
    hops = [line for turn, q in enumerate(asked) for line in _hop_lines(q, turn)]
    votes = [line for turn, q in enumerate(asked) for line in _vote_lines(q, turn, planted[q.qid])]
    review_workbook.write(folder / "review.xlsm", *(_faulty(hops, votes) if faults else (hops, votes)))
    untold = {(one.parent.docid, one.docid) for one in every if one.one_sided and one.parent}
    edges = duplicate_files.write_near(folder / NEAR, texts, untold)
    groups = duplicate_files.write_exact(folder / "duplicate_groups.jsonl", texts)
    _lines(folder / "truth.jsonl", [_truth(q, planted[q.qid]) for q in asked])
    counts = {"questions": len(asked), "hops": len(hops), "documents": len(every), "votes": len(votes), "near edges": edges, "exact groups": groups}
    return counts | dict(sorted(Counter(one.kind for one in every).items()))


def _background(rng: Random, n: int) -> list[Planted]:
    """Pages of no question; two in five are exact or near copies of another."""
    made: list[Planted] = []
    while len(made) < n:
        title = chains.word(rng)
        made.append(Planted(encyclopedia.page(rng, title, [], length=rng.randint(20, 32)), "background"))
        for _ in range(min(rng.choice((0, 0, 0, 1, 2)), n - len(made))):
            parent = made[-1]
            page = parent.page if rng.random() < 0.3 else encyclopedia.edited(rng, parent.page, parent.page, set(), 0.95)
            made.append(Planted(page, "background_copy", parent, one_sided=rng.random() < 0.2))
    return made


def _number(rng: Random, every: list[Planted]) -> None:
    """Give ids of a few shards, with gaps, so that nothing about a page shows in its id."""
    rng.shuffle(every)
    for k, shard in enumerate(SHARDS):
        of_shard = every[k :: len(SHARDS)]
        for one, number in zip(of_shard, rng.sample(range(max(30_000, 2 * len(of_shard))), len(of_shard)), strict=True):
            one.docid = f"shard_{shard}_{number}"


def _lines(path: Path, rows: list[dict]) -> None:
    files.write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _verified(q: Question) -> dict:
    return {"qid": q.qid, "question": q.text, "hops": [{"hop": hop, "text": fact.ask} for hop, fact in enumerate(q.facts, 1)]}


def _hop_lines(q: Question, turn: int) -> list[HopLine]:
    notes = {"Yes": "Wording agreed." if turn % 5 == 0 else None, "No": None}
    return [
        HopLine(q.qid, hop, q.facts[hop - 1].ask, fate.judgment, fate.note or (notes[fate.judgment] if hop == 1 else None))
        for hop, fate in planted_pool.fates(q, turn).items()
    ]


def _vote_lines(q: Question, turn: int, pages: list[Planted]) -> list[VoteLine]:
    """The pool by hop; the first page of most hops has a good vote, every third near miss a bad one, the others none.

    One question in eight names its first page a second time, by the padded id, as half of all rows do.
    """
    fates = planted_pool.fates(q, turn)
    lines: list[VoteLine] = []
    for hop in fates:
        listed = [one for one in pages if hop in one.pool]
        for place, one in enumerate(listed):
            states, vote = hop in one.hops(q.qid), None
            if states and place == 0 and (turn + hop) % 3 and (fates[hop].live or turn % 12 == 4):
                vote = "Partial support" if (turn + hop) % 3 == 2 and turn % 2 else "Supports"
            elif one.kind == "misses" and (turn + place) % 3 == 0 and fates[hop].live:
                vote = "Does not support"
            lines.append(_vote_line(q.qid, hop, one, vote, padded=(turn + place) % 2 == 0))
    if turn % 8 == 0 and (voted := next((line for line in lines if line.vote in review_workbook.VOTE[:2]), None)):
        one = next(one for one in pages if one.docid == ids.api(voted.docid))
        lines.append(_vote_line(q.qid, voted.hop, one, "Partial support", padded=voted.docid == one.docid))
    return lines


def _vote_line(qid: str, hop: int, one: Planted, vote: str | None, padded: bool) -> VoteLine:
    excerpt = " ".join(one.page.sentences[:PARAGRAPH])[:200]
    remark = _REMARKS[len(excerpt.split()) % len(_REMARKS)] if vote else None
    return VoteLine(qid, hop, ids.analysis(one.docid) if padded else one.docid, excerpt, vote, remark)


def _faulty(hops: list[HopLine], votes: list[VoteLine]) -> tuple[list[HopLine], list[VoteLine]]:
    """The rows with a contradiction, an asking note and a stranger among the questions."""
    asking = next(i for i, line in enumerate(hops) if line.judgment == "Yes" and line.hop == 1)
    hops = [line._replace(judgment="No", note="Not needed?") if i == asking else line for i, line in enumerate(hops)]
    good = next(line for line in votes if line.vote == "Supports")
    return hops, [*votes, good._replace(vote="Does not support", comment="I disagree."), votes[-1]._replace(qid="q00x", vote="Supports")]


def _truth(q: Question, pages: list[Planted]) -> dict:
    """Of each hop its standard, all sentences that state it or just miss it and the stating documents; why each page was made."""
    hops = [
        {"hop": hop, "must_state": fact.must_state, "near_miss": fact.near_miss, "states": fact.states,
         "misses": [{"kind": kind, "sentence": sentence} for kind, sentence in fact.misses.items()],
         "documents": sorted(one.docid for one in pages if hop in one.hops(q.qid))}
        for hop, fact in enumerate(q.facts, 1)
    ]
    made = [{"docid": one.docid, "kind": one.kind, "parent": one.parent.docid if one.parent else None, "pool": list(one.pool),
             "hops": one.hops(q.qid), "one_sided": one.one_sided} for one in pages]
    return {"qid": q.qid, "hops": hops, "documents": made}


def main() -> None:
    """The command line: write a set and print what is in it."""
    parser = argparse.ArgumentParser(prog="python -m lib.sample.qrels_set", description="Write a planted set for the qrels line.")
    parser.add_argument("folder")
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", action="store_true", help="with a contradiction, an asking note and an unverified question in the workbook")
    asked = parser.parse_args()
    try:
        counts = write(asked.folder, asked.questions, asked.seed, asked.faults)
    except ValueError as refusal:
        parser.exit(2, f"{refusal}\n")
    for name, count in counts.items():
        print(f"{count:>6,}  {name}")


if __name__ == "__main__":
    main()
