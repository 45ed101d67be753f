"""The Arrow schema of every table that is written, and the one reader and writer that checks it.

A table is a folder: `part-00000.parquet`, `part-00001.parquet`, ... with a line
`part-00000.json` beside each (rows, sha256, key), and a `manifest.json` that lists the
parts and is written last. A folder without it is not finished, and is not read; nor is one that was
made from folders which hold something else today, which shows by the hashes in their manifests.
"""

import functools
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lib import files, paths, trace

DEPTH = 100  # hits a route keeps for a query
CUT = 20  # fused places a query keeps
TOP = 5  # dense ranks that go to the LLM whatever the length, and are not reranked
VALID = ("ok", "unevaluable")  # what an attempt or an answer is called that is a valid reply
NO_GAP = (*VALID, "withdrawn")  # a withdrawn pair is judged as a source page, before retrieval
TRAINED = ("pick", "long")  # the stages of v1 whose labels are learned from: the rank band that the relevance model labels later


def _places(value: pa.DataType, size: int) -> pa.DataType:
    return pa.list_(pa.field("item", value, nullable=False), size)


def _schema(*columns: tuple[str, pa.DataType], null: str = "") -> pa.Schema:
    """Columns are not null unless named in `null`."""
    return pa.schema([pa.field(name, kind, nullable=name in null.split()) for name, kind in columns])


_text, _i16, _i32, _f32, _f64, _bool = pa.string(), pa.int16(), pa.int32(), pa.float32(), pa.float64(), pa.bool_()

TABLES: dict[str, pa.Schema] = {
    # one row a document, in corpus order: the row number is the document everywhere else
    "documents": _schema(
        ("docid", _text), ("text", pa.large_string()), ("n_chars", _i32), ("n_tokens", _i32), ("removed", _bool)
    ),
    # one row a query; source_doc is the row of the source page, null where the query has none
    "queries": _schema(
        ("qid", _text), ("text", _text), ("source_docid", _text), ("source_doc", _i32), ("keep", _bool),
        null="source_docid source_doc",
    ),
    # one row a document: the dense vector, normalised
    "vectors": _schema(("vector", pa.list_(_f32)),),
    # one row a query, in query order; after the last hit -1 and 0
    "hits": _schema(("doc", _places(_i32, DEPTH)), ("score", _places(_f32, DEPTH))),
    # one row a unit (word or n-gram of the queries) that a document part holds: in how many of its documents
    "counts": _schema(("unit", _i32), ("df", pa.int64())),
    # one row a query: the fused top 20; dense_rank is 0 where the dense route lacks the document
    "fused": _schema(
        ("doc", _places(_i32, CUT)), ("score", _places(_f64, CUT)),
        ("best_rank", _places(_i16, CUT)), ("dense_rank", _places(_i16, CUT)),
    ),
    # one row a pair scored by the reranker
    "rerank": _schema(("query", _i32), ("doc", _i32), ("score", _f32), ("model", _text)),
    # one row a pair sent to one judge; rank is the dense rank, 0 outside the dense list
    "intents": _schema(
        ("query", _i32), ("doc", _i32), ("judge", _text), ("version", _text), ("stage", _text), ("round", _i16),
        ("reason", _text), ("max_chars", _i32), ("rank", _i16), ("withdrawn", _bool),
        null="max_chars",
    ),
    # one row a call, good or bad; query and doc are the rows at the time of the call, task_id names the pair for good
    "attempts": _schema(
        ("key", _text), ("task_id", _text), ("query", _i32), ("doc", _i32), ("version", _text), ("stage", _text), ("round", _i16),
        ("pass", _i16), ("attempt", _i16), ("status", _text), ("score", pa.int8()), ("query_evaluable", _bool),
        ("answer_validity", _text), ("reason_codes", pa.list_(_text)), ("confidence", _f64), ("rationale", _text),
        ("input_tokens", pa.int64()), ("output_tokens", pa.int64()), ("cost", _f64), ("latency", _f64),
        ("request_id", _text), ("prompt_sha256", _text), ("schema_sha256", _text), ("model", _text),
        ("detail", _text), ("reply", _text),
        null="score query_evaluable answer_validity reason_codes confidence rationale input_tokens output_tokens "
        "cost latency request_id detail reply",
    ),
    # one row a pair sent to the LLM: the hash of all that its answer depends on
    "keys": _schema(("key", _text)),
    # one row a pair sent to the LLM: what the attempts say to it. answer is ok, unevaluable, withdrawn, or the class of the gap
    "answers": _schema(
        ("query", _i32), ("doc", _i32), ("version", _text), ("stage", _text), ("round", _i16), ("reason", _text), ("rank", _i16),
        ("key", _text), ("task_id", _text), ("answer", _text), ("score", pa.int8()), ("query_evaluable", _bool),
        ("prompt_sha256", _text), ("model", _text),
        null="score query_evaluable prompt_sha256 model",
    ),
    # one row a document or a query, in its order: the token ids that the relevance model reads of it, before the pair is cut
    "tokens": _schema(("ids", pa.list_(pa.field("item", _i32, nullable=False))),),
    # one row a labelled pair that the relevance model is trained on, or held out
    "examples": _schema(("query", _i32), ("doc", _i32), ("label", pa.int8()), ("held_out", _bool)),
    # one row a held-out pair, as a checkpoint scores it
    "predictions": _schema(("query", _i32), ("doc", _i32), ("label", pa.int8()), ("prediction", _f32)),
    # one row a pair that the relevance model scores; tokens of the pair as it is read
    "student_pairs": _schema(("query", _i32), ("doc", _i32), ("tokens", _i32)),
    # one row a pair scored by the relevance model; checkpoint is ARM/STEP, gate the hash of the gate's record
    "scores": _schema(("query", _i32), ("doc", _i32), ("score", _f32), ("checkpoint", _text), ("gate", _text)),
    # one row a judged pair; label is null where the query cannot be evaluated
    "labels": _schema(
        ("qid", _text), ("docid", _text), ("label", pa.int8()), ("query_evaluable", _bool), ("judge", _text),
        ("version", _text), ("stage", _text), ("round", _i16), ("llm_label", pa.int8()), ("student_score", _f32),
        ("prompt_sha256", _text), ("model", _text),
        null="label llm_label student_score prompt_sha256",
    ),
}


