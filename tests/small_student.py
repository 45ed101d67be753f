"""A run with tokens, routed pairs and a checkpoint of a tiny untrained model, for the tests of labelling."""

import json
from pathlib import Path

import numpy as np

from lib import contracts, corpus, files
from lib.packed import pairs
from lib.routing import intents
from lib.student import checkpoints, tokens
from small_corpus import tokenizer_file

QUERIES, DOCUMENTS, PAIR_TOKENS = 12, 50, 40
OPTIONS = {"row_tokens": 200, "gate_pairs": 48, "unit_tokens": 500, "seed": 3}
WORDS = "the sum of squares numbers cat mat on a prime triangle angle proof lemma".split()


def text(seed: int, least: int, most: int) -> str:
    rng = np.random.default_rng(seed)
    return " ".join(rng.choice(WORDS, rng.integers(least, most)))


def student_rows(name: str, query: int) -> list[int]:
    """The documents that a set sends to the model for a query; two parts of v2 have none."""
    if name == "v2":
        return [query] if query == 3 else []
    return [(7 * query + 3 * i) % DOCUMENTS for i in range(14 if query < 8 else 8)]


def make(run: Path) -> Path:
    """Twelve queries in three parts, fifty documents in three; 144 pairs of v1 and one of v2; a checkpoint at step 20."""
    documents = [{"docid": f"d{row}", "text": text(row, 4, 60)} for row in range(DOCUMENTS)]
    queries = [{"qid": f"q{row}", "text": text(1000 + row, 3, 9)} for row in range(QUERIES)]
    corpus.write(run, documents, queries, tokenizer_file(run.parent / "tokenizer"), 20, 4)
    tokens.write(run, pair_chars=150)
    for name in ("v1", "v2"):
        lines = []
        for part in corpus.parts(run, "queries"):
            found = [(q, d) for q in range(part.first, part.first + part.rows) for d in student_rows(name, q)]
            query, doc = np.array(found, np.int32).reshape(-1, 2).T
            rows = [intents.intents({"query": query, "doc": doc}, "student", name, "short", "a test", None),
                    intents.intents({"query": query[:1], "doc": doc[:1]}, "llm", name, "pick", "a test", 100)]
            table = contracts.pa.concat_tables(rows)
            lines.append(contracts.write("intents", table, run / "intents" / name / f"{part.shard}.parquet"))
        contracts.finish(run / "intents" / name, lines)
    checkpoint(run, "larger", 20)
    return run


def checkpoint(run: Path, arm: str, step: int, seed: int = 0) -> Path:
    """A checkpoint as training leaves it, with 80 held-out pairs as the model scores them."""
    import torch
    from safetensors.torch import save_file

    from lib.student import model, score, state

    torch.set_num_threads(1)
    folder, tokenizer = checkpoints.folder(run, arm, step), corpus.tokenizer(run)
    sizes = {"layers": 1, "hidden": 16, "heads": 2, "kv_heads": 2, "head_dim": 8, "intermediate": 32}
    scorer = model.build({}, sizes, tokenizer, seed, PAIR_TOKENS, torch.device("cpu"), 0.9)
    torch.nn.init.normal_(scorer.head.weight, std=0.2)
    scorer.backbone.save_pretrained(folder / "model")
    save_file(dict(scorer.head.state_dict()), folder / "head.safetensors")
    record = {
        "arm": arm, "step": step, "key": "", "dtype": "float32", "attention": scorer.attention, "packs": scorer.packs,
        "weights_sha256": checkpoints.weights_sha256(folder), "tokenizer_sha256": tokens.tokenizer_sha256(run),
        "template": list(pairs.template(tokenizer)), "pair_tokens": PAIR_TOKENS, "pair_chars": 150,
        "libraries": state.libraries(scorer.attention), "config": model.sizes_of(scorer.backbone),
    }
    files.write_json(folder / "record.json", record)
    query, doc = np.repeat(np.arange(QUERIES), 8)[:80].astype(np.int32), np.tile(np.arange(8) * 5, QUERIES)[:80].astype(np.int32)
    student = score.load(folder)
    given, _ = tokens.join(tokens.load(run), query, doc, student.template, PAIR_TOKENS)
    predicted = score.score(student, given, 400)
    rows = {"query": query, "doc": doc, "label": np.zeros(80, np.int8), "prediction": predicted}
    contracts.write("predictions", contracts.table("predictions", rows), folder / "heldout.parquet")
    return folder


def edit(path: Path, **changes) -> None:
    """Change some values of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
