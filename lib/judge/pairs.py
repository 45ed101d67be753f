"""The pairs of one part of the intents as the judge is sent them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, corpus, paths
from lib.judge import attacks, prompt, store
from lib.judge.prompt import Judge

CHUNK = 64  # pairs whose texts are in memory at once


class Pair(NamedTuple):
    """A rendered pair; `row` is its place in the table it was made from, query and doc are corpus rows."""

    row: int
    query: int
    doc: int
    key: str
    task: str
    messages: list[dict]


def intents(run: str | Path, intents_set: str, part: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The pairs of one part of a set that go to the LLM, withdrawn ones included; all columns, or some."""
    source = Path(run) / "intents" / intents_set / f"{part}.parquet"
    data = contracts.read_part("intents", source, columns and list(dict.fromkeys([*columns, "judge", "version"])))
    stated = set(data["version"].unique().to_pylist())
    if not stated <= {store.SETS[intents_set]}:
        raise contracts.ContractError(
            f"{paths.shown(source)} holds the versions {sorted(stated)}, the set is {store.SETS[intents_set]!r}; route again"
        )
    return data.select(columns or data.column_names).filter(pc.equal(data["judge"], "llm"))


def parts(run: str | Path, intents_set: str) -> list[str]:
    """The part names of a finished set of intents."""
    return [Path(line["part"]).stem for line in contracts.parts(Path(run) / "intents" / intents_set)]


class Pairs:
    """Renders pairs of one run for one judge; keeps all document ids and a few parts of texts in memory."""

    def __init__(self, run: str | Path, by: Judge):
        self.run, self.by = run, by
        self._texts = corpus.Texts(run)
        self._docids = corpus.all_documents(run, ["docid"])["docid"]
        self._parts = {part.shard: part for part in corpus.parts(run, "queries")}

    def ids(self, part: str) -> tuple[int, list[str], list[str]]:
        """The first query row of a part, and the ids and texts of its queries."""
        if part not in self._parts:
            raise contracts.ContractError(
                f"{paths.shown(self.run)}/queries has no {part}; route again, the intents are of other queries"
            )
        found = corpus.queries(self.run, part, ["qid", "text"])
        return self._parts[part].first, found["qid"].to_pylist(), found["text"].to_pylist()

    def docid(self, doc: int) -> str:
        return self._docids[doc].as_py()

    def tasks(self, part: str, rows: pa.Table) -> list[str]:
        """The task_id of each row."""
        first, qids, _ = self.ids(part)
        return [
            prompt.task_id(qids[query - first], self.docid(doc)) for query, doc in zip(rows["query"].to_pylist(), rows["doc"].to_pylist(), strict=True)
        ]

    def render(self, part: str, rows: pa.Table) -> Iterator[Pair]:
        """The pairs of `rows` (contract `intents`, of one query part); canaries with the attack that is their reason.

        They come by documents, ascending, so that each part of the texts is read once; `Pair.row` says where each stands in `rows`.
        """
        first, qids, queries = self.ids(part)
        canaries = {store.SETS[name] for name in attacks.SETS}
        order = np.argsort(rows["doc"].to_numpy(), kind="stable")
        rows = rows.select(["query", "doc", "max_chars", "version", "reason"]).take(order)
        for start in range(0, rows.num_rows, CHUNK):
            chunk = rows.slice(start, CHUNK).to_pylist()
            texts = self._texts.texts([pair["doc"] for pair in chunk])
            for row, pair, text in zip(order[start : start + CHUNK].tolist(), chunk, texts, strict=True):
                query, doc = pair["query"], pair["doc"]
                task = prompt.task_id(qids[query - first], self.docid(doc))
                text = prompt.cut(text, pair["max_chars"])
                if pair["version"] in canaries:
                    text = attacks.attacked(text, pair["reason"])
                sent = prompt.messages(self.by.prompt, task, queries[query - first], text)
                yield Pair(row, query, doc, prompt.key(sent, self.by), task, sent)
