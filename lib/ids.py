"""Ids are text: which ones are legal, and the two spellings of a document id."""

import re
import unicodedata

_SEQUENCE = re.compile(r"(shard_\d+)_(\d+)\Z", re.ASCII)


def fault(value: object) -> str | None:
    """Why a value is no legal id, or None.

    Legal is non-empty Unicode text without white space, control characters or lone surrogates.
    """
    if not isinstance(value, str):
        return f"is a {type(value).__name__}, not text"
    if not value:
        return "is empty"
    for character in value:
        if character.isspace() or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp", "Zs"):
            return f"holds the character U+{ord(character):04X}"
    return None


def api(docid: str) -> str:
    """The spelling of the retrieval API and the qrels: `shard_00045_6622`. Other ids stay as they are."""
    match = _SEQUENCE.match(docid)
    return f"{match[1]}_{match[2].lstrip('0') or '0'}" if match else docid


def analysis(docid: str) -> str:
    """The zero-padded spelling of the corpus artifacts: `shard_00045_06622`. Other ids stay as they are."""
    match = _SEQUENCE.match(docid)
    return f"{match[1]}_{match[2].lstrip('0'):0>5}" if match else docid
