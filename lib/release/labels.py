"""The stage that writes `labels/`, one part of queries at a time, and the refusal of a release with gaps."""

import time
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from lib import contracts, corpus, engine, keys, processes
from lib.engine import Stage, part
from lib.release import coverage
from lib.release.coverage import GapsLeft
from lib.release.merge import merge
from lib.retrieval.parts import top
from lib.student import scored
from lib.student.scored import SETS

ANSWERS = ("v1", "v2_gap", "v2")
SENT = ["query", "doc", "judge", "version", "stage", "round"]  # what the merge reads of intents and of answers
TOLD = ["query", "doc", "version", "stage", "round", "answer", "score", "query_evaluable", "prompt_sha256", "model"]
# a gap is a pair that only the LLM judges, or a pick; a trial pair has its label of the relevance model
OWED = {"v2_gap": None, "v2": ("new_long_1_5",)}


def _read(table: str, config: dict, folder: str, shard: str, columns: list[str] | None = None) -> pa.Table:
    return contracts.read_part(table, Path(config["run"]) / folder / f"{shard}.parquet", columns)


def _lists(config: dict, shard: str, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The dense and the fused top 20 of one part; a query that is not kept has none."""
    dense = top(config["run"], shard, "dense", contracts.CUT)
    fused = contracts.places(_read("fused", config, "fused", shard, ["doc"])["doc"])
    return np.where(keep[:, None], dense, -1), np.where(keep[:, None], fused, -1)


@lru_cache(maxsize=1)
def _docids(run: str, contents: str) -> pa.Array:
    """All document ids in corpus order, read once a process; `contents` tells one import from the next."""
    return corpus.all_documents(run, ["docid"])["docid"].combine_chunks()


def _labels(shard: str, config: dict) -> dict:
    found = corpus.part_of("queries", config, shard)
    queries = corpus.queries(config["run"], shard, ["qid", "source_doc", "keep"])
    answers = {name: _read("answers", config, f"answers/{name}", shard, TOLD) for name in ("source_page", *ANSWERS)}
    rows = merge(
        answers["source_page"], [answers[name] for name in ANSWERS], [_read("intents", config, f"intents/{name}", shard, SENT) for name in SETS],
        [scored.read(config["run"], name, shard) for name in SETS],
    )
    gaps = np.concatenate([keys.of(coverage.gaps(answers[name], stages)) for name, stages in OWED.items()])
    query = np.arange(found.first, found.first + found.rows, dtype=np.int32)
    dense, fused = _lists(config, shard, queries["keep"].to_numpy())
    begun = time.perf_counter()
    counts = coverage.check(rows, query, dense, fused, queries["source_doc"].fill_null(-1).to_numpy(), gaps)
    checking = time.perf_counter() - begun
    docids = _docids(config["run"], contracts.contents(Path(config["run"]) / "documents"))
    columns = {name: rows[name] for name in rows.schema.names[2:]}
    qids = queries["qid"].combine_chunks().take(pa.array(rows["query"].to_numpy() - found.first))
    ids = {"qid": qids, "docid": docids.take(rows["doc"].combine_chunks())}
    return contracts.write("labels", contracts.table("labels", ids | columns), part(config, labels, shard)) | counts | {
        "gaps": len(gaps), "timing": {"checking": round(checking, 3)},
    }


labels = Stage(
    "lib.release.labels:labels", "labels", "labels",
    ("documents", "queries", "hits/dense", "fused", *(f"intents/{name}" for name in SETS),
     *(f"answers/{name}" for name in ("source_page", *ANSWERS)), *(f"scores/{name}" for name in SETS)),
    (), partial(corpus.shards, "queries"), _labels,
)  # fmt: skip


def write(run: str | Path, accept_gaps: int = 0, workers: int | str = 1) -> int:
    """Bring the folder `labels/` up to date and give its rows; the same answers and scores give the same bytes.

    GapsLeft names the first ten pairs that no pass brought a valid reply, where there are more than `accept_gaps`; their
    number stands in the manifest. No release is left where one is refused.
    """
    run = Path(run)
    with processes.lock(run):
        (run / "labels" / "manifest.json").unlink(missing_ok=True)
        count, named = _gaps(run)
        if count > accept_gaps:
            raise GapsLeft(
                f"{count} pairs have no valid reply after the last pass, the first: {'; '.join(named)}; "
                f"run 10-extend with more passes, or release them as gaps with accept_gaps: {count}"
            )
        return sum(line["rows"] for line in engine.map(labels, {"run": str(run)}, workers))


def _gaps(run: Path) -> tuple[int, list[str]]:
    """How many gaps a run has, and the names of the first ten."""
    count, first = 0, []
    for name, stages in OWED.items():
        for line in contracts.parts(run / "answers" / name):
            left = coverage.gaps(contracts.read_part("answers", run / "answers" / name / line["part"]), stages)
            count += left.num_rows
            first += left.slice(0, 10 - len(first)).to_pylist()
    if not first:
        return count, []
    qids, docids = corpus.all_queries(run, ["qid"])["qid"], corpus.all_documents(run, ["docid"])["docid"]
    return count, [f"query {qids[row['query']]}, document {docids[row['doc']]} ({row['version']} {row['stage']}: {row['answer']})" for row in first]
