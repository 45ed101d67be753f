"""Write the documents and queries of a run, streaming, all or nothing."""

import itertools
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from lib import contracts, files, ids, processes
from lib.corpus import index, replace, token_table
from lib.corpus.lines import Place, Refused, lines

DOCUMENT_ROWS = 4096
QUERY_ROWS = 1024
Rows = Iterable[dict | tuple[Place, dict]]


def write(
    run: str | Path,
    documents: Rows | None,
    queries: Rows,
    tokenizer: str | Path | None = None,
    document_rows: int = DOCUMENT_ROWS,
    query_rows: int = QUERY_ROWS,
    keep_queries: str | Path = "all",
) -> dict[str, int]:
    """Fill `documents/` and `queries/` of a run folder from rows, and give the counts.

    A document is `{docid, text, removed?}`, a query `{qid, text, source_docid?}`; rows may come as
    (place, row), the place is what messages name. Each is read once and only one part of rows
    (`document_rows`, `query_rows`) is held, with 28 bytes an id. `tokenizer` is a tokenizer.json or a
    folder with one; it is copied into the run. Without documents those of the run stay and only the
    queries are written. `keep_queries`: "all", or a file with one qid a line that go on to retrieval.

    Raises Refused, naming the place, for an illegal or repeated id, a text with a lone surrogate, a
    source_docid that is no document, and a kept qid that is no query. Then, and after any other error, the
    tables are what they were. The same rows give the same bytes.
    """
    run = Path(run)
    with processes.lock(run), replace.staged(run, "queries") as new_queries:
        if documents is None:
            docids = index.build(run, "documents")
            counts = {}
            counts |= _queries(new_queries, queries, query_rows, docids, keep_queries)
            replace.swap(run, ["queries"])
        else:
            if tokenizer is None:
                raise ValueError("documents need a tokenizer for their token table; name a tokenizer.json")
            with replace.staged(run, "documents") as new_documents:
                encoder, encoder_bytes = token_table.load(tokenizer), token_table.file(tokenizer).read_bytes()
                counts, docids = _documents(new_documents, documents, document_rows, encoder)
                counts |= _queries(new_queries, queries, query_rows, docids, keep_queries)
                (run / "queries" / "manifest.json").unlink(missing_ok=True)  # its rows point into the old documents
                with files.whole(run / "tokenizer.json") as temporary:
                    temporary.write_bytes(encoder_bytes)
                replace.swap(run, ["documents", "queries"])
        counts["imports to repeat"] = replace.unfinish_imports(run)
    return counts


def _documents(folder: Path, rows: Rows, size: int, tokenizer) -> tuple[dict[str, int], index.Index]:
    counts = {"documents": 0, "removed": 0, "tokens": 0}

    def part(batch: list[dict], first: int) -> pa.Table:
        texts = [row["text"] for row in batch]
        tokens = token_table.count(tokenizer, texts)
        removed = [row.get("removed", False) for row in batch]
        counts["documents"] += len(batch)
        counts["removed"] += sum(removed)
        counts["tokens"] += sum(tokens)
        return contracts.table("documents", {
            "docid": [row["docid"] for row in batch], "text": texts,
            "n_chars": [len(text) for text in texts], "n_tokens": tokens, "removed": removed,
        })

    known = _Known("docid")
    _parts("documents", folder, known.checked(rows, size, {"text": str, "removed": bool}, needed=("docid", "text")), part)
    return counts, known.index


