"""Scoring pairs: what reads a query and a document together and gives one number.

`scorer` names `overlap`, the sample's, or the folder of the spec's zero-shot reranker (Qwen3-Reranker-4B: "the same problem
with the same particulars"), which `qwen` reads; routing and tables see only scores and a name.
Two stages by query part: `pairs`, the short ones at dense ranks 6-20, and `pool`, the probe's for its AUC; `write` maps both.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib import contracts, corpus, engine, paths, text
from lib.contracts import CUT, TOP
from lib.draw import first_by_hash
from lib.engine import Stage
from lib.retrieval import children, fusion, model_folder
from lib.retrieval.parts import distinct_lists, folders
from lib.retrieval.rerank import template

BATCH = 512  # pairs whose texts are in memory at once
DEFAULTS = {"instruction_file": "prompts/rerank_instruction.txt", "document_tokens": template.DOCUMENT_TOKENS, "row_tokens": 65_536}


class Scorer(NamedTuple):
    """`score(queries, documents)` gives float32[n] for n pairs of texts, higher is better; `name` goes into the table."""

    name: str
    score: Callable[[Sequence[str], Sequence[str]], np.ndarray]


def _shared(query: str, document: str) -> float:
    asked, read = text.tokens(query), text.tokens(document)
    found = total = 0
    for n in (1, 2, 3):
        wanted = text.grams(asked, n)
        found += n * len(wanted & text.grams(read, n))
        total += n * len(wanted)
    return found / total if total else 0.0


def overlap(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
    """The share of the query's distinct words, word pairs and triples (weights 1, 2, 3) that the document holds, 0 to 1."""
    return np.array([_shared(*pair) for pair in zip(queries, documents, strict=True)], np.float32)


SCORERS = {scorer.name: scorer for scorer in (Scorer("overlap", overlap),)}


def scorer(name: str) -> Scorer:
    """A scorer by its name."""
    if name not in SCORERS:
        raise ValueError(f"there is no scorer {name!r}; take one of {', '.join(SCORERS)}, or the folder of a Qwen3-Reranker")
    return SCORERS[name]


def write(config: dict, workers: int | str = 1) -> None:
    """Bring `rerank` and `rerank_pool` up to date; `config` is that of the stages, and a model takes what `prepared` says.

    workers: processes; those of a model are children, one a device.
    """
    config = prepared(config)
    mapped = engine.map if isinstance(config["scorer"], str) else children.map
    for stage in (pairs, pool):
        mapped(stage, config, workers)


def prepared(config: dict) -> dict:
    """The configuration of the stages: where `scorer` is a folder, it becomes all that the scores depend on, and `scorer_folder` says where.

    Besides, each with its default in DEFAULTS: `instruction_file`, `document_tokens` (ids kept of a document), `row_tokens`.
    """
    if config["scorer"] in SCORERS or not (folder := paths.source(config["scorer"])).is_dir():
        scorer(config["scorer"])
        return config
    given = DEFAULTS | {name: config[name] for name in DEFAULTS if name in config}
    instruction = model_folder.prompt(given.pop("instruction_file"))
    if not instruction:
        raise ValueError("the reranker has no instruction; let instruction_file name one, such as prompts/rerank_instruction.txt")
    known = {"name": folder.name, "sha256": model_folder.sha256(folder), "instruction": instruction}
    return config | {"scorer": known | given, "scorer_folder": str(folder)}


def _scorer(config: dict) -> Scorer:
    known = config["scorer"]
    return scorer(known) if isinstance(known, str) else _opened(config["scorer_folder"], **known)


@lru_cache(maxsize=1)
def _opened(folder: str, sha256: str, **known) -> Scorer:
    """The model, once a process; ValueError where the folder is not the one that was prepared."""
    from lib.retrieval.rerank import qwen  # torch

    model_folder.check(folder, sha256)
    return qwen.scorer(folder, **known)


def score_pairs(by: Scorer, queries: Sequence[str], documents: Sequence[str], name: Callable[[int], tuple[str, str]]) -> np.ndarray:
    """float32[n]; ValueError with the first pair whose score is not finite, `name(i)` is its qid and docid."""
    scores = np.asarray(by.score(queries, documents))
    if scores.shape != (len(queries),) or scores.dtype != np.float32:
        raise ValueError(f"the scorer {by.name} gave {scores.dtype}{list(scores.shape)} for {len(queries)} pairs; it gives float32, one a pair")
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        qid, docid = name(bad[0])
        more = f"{len(bad)} such pairs; mend the scorer and run again"
        raise ValueError(f"the scorer {by.name} gave {scores[bad[0]]} for query {qid} and document {docid}, {more}")
    return scores


