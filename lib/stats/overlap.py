"""Pairs with a label of the LLM and a score of the relevance model, in four parts. Source: spec, "Overlap".

Picks, long pairs that the model scores besides, short source pages, and the trial. To check the model on them, what it
has seen in training is left out: null labels first, then training pairs, then pairs of the same two texts; and in a
second column every pair of a training query.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, corpus, keys
from lib.judge import answers
from lib.stats.agreement import Agreement, of_table
from lib.student import scored
from lib.student.cuts import label_of
from lib.student.examples import normalised

PARTS = {"pick": "picks", "long": "long", "source_page": "source pages", "trial": "trial"}  # by stage of the LLM's label
ANSWERS = ("source_page", "v1", "v2_gap", "v2")  # the first set that labels a pair wins
LEFT_OUT = ("null", "training pairs", "equal texts")
CHECKED, UNSEEN = "all", "no training query"


class Seen(NamedTuple):
    """What the relevance model was trained on. Equal texts have one number: that of the first row that holds them.

    pairs: sorted `lib.keys` of the training pairs; texts: of their texts' numbers; queries: sorted numbers of the
    training queries. query_text and doc_text: int64 number of each row; query texts are compared as the split does
    (casefolded, white space folded), document texts as they are.
    """

    pairs: np.ndarray
    texts: np.ndarray
    queries: np.ndarray
    query_text: np.ndarray
    doc_text: np.ndarray


class Part(NamedTuple):
    """One part of the overlap: how many pairs, how many were left out of the check and why, and the two checks."""

    pairs: int
    left_out: dict[str, int]
    checked: dict[str, Agreement]  # by CHECKED, UNSEEN


def seen(run: str | Path) -> Seen:
    """Read the training pairs of `examples/` and number the texts of all queries and documents (8 bytes a row)."""
    run = Path(run)
    query_text = _numbered(np.array([normalised(text) for text in some], dtype=object) for some in _texts(run, "queries"))
    doc_text = _numbered(_texts(run, "documents"))
    rows = contracts.read("examples", run / "examples", ["query", "doc", "held_out"])
    rows = rows.filter(pc.invert(rows["held_out"]))
    query, doc = rows["query"].to_numpy(), rows["doc"].to_numpy()
    texts = keys.distinct(keys.of_pairs(query_text[query], doc_text[doc]))
    return Seen(np.sort(keys.of_pairs(query, doc)), texts, np.unique(query_text[query]), query_text, doc_text)


def _texts(run: Path, table: str) -> Iterator[np.ndarray]:
    """The texts in row order, some thousands at a time, as arrays of objects."""
    read = {"queries": corpus.queries, "documents": corpus.documents}[table]
    for part in corpus.parts(run, table):
        for batch in read(run, part.shard, ["text"]).to_batches(4096):
            yield batch["text"].to_numpy(zero_copy_only=False)


def _numbered(texts: Iterable[np.ndarray]) -> np.ndarray:
    """The first row with the same text, of each row; by 64-bit hashes: of 4 million texts two meet with a chance of 1 in 2 million."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *(pd.util.hash_array(some, categorize=False) for some in texts)])
    _, first, row = np.unique(hashes, return_index=True, return_inverse=True)
    return first[row]


def parts(run: str | Path, known: Seen) -> dict[str, Part]:
    """The overlap by part, in the order of PARTS. ValueError where a pair with both has a stage of no part."""
    found: dict[str, list[Part]] = {part: [] for part in PARTS.values()}
    for rows in _pairs(Path(run)):
        why, fresh = _left_out(rows, known)
        for i, part in enumerate(PARTS.values()):
            if (here := rows.part == i).any():
                found[part].append(_part(why[here], fresh[here], 3 * rows.label[here] + rows.cut[here]))
    return {part: together(of) for part, of in found.items()}


def _part(why: np.ndarray, fresh: np.ndarray, both: np.ndarray) -> Part:
    """Counts of some pairs: `why` as `_left_out` gives it, and 3 times the label and the cut (read where nothing is left out)."""
    checked = {}
    for name, asked in ((CHECKED, np.ones(len(why), bool)), (UNSEEN, fresh)):
        table = np.bincount(both[asked & (why == len(LEFT_OUT))], minlength=9).reshape(3, 3)
        checked[name] = of_table(table, unevaluable=int((asked & (why == LEFT_OUT.index("null"))).sum()))
    return Part(len(why), {name: int((why == i).sum()) for i, name in enumerate(LEFT_OUT)}, checked)


def together(found: Iterable[Part]) -> Part:
    """Parts as one."""
    found, checked = list(found), {}
    for name in (CHECKED, UNSEEN):
        of = [one.checked[name] for one in found]
        checked[name] = of_table(sum((one.table for one in of), np.zeros((3, 3), np.int64)), unevaluable=sum(one.unevaluable for one in of))
    return Part(sum(one.pairs for one in found), {name: sum(one.left_out[name] for one in found) for name in LEFT_OUT}, checked)


