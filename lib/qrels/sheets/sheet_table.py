"""A table on a sheet: its header row is found by names, and each cell below is read with its address or is a fault."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from openpyxl.cell.rich_text import CellRichText, TextBlock

from lib.qrels.sheets.columns import Table, fold
from lib.qrels.sheets.sheet_xml import Area, SheetXml, address

SPREAD = {"question", "hop", "text"}  # a merge of these that runs down one column stands for all its rows
BAD = object()  # the cell is a fault already: nothing more is said of it
_CONTROL = re.compile(r"_x(00[01][0-9A-F]|007F)_")  # how a workbook writes a control character


class Cell(NamedTuple):
    """A cell of a table: `where` as Votes!D5, `value` None for a blank and BAD for a fault, `spread` from a merge above."""

    where: str
    value: object
    spread: bool = False


class Row(NamedTuple):
    number: int
    cells: dict[str, Cell]

    @property
    def own(self) -> set[str]:
        """The fields that this row itself fills: what a merge brings from above is not among them."""
        return {name for name, cell in self.cells.items() if cell.value is not None and not cell.spread}


class Log:
    """What is found on the way: `faults` in order, each once, and `reports`: kind -> the cells or rows it was met at."""

    def __init__(self):
        self.faults: dict[str, None] = {}
        self.reports: dict[str, dict[str, None]] = defaultdict(dict)

    def fault(self, sentence: str) -> None:
        self.faults[sentence] = None

    def report(self, kind: str, where: str) -> None:
        self.reports[kind][where] = None


def _text(value: object) -> object:
    return _CONTROL.sub(lambda match: chr(int(match[1], 16)), str(value)) if isinstance(value, str | CellRichText) else value


def _quoted(sheet: str) -> str:
    return sheet if re.fullmatch(r"\w+", sheet) and not sheet[0].isdigit() else "'" + sheet.replace("'", "''") + "'"


class SheetTable:
    """One table of a sheet: `columns` is field -> column number, empty where no header row was found (a fault then)."""

    def __init__(self, name: str, sheet, xml: SheetXml, table: Table, log: Log):
        self.sheet, self.xml, self.log, self.name = sheet, xml, log, _quoted(name)
        self.visited, self.met, self.columns, self.header = 0, 0, {}, 0
        self._find_header(table)
        self.last = xml.last_row(self.columns.values())
        self.runs: dict[str, dict[int, Area]] = {field: {} for field in self.columns}
        self.closed: dict[str, set[int]] = {field: set() for field in self.columns}
        if self.columns:
            self._place_merges()

    def where(self, row: int, field: str) -> str:
        return f"{self.name}!{address(row, self.columns[field])}"

    def _rows(self, first: int, last: int, width: int) -> Iterator[tuple[int, tuple]]:
        """The rows of openpyxl from `first` to `last`: not on to the last that is formatted, nor to what stands below the rows."""
        if last >= first:
            for number, cells in enumerate(self.sheet.iter_rows(min_row=first, max_row=last, max_col=width), first):
                self.visited += 1
                yield number, cells
                if number == last:
                    return

    def _find_header(self, table: Table) -> None:
        fields = {fold(name): field for field, names in table.headers.items() for name in names}
        nearest, most, there = 0, -1, []
        for number, cells in self._rows(1, self.xml.last_row(), max(self.xml.rows, default=0)):
            texts = {column: text for column, cell in enumerate(cells, 1) if isinstance(text := _text(cell.value), str) and fold(text)}
            met = defaultdict(list)
            for column, text in texts.items():
                if field := fields.get(fold(text)):
                    met[field].append(column)
            if texts and len(met) > most:
                nearest, most, there = number, len(met), list(texts.values())
                missing = [names for field, names in table.headers.items() if field not in met]
            if len(met) == len(table.headers):
                self.header, self.columns = number, {field: met[field][0] for field in table.headers}
                for field, columns in met.items():
                    if len(columns) > 1:
                        both = " and ".join(address(number, column) for column in columns)
                        self.log.fault(f"{self.name}!{both} are both headers of the {field}; keep one, or name yours in a columns file")
                return
        if not there:
            self.log.fault(f"the sheet {self.name} is empty; {self._looked_for(table.headers.values())}")
        else:
            shown = ", ".join(map(repr, there[:12])) + (" ..." if len(there) > 12 else "")
            self.log.fault(f"the sheet {self.name} has no row with all headers: row {nearest} has {shown}; {self._looked_for(missing)}")

    @staticmethod
    def _looked_for(missing) -> str:
        names = ", ".join(" or ".join(map(repr, aliases)) for aliases in missing)
        return f"looked for {names}; write the header so, or name yours in a columns file"

    def _place_merges(self) -> None:
        for merge in self.xml.merges:
            met = [field for field, column in self.columns.items() if merge.left <= column <= merge.right]
            if not met or merge.bottom < self.header or merge.top > max(self.last, self.header):
                continue
            if merge.top > self.header and set(met) <= SPREAD and merge.left == merge.right:
                self.runs[met[0]] |= dict.fromkeys(range(merge.top, min(merge.bottom, self.last) + 1), merge)
            else:
                what = " and ".join(met) if merge.top > self.header else f"header of the {' and '.join(met)}"
                self.log.fault(f"{self.name}!{merge} is merged over the {what}; unmerge it and fill in every cell")
                self._close(met, merge)
        for array in self.xml.arrays:
            met = [field for field, column in self.columns.items() if array.left <= column <= array.right]
            if met and array.bottom > self.header and array.top <= self.last:
                self.log.fault(f"{self.name}!{array} is filled by an array formula or a data table over the {' and '.join(met)}; "
                               "paste its values in its place")
                self._close(met, array)

    def _close(self, fields: list[str], block: Area) -> None:
        for field in fields:
            self.closed[field].update(range(block.top, min(block.bottom, self.last) + 1))

    def rows(self) -> Iterator[Row]:
        """The rows below the header that hold something in a column of the table, also hidden ones; to be read once, to the end.

        Every cell that holds something is accounted for: one that openpyxl passes over is a fault.
        """
        anchors: dict[str, Cell] = {}
        if not self.columns:
            return
        for number, cells in self._rows(self.header + 1, self.last, max(self.columns.values())):
            row = Row(number, {field: self._cell(number, field, cells[column - 1]) for field, column in self.columns.items()})
            for field, runs in self.runs.items():
                if merge := runs.get(number):
                    row.cells[field] = self._spread(merge, row.cells[field], anchors, field, number)
            if row.own:
                if number in self.xml.hidden_rows:
                    self.log.report("hidden rows", f"{self.name} row {number}")
                yield row
        held = [self.xml.rows.get(column, []) for column in self.columns.values()]
        if self.met < (expected := sum(len(rows) - bisect_right(rows, self.header) for rows in held)):
            self.log.fault(f"the sheet {self.name} holds {expected} cells below its headers and openpyxl reads {self.met}; "
                           "open the workbook in Excel or LibreOffice and save it again")

    def _spread(self, merge: Area, cell: Cell, anchors: dict[str, Cell], field: str, number: int) -> Cell:
        if number == merge.top:
            anchors[field] = cell
            return cell
        if cell.value is not None:
            self.log.fault(f"{cell.where} holds a value under the merge {merge}, where nobody sees it; unmerge the cells and fill in each")
            return Cell(cell.where, BAD)
        self.log.report("merges", f"{self.name}!{merge}")
        return Cell(anchors[field].where, anchors[field].value, spread=True)

    def _cell(self, number: int, field: str, cell) -> Cell:
        place, where, value = (number, self.columns[field]), self.where(number, field), _text(cell.value)
        self.met += cell.value is not None or place in self.xml.formulas
        if number in self.closed[field]:
            return Cell(where, BAD)
        if place in self.xml.formulas:
            if not self.xml.formulas[place]:
                self.log.fault(f"{where} has a formula without a stored value; let Excel calculate and save the workbook, or paste the value")
                return Cell(where, BAD)
            self.log.report("formulas", where)
        if cell.data_type == "e":
            self.log.fault(f"{where} holds the error {value or '#N/A'}; mend the cell or clear it")
            return Cell(where, BAD)
        if value is None or value == "":
            return Cell(where, None)
        runs = [run for run in cell.value if isinstance(run, TextBlock)] if isinstance(cell.value, CellRichText) else []
        if cell.font.strike or place in self.xml.struck or any(run.font.strike for run in runs):
            self.log.report("struck", where)
        return Cell(where, value)