def short_pairs(dense: np.ndarray, short: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(query int32[n], place int64[n]) of the short documents at dense ranks 6-20, by query, then rank.

    dense int32[queries, >= 20], -1 after the last hit; short bool[documents]. A source page is a pair like any other,
    a document that an imported route repeats is one at its best rank only.
    """
    first = fusion.rank_in(dense, dense[:, :CUT]) == np.arange(1, CUT + 1)
    wanted = first & short[np.maximum(dense[:, :CUT], 0)]
    wanted[:, :TOP] = False
    query, place = np.nonzero(wanted)
    return query.astype(np.int32), place


def pool_pairs(lists: Sequence[np.ndarray], query: np.ndarray, source_doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(query, doc), int32[n] each: the union of the routes' lists of some queries, without the source page.

    lists: int32[queries, any], -1 after the last hit; query int[m], rows of the lists; source_doc int32[queries], -1 for none.
    By query in the order given, then corpus row.
    """
    union = [(int(q), np.setdiff1d(np.concatenate([route[q] for route in lists]), [-1, source_doc[q]])) for q in query]
    query_column = np.repeat([q for q, _ in union], [len(docs) for _, docs in union]).astype(np.int32)
    return query_column, np.concatenate([np.empty(0, np.int32), *(docs for _, docs in union)]).astype(np.int32)


def _table(config: dict, shard: str, query: np.ndarray, doc: np.ndarray) -> pa.Table:
    """Score pairs of one part (query: rows inside the part); documents longer than `long_tokens` are cut to that many tokens."""
    run, by = config["run"], _scorer(config)
    asked, texts, tokenizer = corpus.queries(run, shard, ["qid", "text"]), corpus.Texts(run), corpus.tokenizer(run)
    length = corpus.all_documents(run, ["n_tokens"])["n_tokens"].to_numpy()
    queries, scores = asked["text"].to_pylist(), np.empty(len(query), np.float32)
    by_document = np.argsort(doc, kind="stable")  # each part of the documents is read once
    for at in range(0, len(query), BATCH):
        some = by_document[at : at + BATCH]
        documents = [
            corpus.cut_tokens(tokenizer, document, config["long_tokens"]) if length[row] > config["long_tokens"] else document
            for row, document in zip(doc[some], texts.texts(doc[some]), strict=True)
        ]

        def name(i: int, some=some) -> tuple[str, str]:
            docids = corpus.all_documents(run, ["docid"])["docid"]
            return asked["qid"][int(query[some[i]])].as_py(), docids[int(doc[some[i]])].as_py()

        scores[some] = score_pairs(by, [queries[q] for q in query[some]], documents, name)
    first = corpus.part_of("queries", config, shard).first
    return contracts.table("rerank", {"query": query + np.int32(first), "doc": doc, "score": scores, "model": [by.name] * len(query)})


def _pairs(shard: str, config: dict) -> dict:
    dense = distinct_lists(config["run"], shard, ["dense"])["dense"].doc
    short = corpus.all_documents(config["run"], ["n_tokens"])["n_tokens"].to_numpy() <= config["long_tokens"]
    query, place = short_pairs(dense, short)
    return contracts.write("rerank", _table(config, shard, query, dense[query, place]), Path(config["run"]) / "rerank" / f"{shard}.parquet")


def _pool(shard: str, config: dict) -> dict:
    run, part = Path(config["run"]), corpus.part_of("queries", config, shard)
    if config["auc_queries"] < 1:
        raise ValueError(f"auc_queries is {config['auc_queries']}; the AUC needs at least 1 query")
    probed = np.array([row for line in contracts.parts(run / "intents/probe") for row in line["probed"]], np.int32)
    probed = first_by_hash(probed, config["auc_queries"], config["seed"])
    here = probed[(probed >= part.first) & (probed < part.first + part.rows)] - part.first
    source = corpus.queries(run, shard, ["source_doc"])["source_doc"].fill_null(-1).to_numpy()
    query, doc = pool_pairs([route.doc for route in distinct_lists(run, shard, config["routes"]).values()], here, source)
    line = contracts.write("rerank", _table(config, shard, query, doc), run / "rerank_pool" / f"{shard}.parquet")
    return line | {"queries": len(here)}


_by_query = partial(corpus.shards, "queries")
pairs = Stage(
    "lib.retrieval.rerank:pairs", "rerank", "rerank", ("documents", "queries", "hits/dense"),
    ("scorer", "long_tokens"), _by_query, _pairs,
)
pool = Stage(
    "lib.retrieval.rerank:pool", "rerank", "rerank_pool",
    lambda config: ("documents", "queries", "intents/probe", *folders(config["routes"])),
    ("scorer", "long_tokens", "auc_queries", "routes", "seed"), _by_query, _pool,
)
