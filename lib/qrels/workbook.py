"""The reviewer's workbook: votes and hop judgments, each with the address of its cell, or every fault of the workbook at once."""

import warnings
import zipfile
from pathlib import Path
from typing import NamedTuple

import openpyxl

from lib import ids, paths
from lib.qrels.pools import VOTES
from lib.qrels.sheets import cells, ooxml, sheet_xml, slim
from lib.qrels.sheets.columns import DEFAULT, Columns, fold
from lib.qrels.sheets.columns import read as read_columns
from lib.qrels.sheets.ooxml import Container, Sheet, WorkbookError, chunks
from lib.qrels.sheets.sheet_table import BAD, Log, Row, SheetTable

__all__ = ["DEFAULT", "HopRow", "VoteRow", "Workbook", "WorkbookError", "read"]

JUDGMENTS = ("Yes", "No")
_FEW = 5  # cells that a notice names
_NOTICES = {
    "hidden sheets": "hidden sheets were read as if shown",
    "hidden rows": "hidden rows were read as if shown",
    "hidden columns": "hidden columns were read as if shown",
    "comments": "comments were not read; look at them",
    "struck": "cells with struck-through text were read as if it were not struck",
    "formulas": "formulas were read by their stored values",
    "merges": "merged questions, hops or sub-questions were spread over their rows",
    "repeats": "repeated rows of a hop say the same and count once",
    "no document": "rows of the votes name no document and no vote and were passed over",
}


class HopRow(NamedTuple):
    """A hop as the reviewer judged it: judgment is Yes, No or None (blank); `cell` is the judgment's, as Hops!D5."""

    qid: str
    hop: int
    text: str | None
    judgment: str | None
    note: str | None
    cell: str


class VoteRow(NamedTuple):
    """A document named for a hop, in the API's spelling: vote is one of VOTES or None (blank); `cell` is the vote's."""

    qid: str
    hop: int
    docid: str
    vote: str | None
    cell: str


class Workbook(NamedTuple):
    """What was read, in the order of the sheets; `notices` say what a reader of the file might not see."""

    name: str
    sha256: str
    hops: list[HopRow]
    votes: list[VoteRow]
    notices: list[str]


def read(path: str | Path, columns: Columns | str | Path = DEFAULT) -> Workbook:
    """Read the two tables of a workbook; WorkbookError with every fault of it, none of which is ever read as a blank.

    The file is read once into memory and never written; formulas count by the value stored with them,
    no macro is run and no link is followed. `columns` may be the path of a columns file (`columns.read`).
    """
    columns = columns if isinstance(columns, Columns) else read_columns(columns)
    log, shown = Log(), paths.shown(path)
    with ooxml.opened(path) as container, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl's, of parts that are not read here
        sheets = [_sheet(container, names, log) for names in (columns.hops.sheet, columns.votes.sheet)]
        if not log.faults:
            try:
                hop_table, vote_table = _tables(container, sheets, columns, log)
                shared = sheets[0] == sheets[1]
                hops, votes = _hops(hop_table, shared, log), _votes(vote_table, shared, log)
            except ooxml.DAMAGE + (TypeError, AttributeError, IndexError, ArithmeticError) as error:
                raise WorkbookError(shown, [f"cannot be read ({type(error).__name__}: {error}); {ooxml.SAVE}"]) from error
    if log.faults:
        raise WorkbookError(shown, list(log.faults))
    return Workbook(container.name, container.sha256, hops, votes, _notices(log))


def _sheet(container: Container, names: tuple[str, ...], log: Log) -> Sheet | None:
    wanted = {fold(name) for name in names}
    met = [sheet for sheet in container.sheets if fold(sheet.name) in wanted]
    looked = f"looked for {' or '.join(map(repr, names))}; rename the sheet, or name yours in a columns file"
    if len(met) != 1:
        there = ", ".join(repr(sheet.name) for sheet in met or container.sheets)
        log.fault(f"{f'more than one sheet has the name ({there})' if met else f'no sheet has the name (there are {there})'}: {looked}")
    elif met[0].part is None:
        log.fault(f"the sheet {met[0].name!r} is a chart or a dialog and has no cells: {looked}")
    else:
        if met[0].state != "visible":
            log.report("hidden sheets", met[0].name)
        return met[0]


