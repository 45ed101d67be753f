"""Lines of a text file with their place, exact: UTF-8, split at line feeds only, nothing guessed."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lib import paths, trace


class Place(NamedTuple):
    """Where a row came from; lines count from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Refused(ValueError):
    """A row that is not imported; the message names its place, the value and the reason."""


def lines(path: str | Path) -> Iterator[tuple[Place, str]]:
    """Each line without its end (`\\n` or `\\r\\n`); lines of white space only are passed over and counted.

    A name that ends in `.gz` is unpacked. A byte order mark and bytes that are not UTF-8 are refused.
    """
    path = paths.source(path)
    if not path.is_file():
        raise Refused(f"{paths.shown(path)} does not exist; paths are absolute or relative to {paths.ROOT}")
    trace.record("read", path)
    number = 0
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as handle:
        try:
            for number, raw in enumerate(handle, start=1):
                place = Place(paths.shown(path), number)
                if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                    raise Refused(f"{place} starts with a byte order mark; save the file as UTF-8 without one")
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise Refused(f"{place} holds the byte 0x{raw[error.start]:02x} at {error.start}, which is not UTF-8") from error
                if line.strip():
                    yield place, line.removesuffix("\n").removesuffix("\r")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise Refused(f"{Place(paths.shown(path), number + 1)} cannot be unpacked ({error})") from error


def objects(path: str | Path) -> Iterator[tuple[Place, dict]]:
    """The JSON object of each line; a repeated key, NaN and anything that is no object are refused."""
    for place, line in lines(path):
        try:
            found = json.loads(line, object_pairs_hook=_once, parse_constant=_constant)
        except (ValueError, RecursionError) as error:
            raise Refused(f"{place} is no JSON object ({error})") from error
        if not isinstance(found, dict):
            raise Refused(f"{place} is a JSON {type(found).__name__}, not an object")
        yield place, found


def _once(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return found


def _constant(name: str):
    raise ValueError(f"{name} is not JSON")


def field(place: Place, row: dict, name: str, kinds: type | tuple = str, default=...):
    """The value of a field; missing (without a default) or of another type is refused."""
    if name not in row:
        if default is ...:
            raise Refused(f"{place} has no field {name!r}; it has {', '.join(map(repr, row)) or 'none'}")
        return default
    value = row[name]
    if not isinstance(value, kinds) or isinstance(value, bool) and kinds is not bool:
        wanted = {str: "text", bool: "true or false"}.get(kinds, "text or null")
        raise Refused(f"{place} has {json.dumps(value)[:80]} as {name!r}, which is not {wanted}")
    return value
