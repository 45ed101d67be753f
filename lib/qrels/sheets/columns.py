"""Which sheet and which header each field of the reviewer's workbook has."""

import unicodedata
from pathlib import Path
from typing import NamedTuple

from lib import paths
from lib.qrels import work
from lib.qrels.refusals import Refused

_WAY_OUT = 'it holds what differs from the defaults, as {"votes": {"sheet": "Ballots", "vote": ["Vote", "Verdict"]}}'


class Table(NamedTuple):
    """The names a sheet may have, and for each field the names its header may have; the first ones are the defaults' own."""

    sheet: tuple[str, ...]
    headers: dict[str, tuple[str, ...]]


class Columns(NamedTuple):
    hops: Table
    votes: Table


_QUESTION, _HOP = ("Question ID", "QID", "Query ID"), ("Hop", "Hop ID", "Hop number")
DEFAULT = Columns(
    hops=Table(("Hops",), {
        "question": _QUESTION, "hop": _HOP, "text": ("Sub-question", "Sub question", "Subquestion"),
        "judgment": ("Judgment", "Judgement"), "note": ("Note", "Notes"),
    }),
    votes=Table(("Votes",), {
        "question": _QUESTION, "hop": _HOP, "document": ("Document ID", "Doc ID", "DocID"), "vote": ("Vote",),
    }),
)


def fold(text: str) -> str:
    """Text as names are compared: NFKC, small letters, plain dashes, no invisible characters, one blank for any white space."""
    for _ in range(2):  # case folding may decompose: the second pass is stable
        text = unicodedata.normalize("NFKC", text).casefold()
    kinds = ((one, unicodedata.category(one)) for one in text)
    return " ".join("".join("-" if kind == "Pd" else one for one, kind in kinds if kind != "Cf").split())


def _names(value: object, where: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and fold(name) for name in names):
        raise Refused(f"{where} is {value!r}, neither a name nor a list of names; {_WAY_OUT}")
    return tuple(names)


def read(path: str | Path) -> Columns:
    """The columns of a JSON file: the names it gives replace the default names of that field or sheet, the rest stays.

    `{"hops": {"sheet": ..., "question": ..., "hop": ..., "text": ..., "judgment": ..., "note": ...},
    "votes": {"sheet": ..., "question": ..., "hop": ..., "document": ..., "vote": ...}}`, each a name or a list of names.
    Both tables may name one sheet. Refused: an unknown key, a blank name, a name of two fields of one table.
    """
    shown, given, tables = paths.shown(path), work.read_json(Path(path), _WAY_OUT), {}
    if not isinstance(given, dict) or not all(isinstance(fields, dict) for fields in given.values()):
        raise Refused(f"{shown} is no JSON object of objects; {_WAY_OUT}")
    for stranger in given.keys() - set(Columns._fields):
        raise Refused(f"{shown} has the table {stranger!r}; the tables are {' and '.join(Columns._fields)}, {_WAY_OUT}")
    for name, default in DEFAULT._asdict().items():
        found = {field: _names(value, f"{shown}: {name}.{field}") for field, value in given.get(name, {}).items()}
        for stranger in sorted(found.keys() - {"sheet", *default.headers}):
            raise Refused(f"{shown}: {name}.{stranger} is no field; {name} has sheet, {', '.join(default.headers)}, {_WAY_OUT}")
        tables[name] = Table(found.pop("sheet", default.sheet), default.headers | found)
        seen: dict[str, str] = {}
        for field, header in ((field, header) for field, headers in tables[name].headers.items() for header in headers):
            if seen.setdefault(fold(header), field) != field:
                both = f"{name}.{field} and {name}.{seen[fold(header)]}"
                raise Refused(f"{shown}: {both} share the name {header!r}; each field needs its own, {_WAY_OUT}")
    return Columns(**tables)
