"""What a cell may hold: an id, the number of a hop, a word of a closed vocabulary, or prose; the rest is a fault with its address.

Each function gives the value, None for a blank cell, or BAD after a fault was logged (here, or when the cell was read).
"""

import re

from lib import ids
from lib.qrels.sheets.columns import fold
from lib.qrels.sheets.sheet_table import BAD, Cell, Log


def identifier(cell: Cell, what: str, log: Log) -> object:
    """A legal id as it stands: it is never folded, and a number or a date that was one is not guessed back."""
    if cell.value is None or cell.value is BAD:
        return cell.value
    if not isinstance(cell.value, str):
        log.fault(f"{cell.where} holds the {_kind(cell.value)} {cell.value} as {what}; format the column as text and type it again")
        return BAD
    if fault := ids.fault(cell.value):
        log.fault(f"{cell.where} holds {cell.value!r} as {what}, which {fault}; an id has no blanks and no control characters")
        return BAD
    return cell.value


def _kind(value: object) -> str:
    return "truth value" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "date or time"


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def hop_number(cell: Cell, log: Log) -> object:
    """A whole number from 1, also where it was typed as text."""
    value = cell.value
    if value is None or value is BAD:
        return value
    if isinstance(value, str) and re.fullmatch(r"[1-9][0-9]{0,5}", fold(value)):
        return int(fold(value))
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < 1e6 and value == int(value):
        return int(value)
    log.fault(f"{cell.where} holds {_shown(value)} as the hop; write a whole number from 1")
    return BAD


def word(cell: Cell, words: tuple[str, ...], what: str, log: Log) -> object:
    """One of the words, matched after folding; white space alone is a blank."""
    if cell.value is None or cell.value is BAD:
        return cell.value
    if isinstance(cell.value, str):
        if cell.value.isspace():
            return None
        for known in words:
            if fold(cell.value) == fold(known):
                return known
    log.fault(f"{cell.where} holds {_shown(cell.value)}, which is no {what}; write {', '.join(words)} or leave the cell blank")
    return BAD


def prose(cell: Cell, what: str, log: Log) -> object:
    """Text as it stands; white space alone is a blank."""
    if cell.value is None or cell.value is BAD:
        return cell.value
    if not isinstance(cell.value, str):
        log.fault(f"{cell.where} holds the {_kind(cell.value)} {cell.value} as {what}; format the cell as text and type it again")
        return BAD
    return cell.value if fold(cell.value) else None
