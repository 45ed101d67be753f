"""The probe's pool: queries whose three-route union went to the LLM judge whole. Source: spec, "Probe"."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from lib import contracts, corpus, keys
from lib.judge import answers
from lib.retrieval import fusion, parts
from lib.retrieval.hits import Hits
from lib.stats.auc import auc, auc_by_query
from lib.stats.bootstrap import mean_interval
from lib.stats.orders import compare


class Pool(NamedTuple):
    """The probe queries, ascending: their lists, source pages (-1 for none) and judged pairs.

    judged has one row a pair of the union: query, doc, answer (ok, unevaluable, withdrawn for the source page,
    or the class of the gap) and score (null unless ok).
    """

    query: np.ndarray
    source_doc: np.ndarray
    routes: dict[str, Hits]
    judged: pd.DataFrame

    def keys(self, score: int) -> np.ndarray:
        """The pairs of that score as sorted `lib.keys`; gaps, unevaluable and source pages have none."""
        rows = self.judged[self.judged["score"] == score]
        return np.sort(keys.of_pairs(rows["query"].to_numpy(), rows["doc"].to_numpy()))


def load(run: str | Path, routes: Sequence[str]) -> Pool:
    """Read the probe of a run, the union of those routes, as `answers/probe` has it."""
    run, told = Path(run), dict(answers.read(run, "probe", ["query", "doc", "answer", "score"]))
    query, source, judged, docs = [], [], [], {name: [] for name in routes}
    for part, line in zip(corpus.parts(run, "queries"), contracts.parts(run / "intents" / "probe"), strict=True):
        rows = np.array(line["probed"], np.int32)  # also those without any hit
        query.append(rows)
        judged.append(told[part.shard])
        source.append(corpus.queries(run, part.shard, ["source_doc"])["source_doc"].fill_null(-1).to_numpy()[rows - part.first])
        for name, found in parts.distinct_lists(run, part.shard, routes).items():
            docs[name].append(Hits(found.doc[rows - part.first], found.score[rows - part.first]))
    lists = {name: Hits(*map(np.concatenate, zip(*found, strict=True))) for name, found in docs.items()}
    return Pool(np.concatenate(query), np.concatenate(source), lists, pa.concat_tables(judged).to_pandas())


def orders(pool: Pool, weights: Mapping[str, int], k: int) -> dict[str, np.ndarray]:
    """The three orders, each int32[queries, places]: the dense route, best rank over the routes, weighted RRF."""
    return {
        "dense": pool.routes["dense"].doc,
        "best rank": fusion.best_rank(pool.routes).doc,
        "weighted RRF": fusion.weighted_rrf(pool.routes, weights, k).doc,
    }


def orders_table(pool: Pool, weights: Mapping[str, int], k: int, seed: int = 0) -> pd.DataFrame:
    """Positives a query in the first places of the three orders (see `orders.compare`)."""
    return compare(orders(pool, weights, k), pool.query, pool.keys(2), pool.source_doc, seed)


def answered(pool: Pool) -> pd.DataFrame:
    """How the pairs of the pool were answered: one row an answer, with 0, 1 and 2 apart; they sum to the pool."""
    kind = np.where(pool.judged["answer"] == "ok", "score " + pool.judged["score"].astype("Int64").astype(str), pool.judged["answer"])
    counts = pd.Series(kind, dtype=object).value_counts().sort_index()
    return pd.DataFrame({"answer": counts.index, "pairs": counts.to_numpy()})


def auc_table(pool: Pool, scored: pa.Table, weights: Mapping[str, int], k: int, seed: int = 0) -> pd.DataFrame:
    """Score 2 against score 0: the reranker beside weighted RRF at full depth, on the same pairs.

    scored: contract `rerank`, the pairs of the queries in the AUC probe. Pooled over the pairs, and the mean inside
    a query over the queries that have both classes, with its interval over them. Left out and counted: score 1,
    null (unevaluable) and gaps. A judged pair of those queries without a reranker score raises ValueError.
    """
    rerank = scored.select(["query", "doc", "score"]).to_pandas().rename(columns={"score": "reranker"})
    judged = pool.judged[pool.judged["query"].isin(rerank["query"].unique()) & (pool.judged["answer"] != "withdrawn")]
    both = judged.merge(rerank, on=["query", "doc"], how="left", validate="one_to_one")
    if both["reranker"].isna().any():
        raise ValueError(f"{int(both['reranker'].isna().sum())} of {len(both)} judged pairs have no reranker score; score the pool again")
    depth = sum(lists.doc.shape[1] for lists in pool.routes.values())
    fused = fusion.weighted_rrf(pool.routes, weights, k, depth)
    there = fused.doc >= 0
    rrf = pd.DataFrame({"query": np.broadcast_to(pool.query[:, None], fused.doc.shape)[there], "doc": fused.doc[there], "weighted RRF": fused.score[there]})
    both = both.merge(rrf, on=["query", "doc"], validate="one_to_one")  # every judged pair stands in a route
    used = both[both["score"].isin([0, 2])]
    left_out = {"score 1": int((both["score"] == 1).sum()), "unevaluable": int((both["answer"] == "unevaluable").sum())}
    left_out["gaps"] = len(both) - len(used) - sum(left_out.values())
    query, positive = used["query"].to_numpy(), (used["score"] == 2).to_numpy()
    rows = []
    for order in ("reranker", "weighted RRF"):
        score = used[order].to_numpy(dtype=np.float64)
        inside = auc_by_query(query, score, positive)
        mean = mean_interval(inside[~np.isnan(inside)], seed=seed)
        rows.append({"order": order, "queries": int(rerank["query"].nunique()), "score 2": int(positive.sum()), "score 0": int((~positive).sum()), **left_out,
                     "pooled AUC": auc(score, positive), "AUC in a query": mean.mean, "low": mean.low, "high": mean.high, "queries with both": mean.n})
    return pd.DataFrame(rows)