class _Both(NamedTuple):
    """Pairs with both, row for row: `lib.keys`, which of PARTS, the LLM's label (-1 where unevaluable), the score's cut label."""

    pair: np.ndarray
    part: np.ndarray
    label: np.ndarray
    cut: np.ndarray


def _left_out(rows: _Both, known: Seen) -> tuple[np.ndarray, np.ndarray]:
    """Which of LEFT_OUT keeps each pair out of the check (their number where none does), and whether its query is in no training pair."""
    query, doc = rows.pair >> 32, rows.pair & 0xFFFFFFFF
    text = known.query_text[query]
    trained, same = keys.inside(rows.pair, known.pairs), keys.inside(keys.of_pairs(text, known.doc_text[doc]), known.texts)
    return np.select([rows.label < 0, trained, same], range(len(LEFT_OUT)), len(LEFT_OUT)), ~keys.inside(text, known.queries)


def _pairs(run: Path) -> Iterator[_Both]:
    """For each part of queries the pairs with both, by query and document."""
    for line, *_ in zip(*(contracts.parts(answers.folder(run, name)) for name in ANSWERS), strict=True):
        shard = Path(line["part"]).stem
        scores = pa.concat_tables([scored.read(run, name, shard, ["query", "doc", "score"]) for name in scored.SETS])
        pair = keys.of(scores)
        order = np.argsort(pair, kind="stable")  # two sorted runs
        pair = pair[order]
        if (again := pair[1:] == pair[:-1]).any():
            raise ValueError(f"{again.sum()} pairs are scored twice, the first: {keys.first_ten(pair[1:][again])}; label again")
        # by place in `pair`: which of PARTS labelled it (-1: none), and the label
        stage, label = np.full(len(pair), -1, np.int8), np.full(len(pair), -1, np.int8)
        for name in ANSWERS:
            columns, file = ["query", "doc", "stage", "answer", "score"], answers.folder(run, name) / line["part"]
            told = contracts.read_part("answers", file, columns, coded=["stage", "answer"])
            told = told.filter(pc.is_in(told["answer"], pa.array(answers.VALID)))
            found = keys.of(told)
            if not len(pair) or not len(found):
                continue
            place = np.minimum(np.searchsorted(pair, found), len(pair) - 1)
            new = np.flatnonzero((pair[place] == found) & (stage[place] < 0))
            place, told = place[new], told.take(pa.array(new))
            code = _code(told["stage"])
            if (code < 0).any():
                at = int(np.argmax(code < 0))
                raise ValueError(f"query {pair[place[at]] >> 32}, document {pair[place[at]] & 0xFFFFFFFF} is scored by both and its stage "
                                 f"{told['stage'][at]} is no part of the overlap; label again")
            # a pair that one set answers twice keeps its first answer
            stage[place[::-1]], label[place[::-1]] = code[::-1], told["score"].fill_null(-1).to_numpy()[::-1]
        both = stage >= 0
        yield _Both(pair[both], stage[both], label[both], label_of(scores["score"].to_numpy()[order[both]]))


def _code(stage: pa.ChunkedArray) -> np.ndarray:
    """Which of PARTS each stage of a coded column is; -1 for none of them."""
    column = stage.combine_chunks()
    known = np.array([list(PARTS).index(name) if name in PARTS else -1 for name in column.dictionary.to_pylist()] or [-1], np.int8)
    return known[column.indices.to_numpy()]


def overlap_table(found: dict[str, Part]) -> pd.DataFrame:
    """One row a part, and one for all: pairs with both, those left out by reason, those checked with exact agreement and
    0 against 2, and the same without any pair of a training query.

    pairs = null + training pairs + equal texts + checked.
    """
    rows = []
    for part, one in (found | {"all": together(found.values())}).items():
        assert one.pairs == sum(one.left_out.values()) + one.checked[CHECKED].n, part
        row = {"part": part, "pairs": one.pairs, **one.left_out}
        for name, suffix in ((CHECKED, ""), (UNSEEN, ", " + UNSEEN)):
            both = one.checked[name]
            row |= {f"checked{suffix}": both.n, f"exact{suffix}": both.exact, f"0 against 2{suffix}": both.opposite}
        rows.append(row)
    return pd.DataFrame(rows)


def comparisons(found: dict[str, Part]) -> dict[tuple[str, str], Agreement]:
    """Every check of every part, and of all together: (part, which queries) -> the agreement."""
    return {(part, queries): both for part, one in (found | {"all": together(found.values())}).items() for queries, both in one.checked.items()}
