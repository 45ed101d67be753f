"""What the stages of the lexical routes take part by part: drawn texts in a run folder, and each stage in a fresh process.

`python -m lib.retrieval.parts_measure RUN ROUTE` maps the index and the search of a route and prints its JSON.
"""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, engine, paths, processes
from lib.retrieval import ngram_measure
from lib.retrieval.ngram_measure import Drawn

ROUTES = ("bm25", "ngram")


class Measured(NamedTuple):
    """Processor seconds of the two stages in one process, its peak in MiB, and the hits that it wrote."""

    index: float
    search: float
    mib: float
    hits: int


class Marginal(NamedTuple):
    """What one more part takes: processor seconds of a document part to index, and of one to search by one query part."""

    index: float
    search: float
    mib: float  # at the peak, with all of the document parts


def write(run: Path, drawn: Drawn, query_rows: int) -> None:
    """The `documents` of a run in parts of `drawn.shard`, every seventh of them removed, and its `queries` in parts of `query_rows`."""
    spoken, lines, first = ngram_measure.language(drawn), [], 0
    for number, texts in enumerate(ngram_measure.documents(drawn, spoken)):
        rows = np.arange(first, first := first + len(texts))
        given = {
            "docid": [f"d{row}" for row in rows], "text": texts.cast(pa.large_string()), "n_chars": pc.utf8_length(texts),
            "n_tokens": pa.array(np.zeros(len(rows), np.int32)), "removed": rows % 7 == 3,
        }  # fmt: skip
        lines.append(contracts.write("documents", contracts.table("documents", given), run / "documents" / f"part-{number:05}.parquet"))
    contracts.finish(run / "documents", lines)
    texts, lines = ngram_measure.queries(drawn, spoken), []
    for number, at in enumerate(range(0, len(texts), query_rows)):
        some = texts[at : at + query_rows]
        none, kept = [None] * len(some), [True] * len(some)
        given = {"qid": [f"q{at + i}" for i in range(len(some))], "text": some, "source_docid": none, "source_doc": none, "keep": kept}
        lines.append(contracts.write("queries", contracts.table("queries", given), run / "queries" / f"part-{number:05}.parquet"))
    contracts.finish(run / "queries", lines)


def measured(run: Path, route: str) -> Measured:
    """The stages in this process, from the texts on."""
    from lib.retrieval import routes

    for made in ("index", "hits"):
        shutil.rmtree(run / made, ignore_errors=True)
    seconds = []
    for stage in routes.SEARCHES[route]:
        begun = time.process_time()
        lines = engine.map(stage, {"run": str(run)})
        seconds.append(time.process_time() - begun)
    found = sum(int((contracts.places(contracts.read_part("hits", run / "hits" / route / line["part"])["doc"]) >= 0).sum()) for line in lines)
    return Measured(*seconds, processes.memory(), found)


def child(run: Path, route: str) -> Measured:
    """Map the stages in a fresh process; RuntimeError with the last line that it printed where it fails."""
    return Measured(**json.loads(processes.answer(f"the route {route}", "lib.retrieval.parts_measure", str(run), route, cwd=paths.ROOT)))


def marginal(folder: Path, drawn: Drawn, query_rows: int, route: str) -> Marginal:
    """From runs in `folder` over all of the document parts and over the first half: what stands once in a process is in neither."""
    parts = -(-drawn.documents // drawn.shard)
    runs = {count: folder / str(count) for count in (parts // 2, parts)}
    for count, run in runs.items():
        if not (run / "queries" / "manifest.json").exists():
            write(run, drawn._replace(documents=min(drawn.documents, count * drawn.shard)), query_rows)
    half, whole = [child(run, route) for run in (runs[parts // 2], *runs.values())][1:]  # the first one compiles
    more, query_parts = parts - parts // 2, -(-drawn.queries // query_rows)
    return Marginal((whole.index - half.index) / more, (whole.search - half.search) / (more * query_parts), whole.mib)


if __name__ == "__main__":
    processes.die_with_parent()
    print(json.dumps(measured(Path(sys.argv[1]), sys.argv[2])._asdict()))
