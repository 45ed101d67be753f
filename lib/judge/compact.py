"""Closed attempts files move into Parquet, a tenth of the size and read by columns; a kill at any moment loses or doubles nothing.

A part is taken in while nobody writes it, under the lock of its run folder:

1. a torn tail is set aside, as a writer would;
2. what the Parquet file holds and the lines after it are written to a new Parquet file, which is read again and
   compared with the lines, and then takes the name: its metadata say how many bytes of the JSONL file it took in, and their sha256;
3. the JSONL file goes; the next writer starts a new one.

Between 2 and 3 a reader skips the bytes that stand in both, and the next compaction goes on from there.
"""

import json
import os
from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lib import contracts, files, paths, processes
from lib.judge import store

ROWS = 65_536  # of a row group


class _Kept(Exception):
    """A line that Parquet would not give back as it is."""


def compact(run: str | Path, intents_set: str) -> list[str]:
    """Take every part of a set in; a line of report a part that stays as it is.

    A part stays where a line would not come back equal, as with half a surrogate pair in a reply. Raises
    `processes.Locked` where a client writes, and StoreError at a line that is no attempt.
    """
    said = []
    with processes.lock(Path(run)):
        for source in store.every(run, intents_set):
            for left in source.parent.glob(f".{store.compacted(source).name}.tmp-*"):
                left.unlink()  # of a compaction that was killed
            if source.exists():
                try:
                    take_in(source)
                except _Kept as reason:
                    said.append(f"{paths.shown(source)} stays as it is: {reason}")
    return said


def take_in(source: Path) -> None:
    """Move the lines of one JSONL file, which nobody writes, into the Parquet file beside it."""
    store.Writer(source).close()  # every line ends, and a torn tail lies aside
    if source.stat().st_size > store.taken_in(source):
        with files.whole(store.compacted(source)) as temporary:
            _write(source, temporary)
            _compare(source, temporary)
        _sync(source.parent)
    source.unlink()
    _sync(source.parent)


def _write(source: Path, target: Path) -> None:
    stamp = {store.ABSORBED: json.dumps([source.stat().st_size, files.sha256(source)]).encode()}
    schema = contracts.TABLES["attempts"]
    with pq.ParquetWriter(target, schema.with_metadata(stamp), compression="zstd", compression_level=3) as writer:
        for group in _groups(source):
            try:
                writer.write_table(contracts.check("attempts", group), row_group_size=ROWS)
            except contracts.ContractError as error:
                raise _Kept(str(error)) from None


def _groups(source: Path) -> Iterator[pa.Table]:
    held, rows = [], 0
    for one in store.tables(source):
        held, rows = [*held, one], rows + one.num_rows
        if rows >= ROWS:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _compare(source: Path, written: Path) -> None:
    """_Kept unless the new file gives, after the rows it had before, exactly the lines of the JSONL file."""
    before = store.compacted(source)
    had = pq.read_metadata(before).num_rows if before.exists() else 0
    found = chain.from_iterable(batch.to_pylist() for batch in pq.ParquetFile(written).iter_batches(8_192, use_threads=False))
    if before.exists():
        old = chain.from_iterable(batch.to_pylist() for batch in pq.ParquetFile(before).iter_batches(8_192, use_threads=False))
        if any(one != other for one, other in zip(old, islice(found, had), strict=True)):
            raise _Kept("the Parquet file did not come back as it was written")
    for number, (one, other) in enumerate(zip_longest(store.lines(source), found), 1):
        if one != other:
            raise _Kept(f"attempt {number} of it would not come back from Parquet as it was written")


def _sync(folder: Path) -> None:
    """The names of a folder reach the disk in their order."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