def _queries(folder: Path, rows: Rows, size: int, docids: index.Index, keep: str | Path) -> dict[str, int]:
    kept = None if keep == "all" else _Known("qid")
    if kept:
        named = ((place, {"qid": line}) for place, line in lines(keep))
        for _ in kept.checked(named, QUERY_ROWS, {}, needed=("qid",)):
            pass
    counts = {"queries": 0, "with a source page": 0, "kept": 0}
    seen = np.zeros(len(kept.index) if kept else 0, dtype=bool)

    def part(batch: list[dict], first: int) -> pa.Table:
        qids = [row["qid"] for row in batch]
        sources = [row.get("source_docid") for row in batch]
        found = iter(docids.rows([source for source in sources if source is not None]).tolist())
        source_rows = [None if source is None else next(found) for source in sources]
        if -1 in source_rows:
            at = source_rows.index(-1)
            raise Refused(f"{known.place(first + at)}: the query {qids[at]!r} has the source_docid {sources[at]!r}, which is no document")
        keeps = np.ones(len(batch), dtype=bool)
        if kept:
            places = kept.index.rows(qids)
            keeps = places >= 0
            seen[places[keeps]] = True
        counts["queries"] += len(batch)
        counts["with a source page"] += sum(source is not None for source in sources)
        counts["kept"] += int(keeps.sum())
        return contracts.table("queries", {
            "qid": qids, "text": [row["text"] for row in batch],
            "source_docid": sources, "source_doc": source_rows, "keep": keeps,
        })

    known = _Known("qid")
    kinds = {"text": str, "source_docid": (str, type(None))}
    _parts("queries", folder, known.checked(rows, size, kinds, needed=("qid", "text")), part)
    if not seen.all():
        row = int(np.flatnonzero(~seen)[0])
        raise Refused(f"{kept.place(row)} keeps a query that is not among the {counts['queries']:,} queries")
    return counts


def _parts(table: str, folder: Path, batches: Iterator[list[dict]], part: Callable[[list[dict], int], pa.Table]) -> None:
    made, first = [], 0
    for batch in batches:
        made.append(contracts.write(table, part(batch, first), folder / f"part-{len(made):05d}.parquet"))
        first += len(batch)
    if not made:
        raise Refused(f"there are no {table} in what was given; a run needs at least one")
    contracts.finish(folder, made)


class _Known:
    """The ids read so far and the places they came from."""

    def __init__(self, name: str):
        self._name = name
        self.index = index.Index()
        self._lines = array("q")
        self._files: list[tuple[int, str]] = []  # (first row, file)

    def place(self, row: int) -> Place:
        at = bisect_right(self._files, row, key=lambda entry: entry[0]) - 1
        return Place(self._files[at][1], self._lines[row])

    def checked(self, rows: Rows, size: int, kinds: dict, needed: tuple[str, ...]) -> Iterator[list[dict]]:
        """Batches of `size` rows, each row of the declared fields and each id legal and new."""
        placed = (item if isinstance(item, tuple) else (Place(f"{self._name}s", n), item) for n, item in enumerate(rows, start=1))
        while batch := list(itertools.islice(placed, size)):
            for place, row in batch:
                self._check(place, row, kinds, needed)
                if not self._files or self._files[-1][1] != place.file:
                    self._files.append((len(self._lines), place.file))
                self._lines.append(place.line)
            values = [row[self._name] for _, row in batch]
            repeated = self.index.add(values)
            if repeated:
                first, again = map(self.place, repeated)
                value = values[repeated[1] - len(self.index)]
                raise Refused(f"{again} repeats the {self._name} {value!r} of {first}; ids are unique")
            yield [row for _, row in batch]

    def _check(self, place: Place, row: dict, kinds: dict, needed: tuple[str, ...]) -> None:
        missing = [name for name in needed if name not in row]
        unknown = [name for name in row if name != self._name and name not in kinds]
        if missing or unknown:
            raise Refused(f"{place} has the fields {', '.join(row)}; a row takes {', '.join([self._name, *kinds])}")
        for name, kind in kinds.items():
            if name in row and not isinstance(row[name], kind):
                raise Refused(f"{place}: {name} of {row[self._name]!r} is a {type(row[name]).__name__}")
        for name in (self._name, "source_docid"):
            fault = ids.fault(row[name]) if name == self._name or row.get(name) is not None else None
            if fault:
                raise Refused(f"{place} has the {name} {row[name]!r}, which {fault}; an id is text without white space")
        try:
            row.get("text", "").encode("utf-8")
        except UnicodeEncodeError as error:
            raise Refused(f"{place}: the text of {row[self._name]!r} holds the lone surrogate U+{ord(error.object[error.start]):04X} at {error.start}") from error