class ContractError(ValueError):
    """A table does not have the schema it was declared with, or its folder is not finished."""


def table(name: str, columns: dict | list[dict]) -> pa.Table:
    """Make a checked table of the declared types from columns, or from a list of rows."""
    schema = TABLES[name]
    if isinstance(columns, list):
        columns = {field.name: [row[field.name] for row in columns] for field in schema}
    if set(columns) != set(schema.names):
        raise ContractError(f"a {name} table has the columns {schema.names}, not {sorted(columns)}")
    made = [_column(name, field, columns[field.name]) for field in schema]
    return check(name, pa.table(made, schema=schema))


def _column(name: str, field: pa.Field, values) -> pa.ChunkedArray:
    try:
        return pa.table([values], schema=pa.schema([field]))[0]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"{name}.{field.name} is declared as {field.type} and cannot hold what was given ({error})") from error


def check(name: str, data: pa.Table) -> pa.Table:
    """Give the table back, or raise ContractError with the first column that is not as declared."""
    schema = TABLES[name]
    if not data.schema.equals(schema):
        for field in schema:
            if field.name not in data.schema.names or not data.schema.field(field.name).equals(field):
                found = data.schema.field(field.name).type if field.name in data.schema.names else "missing"
                raise ContractError(f"{name}.{field.name} is {found}, declared as {field.type}; make it with lib.contracts.table")
        raise ContractError(f"a {name} table has the columns {schema.names} in this order, not {data.schema.names}")
    for field in schema:
        if not field.nullable and data[field.name].null_count:
            raise ContractError(f"{name}.{field.name} has {data[field.name].null_count} nulls and is declared without")
    return data


def write(name: str, data: pa.Table, path: str | Path) -> dict:
    """Write one part and give its manifest line: part, rows, sha256."""
    check(name, data)
    with files.whole(path) as temporary:
        pq.write_table(data, temporary, compression="zstd")
    return {"part": Path(path).name, "rows": data.num_rows, "sha256": files.sha256(path)}


