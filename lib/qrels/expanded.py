"""The expanded qrels as `expand export` writes them, one object a question."""

from pathlib import Path

from lib import files, paths
from lib.qrels.refusals import Refused
from lib.qrels.work import read_lines

FIELDS = ("qid", "workbook_sha256", "hops", "documents", "votes", "pairs", "near", "classes", "rounds")


def read(path: Path) -> list[dict]:
    """All questions of a file, in its order; Refused where it is none of these files, or holds no question."""
    rows = read_lines(path, "run expand export first")
    for number, row in enumerate(rows, 1):
        missing = [name for name in FIELDS if name not in row]
        if missing:
            raise Refused(f"{paths.shown(path)} line {number} has no {missing[0]}; give the file that expand export wrote, not that of build")
    if not rows:
        raise Refused(f"{paths.shown(path)} holds no question; run expand export first")
    return rows


def sources(path: Path, rows: list[dict]) -> dict:
    """The hashes of what tables of these questions are made from: the file, and the reviewer's workbooks behind it."""
    return {"made from": {Path(path).name: files.sha256(path)}, "workbooks": sorted({row["workbook_sha256"] for row in rows})}
