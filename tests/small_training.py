"""A small run with labelled pairs, and one arm trained on it in this process."""

import os
import socket
from pathlib import Path

import numpy as np
from small_corpus import tokenizer_file

from lib import contracts, corpus
from lib.student import checkpoints, examples, tokens

OPTIONS = {"steps": 6, "batch": 5, "learning_rate": 0.01, "warmup": 2, "checkpoint_every": 3, "row_tokens": 96, "pair_tokens": 48}
ARM = {"layers": 1, "hidden": 8, "heads": 2}


def make(run: Path, queries: int = 12, documents: int = 30, pairs: int = 4, texts: list[str] | None = None) -> Path:
    """Queries in parts of 5, documents in parts of 8, of each query `pairs` labelled ones: half picks, half long."""
    words = "sum square root of the cat even odd prime number mat".split()
    rng = np.random.default_rng(1)
    texts = texts or [f"query {i}: the {' '.join(rng.choice(words, 3))}" for i in range(queries)]
    corpus.write(
        run, [{"docid": f"d{i}", "text": f"page {i}, {' '.join(rng.choice(words, 2 + i % 17))}."} for i in range(documents)],
        [{"qid": f"q{i}", "text": text} for i, text in enumerate(texts)],
        tokenizer_file(run.parent / "tokenizer"), document_rows=8, query_rows=5,
    )
    answers(run, [answer(query, (3 * query + i) % documents, (query + i) % 3, "long" if i % 2 else "pick")
                  for query in range(len(texts)) for i in range(pairs)])
    return run


def answer(query: int, doc: int, score: int | None, stage: str = "pick", said: str = "ok") -> dict:
    """A row of answers/v1."""
    return {
        "query": query, "doc": doc, "version": "v1", "stage": stage, "round": 1, "reason": "", "rank": 7, "key": "", "task_id": "",
        "answer": said, "score": score, "query_evaluable": None if score is None else True, "prompt_sha256": None, "model": None,
    }


def answers(run: Path, rows: list[dict]) -> None:
    """Write answers/v1, by query part."""
    lines = []
    for part in corpus.parts(run, "queries"):
        here = [row for row in rows if part.first <= row["query"] < part.first + part.rows]
        lines.append(contracts.write("answers", contracts.table("answers", here), run / f"answers/v1/{part.shard}.parquet"))
    contracts.finish(run / "answers/v1", lines)


def inputs(run: Path, held_queries: int = 3) -> Path:
    """Tokens and examples of a run."""
    tokens.write(run)
    examples.write(run, held_queries=held_queries)
    return run


def config(run: Path, named: dict[str, dict], **options) -> dict:
    """What the trainer is given."""
    return {"run": str(run), "arms": named, "options": OPTIONS | options}


def train_here(run: Path, arm: str = "larger", settings: dict = ARM, **options) -> Path:
    """Train one arm in this process, the only one, and give its last checkpoint."""
    import torch.distributed as dist

    from lib.student import loop

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    try:
        loop.run(config(run, {arm: settings}, **options))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return checkpoints.find(run, arm)
