"""Labels as a pure function of intents and attempts: one row a judged pair, the release."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lib import contracts, processes
from lib.judge import answers, pairs
from lib.judge.pairs import Pairs
from lib.judge.prompt import Judge

RELEASED = ("source_page", "v1")  # the sets that give labels, the one that wins first; a probe gives none


def labels(run: str | Path, part: str, render: Pairs, sets: Sequence[str] = RELEASED) -> pa.Table:
    """The label rows (contract `labels`) of one query part, by query row and then document row.

    A pair has a row where one of the sets has a valid reply for it; the first set in `sets` wins. The label
    is null where the query cannot be evaluated; a gap has no row. `student_score` is null.
    """
    first, qids, _ = render.ids(part)
    found: dict[tuple[int, int], dict] = {}
    for name in sets:
        for row in answers.answers(run, name, part, render).to_pylist():
            if row["answer"] in answers.VALID:
                found.setdefault((row["query"], row["doc"]), row)
    rows = [
        {
            "qid": qids[query - first], "docid": render.docid(doc), "label": row["score"], "llm_label": row["score"],
            "judge": "llm", "student_score": None,
            **{name: row[name] for name in ("query_evaluable", "version", "stage", "round", "prompt_sha256", "model")},
        }
        for (query, doc), row in sorted(found.items(), key=lambda item: item[0])
    ]  # fmt: skip
    return contracts.table("labels", rows)


def write(run: str | Path, by: Judge, sets: Sequence[str] = RELEASED) -> int:
    """Make the folder `labels/` and give its number of rows; the same answers give the same bytes."""
    folder, render = Path(run) / "labels", Pairs(run, by)
    with processes.lock(Path(run)):
        (folder / "manifest.json").unlink(missing_ok=True)
        names = sorted({part for name in sets for part in pairs.parts(run, name)})
        lines = [contracts.write("labels", labels(run, part, render, sets), folder / f"{part}.parquet") for part in names]
        for old in folder.glob("part-*"):
            if old.stem not in names:
                old.unlink()
        contracts.finish(folder, lines)
    return sum(line["rows"] for line in lines)
