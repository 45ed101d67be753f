"""The rows of the release from answers and scores, by a fixed precedence. Source: the design, "One row a pair in the release"."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, keys
from lib.student.cuts import label_of

SCHEMA = pa.schema([pa.field("query", pa.int32()), pa.field("doc", pa.int32()), *list(contracts.TABLES["labels"])[2:]])  # ids come later


class ReleaseError(ValueError):
    """What the judges and the relevance model left makes no release."""


def merge(pages: pa.Table, answers: Sequence[pa.Table], routed: Sequence[pa.Table], scored: Sequence[pa.Table]) -> pa.Table:
    """One row a pair of one query part, by query row, then document row; columns as SCHEMA.

    pages: the answers to `source_page`; answers: those to v1, the gaps and v2 (contract `answers`); routed: the intents
    of v1 and v2, of which the student's count; scored: contract `scores`. Version, stage and round are of the row that
    gave the label, model is the LLM or the student's checkpoint. A gap and a withdrawn pair give no row.

    ReleaseError names the first ten pairs that two sets answered, that were sent to the student and not scored, or the reverse,
    and the checkpoints where they are several: their scores are not of one scale.
    """
    own, own_keys = _by_pair(_valid([pages]), "are answered twice as source pages")
    others, other_keys = _by_pair(_valid(answers), "have two answers of the LLM")
    of_student = [rows.filter(pc.equal(rows["judge"], "student")) for rows in routed]
    sent, wanted = _by_pair(pa.concat_tables(of_student), "are sent to the relevance model twice")
    scores, found = _by_pair(pa.concat_tables(list(scored)), "are scored twice")
    for bad, fault in (
        (wanted[~keys.inside(wanted, found)], "have no score of the relevance model"),
        (found[~keys.inside(found, wanted)], "are scored and were never sent to the relevance model"),
    ):
        if len(bad):
            raise ReleaseError(f"{len(bad)} pairs {fault}, the first: {keys.first_ten(bad)}; label again")
    if len(several := sorted(scores["checkpoint"].unique().to_pylist())) > 1:
        raise ReleaseError(f"the pairs are scored by {' and '.join(several)}; label v1 and v2 with one arm and step (09-label and 10-extend)")
    new = ~keys.inside(other_keys, own_keys)
    llm, llm_keys = pa.concat_tables([own, others.filter(pa.array(new))]), np.concatenate([own_keys, other_keys[new]])
    alone = ~keys.inside(wanted, np.sort(llm_keys))
    left, left_scores = (rows.filter(pa.array(alone)) for rows in (sent, scores))
    rows = pa.concat_tables([_of_llm(llm, _scores(llm_keys, scores, found)), _of_student(left, left_scores)])
    return rows.take(np.argsort(np.concatenate([llm_keys, wanted[alone]]), kind="stable"))


def _valid(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([rows.filter(pc.is_in(rows["answer"], pa.array(contracts.VALID))) for rows in tables])


def _by_pair(rows: pa.Table, fault: str) -> tuple[pa.Table, np.ndarray]:
    """The rows by pair, and their keys; a pair that stands twice is an error."""
    found = keys.of(rows)
    if len(again := keys.repeated(found)):
        raise ReleaseError(f"{len(again)} pairs {fault}, the first: {keys.first_ten(again)}; route and judge again")
    if (found[1:] > found[:-1]).all():
        return rows, found
    order = np.argsort(found)
    return rows.take(order), found[order]


def _scores(wanted: np.ndarray, scores: pa.Table, found: np.ndarray) -> pa.ChunkedArray:
    """The score of each wanted pair, null where it has none."""
    has = keys.inside(wanted, found)
    return scores["score"].take(pa.array(np.where(has, np.searchsorted(found, wanted), 0), mask=~has))


def _of_llm(rows: pa.Table, score: pa.ChunkedArray) -> pa.Table:
    return _table(rows, label=rows["score"], query_evaluable=rows["query_evaluable"], judge="llm", llm_label=rows["score"],
                  student_score=score, prompt_sha256=rows["prompt_sha256"], model=rows["model"])


def _of_student(rows: pa.Table, scores: pa.Table) -> pa.Table:
    """Both of the same pairs."""
    return _table(rows, label=pa.array(label_of(scores["score"].to_numpy())), query_evaluable=True, judge="student", llm_label=None,
                  student_score=scores["score"], prompt_sha256=None, model=scores["checkpoint"])


def _table(rows: pa.Table, **columns) -> pa.Table:
    made = {name: rows[name] for name in ("query", "doc", "version", "stage", "round")} | columns
    whole = [made[field.name] if isinstance(made[field.name], pa.Array | pa.ChunkedArray)
             else pa.repeat(pa.scalar(made[field.name], field.type), rows.num_rows) for field in SCHEMA]
    return pa.table(whole, schema=SCHEMA)
