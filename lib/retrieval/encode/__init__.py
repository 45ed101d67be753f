"""The dense vectors of a run by a transformers model: any encoder of a folder, read packed, by document and by query part.

`write` is what the search calls: `encoder` names latent semantic analysis ("lsa", the sample's), the small model of the
extra `minilm`, or a folder. Queries get the prefix, documents none; the vectors are normalised once, here.
Source: spec, "v1: the dense route only" (Qwen3-Embedding-4B).
"""

import sys
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from lib import corpus, engine, paths
from lib.engine import Stage
from lib.retrieval import children, dense, lsa, model_folder, vectors
from lib.retrieval.encode import minilm, texts

DEFAULTS = {"pooling": "last", "prefix_file": "prompts/query_prefix.txt", "query_tokens": 512, "document_tokens": 32_768, "row_tokens": 65_536}


def write(config: dict, workers: int | str = 1) -> None:
    """Bring `vectors` and `query_vectors` up to date by the encoder that `config` names; "lsa" where it names none.

    lsa takes `dimensions` and `seed`, a model what `prepared` says. A model runs in `workers` children, one a device.
    """
    if config.get("encoder", "lsa") == "lsa":
        for stage in (lsa.document_vectors, lsa.query_vectors):
            engine.map(stage, config, workers)
        return
    config = prepared(config)
    own = model_folder.pooling(config["encoder_folder"])
    if own and own != config["encoder"]["pooling"]:
        print(f"the model of {paths.shown(config['encoder_folder'])} says that it pools by {own}, and pooling is {config['encoder']['pooling']}",
              file=sys.stderr, flush=True)
    for stage, limit in ((document_vectors, "document_tokens"), (query_vectors, "query_tokens")):
        lines = children.map(stage, config, workers)
        cut, rows, tokens = (sum(line[name] for line in lines) for name in ("cut", "rows", "tokens"))
        print(f"{stage.out}: {rows:,} texts, {tokens:,} tokens, {cut:,} texts cut at {config[limit]:,} tokens", file=sys.stderr, flush=True)


def prepared(config: dict) -> dict:
    """The configuration of the two stages: `encoder` becomes what both depend on, `prefix` the query prefix, `encoder_folder` where the model lies.

    From `encoder` (minilm or a folder) and, each with its default in DEFAULTS: `pooling`, last or mean; `prefix_file`, the
    query prefix, "" for none; `query_tokens` and `document_tokens`, which count prefix and special tokens; `row_tokens` of a packed row.
    """
    given = DEFAULTS | {name: config[name] for name in DEFAULTS if name in config}
    folder = minilm.folder() if config["encoder"] == "minilm" else paths.source(config["encoder"])
    if not folder.is_dir():
        raise ValueError(f"the encoder {config['encoder']} is no folder ({folder}); take lsa, minilm, or the folder of a transformers model")
    sha256, most = model_folder.sha256(folder), model_folder.positions(folder)
    for name in ("query_tokens", "document_tokens"):
        if most is not None and given[name] > most:
            raise ValueError(f"{name} is {given[name]} and {paths.shown(folder)} reads at most {most} tokens; take {name}={most} or less")
        if given[name] > given["row_tokens"]:
            raise ValueError(f"{name} is {given[name]} and row_tokens {given['row_tokens']}; a row holds at least the longest text")
    texts.reader(str(folder), given["pooling"])  # refused here rather than in a child
    known = {"sha256": sha256} | {name: given[name] for name in ("pooling", "row_tokens")}
    own = {name: given[name] for name in ("query_tokens", "document_tokens")} | {"prefix": model_folder.prompt(given["prefix_file"])}
    return config | own | {"encoder": known, "encoder_folder": str(folder)}


@lru_cache(maxsize=1)
def _opened(folder: str, sha256: str, pooling: str):
    """The model and the reader, once a process; ValueError where the folder is not the one that was prepared."""
    from lib.retrieval.encode import model  # torch

    model_folder.check(folder, sha256)
    return model.load(folder), texts.reader(folder, pooling)


def _encode(table: str, shard: str, config: dict) -> dict:
    from lib.retrieval.encode import model

    run, encoder = Path(config["run"]), config["encoder"]
    ready, reader = _opened(config["encoder_folder"], encoder["sha256"], encoder["pooling"])
    column, out = ("docid", "vectors") if table == "documents" else ("qid", "query_vectors")
    given = (corpus.documents if table == "documents" else corpus.queries)(run, shard, [column, "text"])
    prefix, limit = ("", config["document_tokens"]) if table == "documents" else (config["prefix"], config["query_tokens"])
    ids, cut = texts.read(reader, [prefix + text for text in given["text"].to_pylist()], limit)
    names = [f"row {row} ({name})" for row, name in enumerate(given[column].to_pylist(), corpus.part_of(table, config, shard).first)]
    if len(empty := np.flatnonzero(ids.lengths == 0)):
        raise ValueError(f"{names[empty[0]]} of {table} has no token ({len(empty)} such texts in {shard}), so no vector; "
                         "leave such texts out, or take a model whose tokenizer adds special tokens")
    found = dense.normalise(model.vectors(ready, ids, encoder["pooling"], encoder["row_tokens"]), names)
    line = vectors.write(found, run / out / f"{shard}.parquet")
    return line | {"tokens": int(ids.lengths.sum()), "cut": cut, "packs": ready.packs, "attention": ready.attention}


document_vectors = Stage(
    "lib.retrieval.encode:document_vectors", "vectors", "vectors", ("documents",), ("encoder", "document_tokens"),
    partial(corpus.shards, "documents"), partial(_encode, "documents"),
)
query_vectors = Stage(
    "lib.retrieval.encode:query_vectors", "vectors", "query_vectors", ("queries",), ("encoder", "prefix", "query_tokens"),
    partial(corpus.shards, "queries"), partial(_encode, "queries"),
)