def _tables(container: Container, sheets: list[Sheet], columns: Columns, log: Log) -> list[SheetTable]:
    copied = slim.copy(container, dict.fromkeys(sheet.part for sheet in sheets))
    book, found, parsed = openpyxl.load_workbook(copied, read_only=True, data_only=True, rich_text=True), [], {}
    with zipfile.ZipFile(copied) as archive:
        for sheet in sheets:
            try:
                parsed[sheet.part] = sheet_xml.read(chunks(archive, sheet.part))
            except ValueError as error:
                raise ValueError(f"sheet {sheet.name}: {error}") from error
    for sheet, table in zip(sheets, columns, strict=True):
        book[sheet.part].reset_dimensions()
        found.append(SheetTable(sheet.name, book[sheet.part], parsed[sheet.part], table, log))
        for row, column in sorted(sheet_xml.comments(container.archive, sheet.part)):
            log.report("comments", f"{found[-1].name}!{sheet_xml.address(row, column)}")
        for column in found[-1].columns.values():
            if column in parsed[sheet.part].hidden_columns:
                log.report("hidden columns", f"{found[-1].name} column {sheet_xml.letters(column)}")
    return found


def _blank(table: SheetTable, row: Row, field: str, what: str, log: Log) -> None:
    has = ", ".join(f"{name} in {row.cells[name].where}" for name in table.columns if row.cells[name].value is not None)
    log.fault(f"{table.where(row.number, field)} is blank, but its row has the {has}; write the {what}, or clear the row")


def _hops(table: SheetTable, shared: bool, log: Log) -> list[HopRow]:
    found: dict[tuple[str, int], list[HopRow]] = {}
    for row in table.rows():
        qid, hop = cells.identifier(row.cells["question"], "the question id", log), cells.hop_number(row.cells["hop"], log)
        text, note = cells.prose(row.cells["text"], "the sub-question", log), cells.prose(row.cells["note"], "the note", log)
        judgment = cells.word(row.cells["judgment"], JUDGMENTS, "judgment", log)
        if qid is None:
            _blank(table, row, "question", "question id", log)
        if hop is None:
            _blank(table, row, "hop", "number of the hop", log)
        if None not in (qid, hop) and BAD not in (qid, hop, text, note, judgment):
            found.setdefault((qid, hop), []).append(HopRow(qid, hop, text, judgment, note, row.cells["judgment"].where))
    return [_one(rows, shared, log) for rows in found.values()]


def _one(rows: list[HopRow], shared: bool, log: Log) -> HopRow:
    """The one row of a hop: repeats must say the same.

    Where both tables share a sheet, a row a document, a row may leave all of text, judgment and note to another one.
    """
    if shared:
        rows = [row for row in rows if (row.text, row.judgment, row.note) != (None, None, None)] or rows[:1]
    first = rows[0]
    for row in rows[1:]:
        for field in ("judgment", "note", "text"):
            one, other = getattr(first, field), getattr(row, field)
            if (one and fold(one)) != (other and fold(other)):
                log.fault(f"{row.cell} is of hop {row.hop} of question {row.qid}, which stands at {first.cell} with another {field} "
                          f"({one!r}, here {other!r}); keep one row, or make them equal")
                break
        else:
            log.report("repeats", row.cell)
    return first


def _votes(table: SheetTable, shared: bool, log: Log) -> list[VoteRow]:
    found = []
    for row in table.rows():
        qid, hop = cells.identifier(row.cells["question"], "the question id", log), cells.hop_number(row.cells["hop"], log)
        docid, vote = cells.identifier(row.cells["document"], "the document id", log), cells.word(row.cells["vote"], VOTES, "vote", log)
        if docid is None and vote is not None:
            _blank(table, row, "document", "document id", log)
        elif docid is None and shared:
            continue  # the row of a hop
        if qid is None:
            _blank(table, row, "question", "question id", log)
        if hop is None:
            _blank(table, row, "hop", "number of the hop", log)
        if docid is None and vote is None:
            log.report("no document", f"{table.name} row {row.number}")
        elif None not in (qid, hop, docid) and BAD not in (qid, hop, docid, vote):
            found.append(VoteRow(qid, hop, ids.api(docid), vote, row.cells["vote"].where))
    return found


def _notices(log: Log) -> list[str]:
    said = []
    for kind, sentence in _NOTICES.items():
        if places := list(log.reports[kind]):
            rest = f" and {len(places) - _FEW} more" if len(places) > _FEW else ""
            said.append(f"{sentence} ({len(places)}): {', '.join(places[:_FEW])}{rest}")
    return said
