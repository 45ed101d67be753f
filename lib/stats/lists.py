"""What the routes list: how many hits, how early the source page, how much they share."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib import contracts, corpus
from lib.retrieval import parts


def _lists(run: Path, routes: Sequence[str]) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """For each part of queries: the source pages (-1 for none) and the lists (doc int32) of the kept queries."""
    for part in corpus.parts(run, "queries"):
        table = corpus.queries(run, part.shard, ["source_doc", "keep"])
        keep = table["keep"].to_numpy()
        docs = {name: found.doc[keep] for name, found in parts.distinct_lists(run, part.shard, routes).items()}
        docs["fused"] = contracts.places(contracts.read_part("fused", run / "fused" / f"{part.shard}.parquet", ["doc"])["doc"])[keep]
        yield table["source_doc"].fill_null(-1).to_numpy()[keep], docs


def describe(run: str | Path, routes: Sequence[str]) -> pd.DataFrame:
    """One row a list: kept queries, those with a hit, hits a query, source pages at rank 1 and within 20
    (of the queries that have one), and the share of the top 20 that stands in the dense top 100."""
    sums = {name: np.zeros(6, dtype=np.int64) for name in (*routes, "fused")}
    queries = with_source = 0
    for source, docs in _lists(Path(run), routes):
        queries, with_source = queries + len(source), with_source + int((source >= 0).sum())
        for name, doc in docs.items():
            own, top = (doc == source[:, None]) & (doc >= 0), doc[:, :20]
            inside = (top[:, :, None] == docs["dense"][:, None, :]).any(axis=2) & (top >= 0)
            sums[name] += [(doc[:, 0] >= 0).sum(), (doc >= 0).sum(), own[:, 0].sum(), own[:, :20].sum(), inside.sum(), (top >= 0).sum()]
    return pd.DataFrame([
        {"list": name, "queries": queries, "with hits": int(s[0]), "hits a query": _share(s[1], queries), "with source page": with_source,
         "source page in top 1": _share(s[2], with_source), "source page in top 20": _share(s[3], with_source),
         "top 20 in the dense top 100": _share(s[4], s[5])}
        for name, s in sums.items()
    ])


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None


def source_page_ranks(run: str | Path, routes: Sequence[str]) -> dict[str, np.ndarray]:
    """name -> float[100]: the share of source pages that the route lists at rank 1, 2, ... 100 or better."""
    found, total = {name: np.zeros(contracts.DEPTH) for name in routes}, 0
    for source, docs in _lists(Path(run), routes):
        total += int((source >= 0).sum())
        for name in routes:
            found[name] += ((docs[name] == source[:, None]) & (docs[name] >= 0)).sum(axis=0)
    return {name: np.cumsum(count) / max(total, 1) for name, count in found.items()}
