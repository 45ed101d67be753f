"""The token ids that the relevance model reads of each document and query: tokenised once, joined to pairs in memory.

Two stages, by document part and by query part. No special tokens; documents are cut to `pair_chars` characters first.
The parts are Parquet; beside each lies a flat copy (a hidden file) that is memory-mapped, since training and labelling
read documents in no order, so that a pair costs the bytes of its two lists and no part is held.
"""

import hashlib
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lib import contracts, corpus, engine, files
from lib.engine import Stage
from lib.packed import pairs
from lib.packed.pairs import Cuts, Ragged, Template

BATCH = 64  # texts encoded at once: the encodings of long texts are large


class Mapped:
    """Lists of token ids by row, memory-mapped part by part; `lengths` is int64[rows]."""

    def __init__(self, folder: Path):
        found = [_flat(folder, line) for line in contracts.parts(folder)]
        self._ids = [ids for ids, _ in found]
        self._starts = [starts for _, starts in found]
        self._ends = np.cumsum([len(starts) - 1 for starts in self._starts])
        self.lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(starts) for starts in self._starts)])

    def take(self, rows: np.ndarray) -> Ragged:
        """The lists of `rows` (int[n], repeats kept) in that order; a row that is not there is an IndexError."""
        rows = np.asarray(rows, np.int64)
        outside = rows[(rows < 0) | (rows >= len(self.lengths))]
        if len(outside):
            raise IndexError(f"row {outside[0]} has no tokens; there are {len(self.lengths):,} rows, make the tokens again")
        ends = pairs.ends(self.lengths[rows])
        ids = np.empty(ends[-1], np.int32)
        home = np.searchsorted(self._ends, rows, side="right")
        for i, (part, row) in enumerate(zip(home.tolist(), rows.tolist(), strict=True)):
            starts = self._starts[part]
            at = row - (int(self._ends[part]) - len(starts) + 1)
            ids[ends[i] : ends[i + 1]] = self._ids[part][starts[at] : starts[at + 1]]
        return Ragged(ids, ends)


class Tokens(NamedTuple):
    """The lists of a run."""

    queries: Mapped
    documents: Mapped


def tokenizer_sha256(run: str | Path) -> str:
    """The hash of the run's `tokenizer.json`."""
    return hashlib.sha256(files.read_bytes(Path(run) / "tokenizer.json")).hexdigest()


def config(run: str | Path, pair_chars: int = pairs.DOCUMENT_CHARS) -> dict:
    """The configuration of the two stages."""
    if pair_chars < 1:
        raise ValueError(f"pair_chars is {pair_chars}; a document keeps at least 1 character")
    return {"run": str(run), "pair_chars": pair_chars, "tokenizer": tokenizer_sha256(run)}


def write(run: str | Path, pair_chars: int = pairs.DOCUMENT_CHARS, workers: int | str = 1) -> dict[str, int]:
    """Bring `tokens/documents` and `tokens/queries` up to date; counts of documents, cut ones, queries and tokens."""
    made = config(run, pair_chars)
    of_documents, of_queries = engine.map(documents, made, workers), engine.map(queries, made, workers)
    load(run)  # makes the flat copies, so that the processes that follow only map them
    return {
        "documents": sum(line["rows"] for line in of_documents), "cut documents": sum(line["cut"] for line in of_documents),
        "queries": sum(line["rows"] for line in of_queries), "tokens": sum(line["tokens"] for line in of_documents + of_queries),
    }


def pair_chars(run: str | Path) -> int:
    """The characters that the tokens of a run keep of a document."""
    return contracts.parts(Path(run) / "tokens" / "documents")[0]["pair_chars"]


def load(run: str | Path) -> Tokens:
    """The tokens of a run whose two folders are finished."""
    return Tokens(*(Mapped(Path(run) / "tokens" / name) for name in ("queries", "documents")))


def pair_lengths(tokens: Tokens, query: np.ndarray, doc: np.ndarray, template: Template, limit: int) -> tuple[np.ndarray, Cuts]:
    """Tokens of each pair of rows as the model reads it, int64[n], and how many are cut; no text is read."""
    asked, read, cuts = pairs.kept(tokens.queries.lengths[query], tokens.documents.lengths[doc], template, limit)
    return asked + read + template.tokens, cuts


def join(tokens: Tokens, query: np.ndarray, doc: np.ndarray, template: Template, limit: int) -> tuple[Ragged, Cuts]:
    """The token ids of pairs of rows, by the one rule of `lib.packed.pairs`; each list is read once."""
    (asked, query), (read, doc) = (np.unique(rows, return_inverse=True) for rows in (query, doc))
    return pairs.join(tokens.queries.take(asked), tokens.documents.take(read), query, doc, template, limit)


def _flat(folder: Path, line: dict) -> tuple[np.ndarray, np.ndarray]:
    """(ids memory-mapped int32, starts int64[rows + 1]) of one part; written from the Parquet where they are not there."""
    part = Path(line["part"]).stem
    ids, starts = (folder / f".{part}.{line['sha256'][:16]}.{kind}.npy" for kind in ("ids", "starts"))
    found = _mapped(ids, starts, line["rows"])
    if found is None:
        for old in set(folder.glob(f".{part}.*.npy")) - {ids, starts}:  # who still maps one keeps it
            old.unlink(missing_ok=True)
        column = contracts.read_part("tokens", folder / line["part"])["ids"].combine_chunks()
        for path, values in ((ids, column.flatten().to_numpy()), (starts, column.offsets.to_numpy().astype(np.int64))):
            with files.whole(path) as temporary, open(temporary, "wb") as handle:
                np.save(handle, values)
        found = np.load(ids, mmap_mode="r"), np.load(starts)
    return found


def _mapped(ids: Path, starts: Path, rows: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The flat copies of a part of so many rows, None where they are not there or a piece is missing."""
    try:
        found = np.load(ids, mmap_mode="r"), np.load(starts)
    except (OSError, ValueError, EOFError):
        return None
    return found if len(found[1]) == rows + 1 and found[1][-1] == len(found[0]) else None


def _encode(name: str, shard: str, options: dict) -> dict:
    """Tokenise the texts of one part."""
    run = Path(options["run"])
    texts = (corpus.documents if name == "documents" else corpus.queries)(run, shard, ["text"])["text"]
    tokenizer = corpus.tokenizer(run)
    lists, lengths, cut = [np.empty(0, np.int32)], [0], 0
    for first in range(0, len(texts), BATCH):
        some = texts.slice(first, BATCH).to_pylist()
        if name == "documents":
            cut += sum(len(text) > options["pair_chars"] for text in some)
            some = [pairs.document_start(text, options["pair_chars"]) for text in some]
        for encoding in tokenizer.encode_batch_fast(some, add_special_tokens=False):
            lists.append(np.array(encoding.ids, np.int32))
            lengths.append(len(encoding.ids))
    field = contracts.TABLES["tokens"].field("ids")
    ids = pa.ListArray.from_arrays(pa.array(np.cumsum(lengths, dtype=np.int32)), pa.array(np.concatenate(lists)), type=field.type)
    made = contracts.table("tokens", {"ids": ids})
    line = contracts.write("tokens", made, run / "tokens" / name / f"{shard}.parquet")
    return line | {"tokens": sum(lengths), "cut": cut, "pair_chars": options["pair_chars"]}


def _stage(name: str) -> Stage:
    shards = partial(corpus.shards, name)
    return Stage(f"lib.student.tokens:{name}", "tokens", f"tokens/{name}", (name,), ("pair_chars", "tokenizer"), shards, partial(_encode, name))


documents, queries = _stage("documents"), _stage("queries")
