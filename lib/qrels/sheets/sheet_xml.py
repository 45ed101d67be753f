"""What openpyxl's read-only sheets do not show, by one streaming parse of the sheet's XML: merges, hidden rows, formulas, comments."""

import re
import zipfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from lib.qrels.sheets.ooxml import MAIN, chunks, elements, relations

COLUMNS = 16_384
_ADDRESS = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
_ROW, _CELL, _VALUE, _FORMULA, _INLINE, _STRIKE, _COLUMN, _MERGE = (
    f"{MAIN} {name}" for name in ("row", "c", "v", "f", "is", "strike", "col", "mergeCell"))
_CONTENT = {_VALUE, _FORMULA, _INLINE}


class Area(NamedTuple):
    """A block of cells, both ends in it, rows and columns from 1; a merge shows its top left cell only."""

    top: int
    left: int
    bottom: int
    right: int

    def __str__(self) -> str:
        return f"{address(self.top, self.left)}:{address(self.bottom, self.right)}"


@dataclass
class SheetXml:
    """Cells are (row, column) from 1. Only cells that hold something count: styles alone do not."""

    merges: list[Area] = field(default_factory=list)
    formulas: dict[tuple[int, int], bool] = field(default_factory=dict)  # cell -> it has a stored value
    arrays: list[Area] = field(default_factory=list)  # array formulas and data tables: one formula fills the area
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    struck: set[tuple[int, int]] = field(default_factory=set)  # inline text with a struck run
    rows: dict[int, list[int]] = field(default_factory=dict)  # column -> its rows that hold something, in order

    def last_row(self, columns: Collection[int] | None = None) -> int:
        """The last row that holds something in these columns, or in any; 0 where none does."""
        return max((self.rows[column][-1] for column in (self.rows if columns is None else columns) if column in self.rows), default=0)


def letters(column: int) -> str:
    """The letters of a column: 1 is A, 27 is AA."""
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def address(row: int, column: int) -> str:
    return f"{letters(column)}{row}"


def place(text: str) -> tuple[int, int]:
    """(row, column) of an address such as B12; ValueError for anything else."""
    match, column = _ADDRESS.fullmatch(text), 0
    if not match:
        raise ValueError(f"{text!r} is no address of a cell")
    for letter in match[1]:
        column = column * 26 + ord(letter) - 64
    return int(match[2]), column


def area(text: str) -> Area:
    """The block of an address such as A2:A5, or of one cell."""
    first, _, last = text.partition(":")
    return Area(*place(first), *place(last or first))


def _true(value: str | None) -> bool:
    return value in ("1", "true", "on")


def read(data: Iterable[bytes]) -> SheetXml:
    """Parse the XML of a sheet.

    ValueError for what openpyxl would pass over in silence: rows or cells that are out of order or stand twice.
    """
    found = SheetXml()
    _sheet(data, found)
    return found


def comments(archive: zipfile.ZipFile, part: str) -> set[tuple[int, int]]:
    """The cells of a sheet that have a comment, of the old kind or in threads."""
    found = set()

    def start(name, given):
        if name.endswith((" comment", " threadedComment")):
            found.add(place(given["ref"]))

    for kind, target in relations(archive, part).values():
        if kind.endswith(("/comments", "/threadedComment")) and target in archive.namelist():  # the second is Microsoft's own
            elements(chunks(archive, target), start)
    return found


def _sheet(data: Iterable[bytes], found: SheetXml) -> None:
    row = column = 0  # where the parse is; a cell or row without an address stands beside the one before
    reference, cell, held, in_value = None, None, False, False
    row_given, given, last = {}, {}, (0, 0)

    def hold():
        nonlocal held, last
        if not held:
            held = True
            if cell <= last:
                raise ValueError(f"its cell {address(*cell)} stands twice or after {address(*last)}")
            last = cell
            found.rows.setdefault(cell[1], []).append(row)
            if _true(row_given.get("hidden")) or row_given.get("ht") in ("0", "0.0"):
                found.hidden_rows.add(row)

    # a million styled cells pass here: a cell's place is worked out only where it holds something
    def start(name, attributes):
        nonlocal row, column, reference, cell, held, in_value, row_given, given
        in_value = False
        if name == _CELL:
            if "r" not in attributes:
                column = (place(reference)[1] if reference else column) + 1
            reference, given, cell, held = attributes.get("r"), attributes, None, False
        elif name == _ROW:
            number = int(attributes.get("r", row + 1))
            if number <= row:
                raise ValueError(f"its row {number} stands twice or after row {row}")
            row, column, reference, row_given = number, 0, None, attributes
        elif name in _CONTENT and row:
            if cell is None:
                cell = place(reference) if reference else (row, column)
                if cell[0] != row:
                    raise ValueError(f"its row {row} holds a cell {reference}")
            if name == _VALUE:
                in_value = True
                if given.get("t") == "str" and cell in found.formulas:  # ="" has a stored value: the empty text
                    found.formulas[cell] = True
            else:
                hold()
                if name == _FORMULA:
                    found.formulas[cell] = False
                    if attributes.get("t") in ("array", "dataTable"):
                        found.arrays.append(area(attributes.get("ref", address(*cell))))
                elif cell in found.formulas:
                    found.formulas[cell] = True
        elif name == _STRIKE:
            if cell and _true(attributes.get("val", "1")):
                found.struck.add(cell)
        elif name == _COLUMN:
            if _true(attributes.get("hidden")) or attributes.get("width") in ("0", "0.0"):
                found.hidden_columns.update(range(int(attributes["min"]), min(int(attributes["max"]), COLUMNS) + 1))
        elif name == _MERGE and ":" in attributes["ref"]:
            found.merges.append(area(attributes["ref"]))

    def text(characters):
        if in_value and characters.strip():
            hold()
            if cell in found.formulas:
                found.formulas[cell] = True

    elements(data, start, text)