def read_part(name: str, path: str | Path, columns: list[str] | None = None, coded: Sequence[str] = ()) -> pa.Table:
    """Read one part file and check it against the declared schema.

    The texts of the columns `coded` come as numbers of one dictionary a column: to count or compare them takes a quarter of the time.
    """
    trace.record("read", path)
    try:
        found = pq.ParquetFile(path).schema_arrow
    except (OSError, pa.ArrowInvalid) as error:
        raise ContractError(f"{paths.shown(path)} cannot be read as a {name} table ({error}); remove it and run again") from error
    try:
        check(name, found.empty_table())
    except ContractError as error:
        raise ContractError(f"{paths.shown(path)}: {error}") from error
    try:
        read = pq.ParquetFile(path, memory_map=True, read_dictionary=list(coded)).read(columns=columns, use_threads=False)
        return read.unify_dictionaries() if coded else read
    except (OSError, pa.ArrowInvalid) as error:
        raise ContractError(f"{paths.shown(path)} is damaged ({error}); remove it and run again") from error


def finish(folder: str | Path, lines: list[dict], made_from: Sequence[str | Path] = ()) -> None:
    """Mark a folder finished: its manifest names every part, in order.

    It is finished as long as the folders `made_from` hold what they hold now.
    """
    sources = {os.path.relpath(source, folder): contents(source) for source in made_from}
    files.write_json(Path(folder) / "manifest.json", {"parts": lines} | ({"made_from": sources} if sources else {}))


class _Manifest(NamedTuple):
    lines: list[dict]
    contents: str
    made_from: dict[str, str]  # the contents of other folders, by their path from this one; empty in manifests written before there was this


def parts(folder: str | Path) -> list[dict]:
    """The manifest lines of a finished folder; ContractError where it is not finished, or what it was made from has changed.

    So on up to the documents and queries. A folder that is not kept, such as the vectors after the search, is not compared.
    """
    return _current(folder, {}).lines


def contents(folder: str | Path) -> str:
    """The hash of what a finished folder holds."""
    return _current(folder, {}).contents


def lines(folder: str | Path) -> list[dict]:
    """The manifest lines of a folder as it was finished, whatever has become of what it was made from."""
    return _read_manifest(folder).lines


def _current(folder: str | Path, seen: dict[str, str | None]) -> _Manifest:
    """`seen` has the contents of the folders that were looked at before: most lead up to the documents by many ways."""
    found = _read_manifest(folder)
    for source, held in found.made_from.items():
        source = os.path.normpath(Path(folder) / source)
        if source not in seen:
            seen[source] = _current(source, seen).contents if os.path.isdir(source) else None
        if seen[source] not in (held, None):
            raise ContractError(f"{paths.shown(folder)} was made from another {paths.shown(source)}; run the notebook that writes it again")
    return found


def _read_manifest(folder: str | Path) -> _Manifest:
    manifest = Path(folder) / "manifest.json"
    if not manifest.exists():
        raise ContractError(f"{paths.shown(folder)} is not finished (it has no manifest.json); run the notebook that writes it")
    trace.record("read", manifest)
    return _parsed(manifest, manifest.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _parsed(path: Path, changed: int) -> _Manifest:
    """What a manifest says; read once while the file is unchanged, since every part read looks there."""
    try:
        known = json.loads(path.read_text())
        lines, made_from = known["parts"], known.get("made_from", {})
        if all({"part", "rows", "sha256"} <= set(line) for line in lines) and isinstance(made_from, dict):
            return _Manifest(lines, hashlib.sha256("".join(line["sha256"] for line in lines).encode()).hexdigest(), made_from)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ContractError(f"{paths.shown(path)} is no list of parts; remove it and run the notebook that writes the folder")


def read(name: str, folder: str | Path, columns: list[str] | None = None) -> pa.Table:
    """Read a finished folder whole, its parts in order, each with the rows its manifest states."""
    read_parts = []
    for line in parts(folder):
        part = read_part(name, Path(folder) / line["part"], columns)
        if part.num_rows != line["rows"]:
            raise ContractError(
                f"{paths.shown(Path(folder) / line['part'])} has {part.num_rows} rows, its manifest says {line['rows']}; remove it and run again"
            )
        read_parts.append(part)
    schema = TABLES[name] if columns is None else pa.schema([TABLES[name].field(c) for c in columns])
    return pa.concat_tables(read_parts) if read_parts else schema.empty_table()


def places(column: pa.ChunkedArray):
    """A fixed-size list column as a numpy array [rows, places]."""
    joined = column.combine_chunks()
    return joined.flatten().to_numpy(zero_copy_only=False).reshape(len(joined), joined.type.list_size)


def as_places(values) -> pa.FixedSizeListArray:
    """A numpy array [rows, places] as a fixed-size list column."""
    kind = _places(pa.from_numpy_dtype(values.dtype), values.shape[1])
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), type=kind)
