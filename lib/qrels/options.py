"""The options of each step of the command line, and what `--help` says of them."""

import argparse
import os
from pathlib import Path

VARIABLES = """Each option beats its variable:
  QRELS_WORKBOOK      the reviewer's workbook                  --workbook
  QRELS_QUESTIONS     the verified questions                   --questions
  QRELS_DOC_CMD       the command that prints a document       --doc-cmd
  QRELS_NEAR_DUP_DIR  the folder of near-duplicate Parquet     --near-dup-dir
  QRELS_EXACT_DUPS    the exact-duplicate groups               --exact-dups
  QRELS_WORK_DIR      where every step writes (work)           --work-dir"""
NEXT = ("candidates, fetch, worksheet, verdicts, build, then expand scan, fetch, expand render and expand apply until closure, expand export, "
        "stats, near-dup, release")


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 0")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return value


def _inches(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 30:
        raise argparse.ArgumentTypeError(f"{text} is no width of a page; give inches from 1 to 30")
    return value


class _Steps:
    """The steps as they are added to one parser: each says what it reads and what it writes."""

    def __init__(self, parser: argparse.ArgumentParser, dest: str = "step"):
        self.parsers = parser.add_subparsers(dest=dest, required=True, metavar="STEP")

    def add(self, name: str, text: str, reads: str, writes: str) -> argparse.ArgumentParser:
        """One step, with the work folder that every step takes."""
        step = self.parsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}. Reads {reads}. Writes {writes}.",
                                       epilog=VARIABLES, formatter_class=argparse.RawDescriptionHelpFormatter)
        step.add_argument("--work-dir", default=os.environ.get("QRELS_WORK_DIR") or "work", metavar="DIR", help="QRELS_WORK_DIR, or work")
        return step


def _variable(step: argparse.ArgumentParser, option: str, variable: str, text: str) -> None:
    step.add_argument(option, default=os.environ.get(variable) or None, metavar=variable.split("_", 1)[1], help=f"{text} ({variable})")


def _near_dups(step: argparse.ArgumentParser) -> None:
    _variable(step, "--near-dup-dir", "QRELS_NEAR_DUP_DIR", "the folder of near-duplicate Parquet files, a row for each document of the corpus")


def _exact_dups(step: argparse.ArgumentParser) -> None:
    _variable(step, "--exact-dups", "QRELS_EXACT_DUPS", "groups of exact duplicates, one JSON object a line")


def _qrels(step: argparse.ArgumentParser) -> None:
    step.add_argument("--qrels", type=Path, metavar="FILE", help="what build wrote (qrels.jsonl of the work folder)")


def _cut(step: argparse.ArgumentParser) -> None:
    step.add_argument("--max-chars", type=_whole, default=20_000, metavar="N", help="characters shown of one document, 0 for all (%(default)s)")


