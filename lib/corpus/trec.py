"""TREC files: topics, qrels (`qid 0 docid grade`) and runs (`qid Q0 docid rank score tag`)."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lib.corpus.lines import Place, Refused, lines

_TAG = re.compile(r"</?(num|title|desc|narr)>", re.IGNORECASE)
_LEAD = re.compile(r"(Number|Topic|Description|Narrative):", re.IGNORECASE)
_INTEGER = re.compile(r"-?[0-9]{1,9}", re.ASCII)


class Judged(NamedTuple):
    """A line of a qrels file."""

    place: Place
    qid: str
    docid: str
    grade: int


class Ranked(NamedTuple):
    """A line of a run file; rank counts from 1."""

    place: Place
    qid: str
    docid: str
    rank: int
    score: float


def topics(path: str | Path, part: str = "title") -> Iterator[tuple[Place, dict]]:
    """Query rows for `write`, from `<top>` blocks or from lines `qid<TAB>text`.

    The first line decides which. Of a block `part` is taken: title, desc or narr, lines joined
    by a space; the words `Number:`, `Topic:`, `Description:`, `Narrative:` that open a part are dropped.
    """
    found = lines(path)
    block: list[tuple[Place, str]] = []
    classic = None
    for place, line in found:
        if classic is None:
            classic = line.strip().lower() == "<top>"
        if not classic:
            qid, tab, text = line.partition("\t")
            if not tab:
                raise Refused(f"{place} has no tab; a topic is a qid, a tab and the text, or a <top> block")
            yield place, {"qid": qid, "text": text}
        elif line.strip().lower() == "<top>":
            if block:
                raise Refused(f"{place} opens a topic inside the one of line {block[0][0].line}; close it with </top>")
            block = [(place, "")]
        elif not block:
            raise Refused(f"{place} stands between two topics: {line.strip()[:60]!r}")
        elif line.strip().lower() == "</top>":
            yield _topic(block, part)
            block = []
        else:
            block.append((place, line))
    if block:
        raise Refused(f"{block[0][0]} opens a topic that does not end; close it with </top>")


def _topic(block: list[tuple[Place, str]], part: str) -> tuple[Place, dict]:
    place = block[0][0]
    pieces = _TAG.split("\n".join(line for _, line in block))
    found: dict[str, str] = {}
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        text = " ".join(_LEAD.sub("", text.strip(), count=1).split()) if _LEAD.match(text.strip()) else " ".join(text.split())
        name = name.lower()
        if name in found and text:
            raise Refused(f"{place} has <{name}> twice in one topic")
        found.setdefault(name, text)
    for name in ("num", part):
        if not found.get(name):
            raise Refused(f"{place} opens a topic without <{name}>; it has {', '.join(found) or 'none'}")
    return place, {"qid": found["num"], "text": found[part]}


def qrels(path: str | Path) -> Iterator[Judged]:
    """The judgments of a TREC qrels file; its second column is passed over."""
    for place, line in lines(path):
        columns = line.split()
        if len(columns) != 4:
            raise Refused(f"{place} has {len(columns)} columns, not qid, iteration, docid and grade")
        yield Judged(place, columns[0], columns[2], grade(place, columns[3]))


def run(path: str | Path) -> Iterator[Ranked]:
    """The lines of a run file; a rank that is no positive integer and a score that is no finite float32 are refused."""
    for place, line in lines(path):
        columns = line.split()
        if len(columns) != 6:
            raise Refused(f"{place} has {len(columns)} columns, not qid, Q0, docid, rank, score and tag")
        if not _INTEGER.fullmatch(columns[3]) or int(columns[3]) < 1:
            raise Refused(f"{place} has the rank {columns[3]!r}; ranks are integers from 1")
        yield Ranked(place, columns[0], columns[2], int(columns[3]), _score(place, columns[4]))


def grade(place: Place, text: str) -> int:
    """A grade as an integer; `1.0` and the like are refused."""
    if not _INTEGER.fullmatch(text):
        raise Refused(f"{place} has the grade {text!r}, which is no integer")
    return int(text)


def _score(place: Place, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    with np.errstate(over="ignore"):
        if "_" in text or not np.isfinite(np.float32(score)):
            raise Refused(f"{place} has the score {text!r}, which is no finite float32")
    return score
