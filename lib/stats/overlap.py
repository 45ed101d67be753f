"""Pairs with a label of the LLM and a score of the relevance model, in four parts. Source: spec, "Overlap".

Picks, long pairs that the model scores besides, short source pages, and the trial. To check the model on them, what it
has seen in training is left out: null labels first, then training pairs, then pairs of the same two texts; and in a
second column every pair of a training query.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

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
    query_text = _numbered(normalised(text) for text in _texts(run, "queries"))
    doc_text = _numbered(_texts(run, "documents"))
    rows = contracts.read("examples", run / "examples", ["query", "doc", "held_out"]).to_pandas().query("not held_out")
    query, doc = rows["query"].to_numpy(), rows["doc"].to_numpy()
    texts = keys.distinct(keys.of_pairs(query_text[query], doc_text[doc]))
    return Seen(np.sort(keys.of_pairs(query, doc)), texts, np.unique(query_text[query]), query_text, doc_text)


def _texts(run: Path, table: str) -> Iterator[str]:
    read = {"queries": corpus.queries, "documents": corpus.documents}[table]
    for part in corpus.parts(run, table):
        yield from read(run, part.shard, ["text"])["text"].to_pylist()


def _numbered(texts: Iterator[str]) -> np.ndarray:
    """The first row with the same text, of each row; by 64-bit hashes: of 4 million texts two meet with a chance of 1 in 2 million."""
    hashes = np.fromiter((int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") for text in texts), np.uint64)
    _, first, row = np.unique(hashes, return_index=True, return_inverse=True)
    return first[row]


def parts(run: str | Path, known: Seen) -> dict[str, Part]:
    """The overlap by part, in the order of PARTS. ValueError where a pair with both has a stage of no part."""
    found: dict[str, list[Part]] = {part: [] for part in PARTS.values()}
    for rows in _pairs(Path(run)):
        rows["left out"], rows["fresh"] = _left_out(rows, known)
        for part, here in rows.groupby("part"):
            found[part].append(_part(here))
    return {part: together(of) for part, of in found.items()}


def _part(rows: pd.DataFrame) -> Part:
    left_out, checked = rows["left out"], {}
    for name, asked in ((CHECKED, rows), (UNSEEN, rows[rows["fresh"]])):
        used = asked.loc[asked["left out"] == "", ["label", "cut"]].to_numpy(np.int64)
        table = np.bincount(used @ (3, 1), minlength=9).reshape(3, 3)
        checked[name] = of_table(table, unevaluable=int((asked["left out"] == "null").sum()))
    return Part(len(rows), {name: int((left_out == name).sum()) for name in LEFT_OUT}, checked)


def together(found: Iterable[Part]) -> Part:
    """Parts as one."""
    found, checked = list(found), {}
    for name in (CHECKED, UNSEEN):
        of = [one.checked[name] for one in found]
        checked[name] = of_table(sum((one.table for one in of), np.zeros((3, 3), np.int64)), unevaluable=sum(one.unevaluable for one in of))
    return Part(sum(one.pairs for one in found), {name: sum(one.left_out[name] for one in found) for name in LEFT_OUT}, checked)


def _left_out(rows: pd.DataFrame, known: Seen) -> tuple[np.ndarray, np.ndarray]:
    """Why each pair is left out of the check ("" where it is not), and whether its query is in no training pair."""
    query, doc = rows["query"].to_numpy(), rows["doc"].to_numpy()
    text = known.query_text[query]
    trained, same = keys.inside(keys.of_pairs(query, doc), known.pairs), keys.inside(keys.of_pairs(text, known.doc_text[doc]), known.texts)
    return np.select([rows["label"].isna().to_numpy(), trained, same], LEFT_OUT, ""), ~keys.inside(text, known.queries)


def _pairs(run: Path) -> Iterator[pd.DataFrame]:
    """For each part of queries the pairs with both: query, doc, part, label (missing where unevaluable), cut."""
    columns = ["query", "doc", "stage", "answer", "score"]
    for told in zip(*(answers.read(run, name, columns) for name in ANSWERS), strict=True):
        shard, tables = told[0][0], [rows.to_pandas() for _, rows in told]
        llm = pd.concat(tables, ignore_index=True)
        llm = llm[llm["answer"].isin(answers.VALID)].drop_duplicates(["query", "doc"])
        both = _scores(run, shard).merge(llm, on=["query", "doc"], suffixes=(" student", ""), validate="one_to_one")
        strange = both[~both["stage"].isin(PARTS)]
        if len(strange):
            row = strange.iloc[0]
            raise ValueError(f"query {row['query']}, document {row['doc']} is scored by both and its stage {row['stage']} is no part of the overlap; "
                             "label again")
        cut = label_of(both["score student"].to_numpy())
        yield both[["query", "doc"]].assign(part=both["stage"].map(PARTS), label=both["score"], cut=cut)


def _scores(run: Path, shard: str) -> pd.DataFrame:
    return pa.concat_tables([scored.read(run, name, shard, ["query", "doc", "score"]) for name in scored.SETS]).to_pandas()


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