def _figures(step: argparse.ArgumentParser) -> None:
    step.add_argument("file", type=Path, help="what expand export wrote")
    step.add_argument("--outdir", type=Path, default=Path("out"), metavar="DIR", help="(%(default)s)")
    step.add_argument("--figwidth", type=_inches, default=5.5, metavar="INCHES", help="the width on the page (%(default)s)")
    step.add_argument("--png", action="store_true", help="a PNG beside each PDF")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        "python -m lib.qrels", description="From a reviewer's workbook to qrels that are closed over duplicates.",
        epilog=f"In this order: {NEXT}.\n\n{VARIABLES}", formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    steps = _Steps(found)
    step = steps.add("candidates", "make one candidate pool a question",
                     "the workbook, the verified questions, overrides.json and, for its quotes, docs/", "candidates.jsonl")
    _variable(step, "--workbook", "QRELS_WORKBOOK", "the reviewer's workbook, .xlsm or .xlsx; it is never saved")
    _variable(step, "--questions", "QRELS_QUESTIONS", "the verified questions, one JSON object a line")
    step.add_argument("--columns", type=Path, metavar="FILE", help="JSON: the sheets and headers of this workbook, where they are not the usual ones")

    step = steps.add("fetch", "cache the full text of documents", "candidates.jsonl, or a list of ids such as expand/fetch_ids.json", "docs/")
    which = step.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="every document of every pool")
    which.add_argument("--qid", metavar="Q", help="the documents of one pool")
    which.add_argument("--ids-file", type=Path, metavar="FILE", help="a JSON list of ids, such as expand/fetch_ids.json")
    _variable(step, "--doc-cmd", "QRELS_DOC_CMD", "the command that prints a document; the id is its last argument, no shell is used")
    step.add_argument("--workers", type=_positive, default=4, metavar="N", help="commands at once (%(default)s)")
    step.add_argument("--timeout", type=_seconds, default=60.0, metavar="S", help="seconds for one try (%(default)g)")
    step.add_argument("--tries", type=_positive, default=3, metavar="N", help="tries a document (%(default)s)")

    step = steps.add("worksheet", "show what one question still needs judged, standards first, in full text",
                     "candidates.jsonl, standards/Q.json, verdicts/Q.json, docs/ and, with --html, rejections/Q.json",
                     "rendered/Q.json: what was shown whole; with --html also worksheets/Q.html")
    step.add_argument("--qid", required=True, metavar="Q")
    step.add_argument("--html", action="store_true", help="a page to judge in a browser, instead of text")
    _cut(step)

    step = steps.add("verdicts", "record rejections, and accept by silence what was shown whole",
                     "candidates.jsonl, overrides.json, standards/, rejections/, rendered/, docs/ and earlier verdicts/", "verdicts/Q.json")
    which = step.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="every question that was judged: it has a rejections file, or nothing is pending")
    which.add_argument("--qid", metavar="Q", help="one question; without a rejections file all that was shown whole is accepted")

    step = steps.add("build", "make qrels of candidates and verdicts", "candidates.jsonl, overrides.json, standards/, rejections/, verdicts/ and docs/",
                     "FILE, and needs_review.jsonl beside it: each live hop without support")
    step.add_argument("--out", type=Path, metavar="FILE", help="(qrels.jsonl of the work folder)")

    text = "extend qrels over exact and near duplicates, to closure"
    whole = (f"{text[0].upper()}{text[1:]}: scan, render, apply, until nothing is left; then export. Reads what build wrote, the duplicate files, "
             "standards/ and docs/. Writes expand/, rendered/ and qrels_expanded.jsonl.")
    inner = _Steps(steps.parsers.add_parser("expand", help=text, description=whole), "inner")
    step = inner.add("scan", "find the copies that are left to judge", "FILE, expand/decisions/, standards/, docs/ and the duplicate files",
                     "expand/pending/, expand/fetch_ids.json and, to find rows again, expand/near/")
    _qrels(step)
    _near_dups(step)
    _exact_dups(step)
    step = inner.add("render", "show the copies of one question that are left to judge, against all its live hops",
                     "FILE, expand/pending/Q.json, expand/decisions/Q.json, standards/Q.json and docs/", "rendered/Q.json: what was shown whole")
    step.add_argument("--qid", required=True, metavar="Q")
    _qrels(step)
    _cut(step)
    step = inner.add("apply", "take explicit decisions on copies",
                     "DECISIONS, FILE as it was scanned, expand/pending/Q.json, rendered/Q.json, standards/Q.json and docs/",
                     "expand/decisions/Q.json")
    step.add_argument("--qid", required=True, metavar="Q")
    step.add_argument("--decisions", type=Path, required=True, metavar="DECISIONS",
                      help='JSON: {docid: {"hops": [...], "sentence": "...", "contrast": "..."}}, no hops for a rejection')
    step = inner.add("export", "write the qrels closed over duplicates; refuses before closure",
                     "FILE, expand/decisions/, standards/, docs/ and the duplicate files, by expand/near/",
                     "OUT: one line a question, with the origin of each document; and expand/exported.json: what it was made of")
    _qrels(step)
    _near_dups(step)
    _exact_dups(step)
    step.add_argument("--out", type=Path, metavar="OUT", help="(qrels_expanded.jsonl of the work folder)")

    _figures(steps.add("stats", "draw how documents, hops and votes are distributed", "FILE",
                       "CSV and PDF into DIR, and stats.json: the hashes of FILE and workbook"))
    _figures(steps.add("near-dup", "draw what the expansion added, and which near copies were accepted", "FILE",
                       "CSV and PDF into DIR, and near-dup.json: the hashes of FILE and workbook"))

    step = steps.add("release", "write the released files: per question, without per-hop data",
                     "FILE, needs_review.jsonl, docs/ and the ids of the corpus; and, to see whether FILE is of today, candidates.jsonl, overrides.json, "
                     "standards/, rejections/, verdicts/, expand/exported.json and expand/decisions/",
                     "DIR: TREC qrels, a BEIR folder, JSONL, a data card and a manifest of hashes")
    step.add_argument("file", type=Path, nargs="?", help="what expand export wrote (qrels_expanded.jsonl of the work folder)")
    step.add_argument("--outdir", type=Path, required=True, metavar="DIR")
    _near_dups(step)
    step.add_argument("--corpus", type=Path, metavar="FILE", help="the ids of the corpus, one a line, where there are no near-duplicate files")
    step.add_argument("--no-texts", dest="texts", action="store_false", help="leave corpus.jsonl out of the BEIR folder")

    steps.add("status", "show where each question stands", "the work folder", "nothing")
    return found
