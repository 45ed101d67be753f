"""The full texts of the documents: fetched by a command, kept by id with their hashes, and what is missing with its reason."""

import hashlib
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from lib import files, paths, processes
from lib import ids as spelling
from lib.qrels import command as commands
from lib.qrels import pools
from lib.qrels import work as places
from lib.qrels.refusals import Refused, Unsettled
from lib.qrels.work import Work

_BACKOFF = 0.2  # seconds before the second try, twice as long before each later one
_LONGEST = 5.0
_REFUSED = 20  # documents without an answer, before the command has ever given one, that stop the run
_NAMED = 20  # gaps of one reason that are named


class Document(NamedTuple):
    docid: str
    text: str
    sha256: str  # of the UTF-8 bytes


class Gap(Refused):
    """The text of a document is not there; `reason` says why."""

    def __init__(self, docid: str, reason: str):
        self.docid, self.reason = docid, reason
        super().__init__(f"the text of document {docid} is missing ({reason}); run python -m lib.qrels fetch")


def text(work: Work, docid: str) -> Document:
    """The cached text of a document, in either spelling of its id; raises Gap where there is none that its hash vouches for."""
    docid = spelling.api(docid)
    target = work.text(docid)
    try:
        known = places.parse(files.read_bytes(target.with_suffix(".json")).decode("utf-8"))
        if known["docid"] != docid:
            raise Gap(docid, f"{paths.shown(target)} belongs to another document")
        if "gap" in known:
            raise Gap(docid, str(known["gap"]))
        expected = known["sha256"]
    except FileNotFoundError:
        raise Gap(docid, "it was not fetched yet") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, Gap):
            raise
        raise Gap(docid, f"{paths.shown(target.with_suffix('.json'))} is damaged") from error
    try:
        data = files.read_bytes(target)
        if hashlib.sha256(data).hexdigest() == expected:
            return Document(docid, data.decode("utf-8"), expected)
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    raise Gap(docid, f"{paths.shown(target)} is not the text that was fetched")


def occurs(sentence: str, text: str) -> bool:
    """Whether a sentence stands in a text, both with each run of white space taken as one blank; all else counts. A blank one does not."""
    sentence = " ".join(sentence.split())
    return bool(sentence) and sentence in " ".join(text.split())


def ids(work: Work, qid: str | None = None, ids_file: str | Path | None = None) -> list[str]:
    """The documents of all pools, of one question's, or of a file that holds a JSON list of ids; sorted, in the API spelling.

    All of a pool counts, also what a vote has decided: quotes and standards are checked against the texts.
    """
    if ids_file is not None:
        return _listed(Path(ids_file))
    questions = pools.read(work).values() if qid is None else [pools.question(work, qid)]
    return sorted({entry["docid"] for question in questions for entry in question["pool"]})


def _listed(path: Path) -> list[str]:
    found = places.read_json(path, "give a JSON list of document ids, as expand scan writes it")
    if not isinstance(found, list):
        raise Refused(f"{paths.shown(path)} holds a {type(found).__name__}; give a JSON list of document ids")
    for place, docid in enumerate(found, 1):
        if fault := spelling.fault(docid):
            raise Refused(f"{paths.shown(path)}: id {place}, {docid!r}, {fault}; give a JSON list of document ids, each in quotes")
    return sorted(set(map(spelling.api, found)))


def fetch(work: Work, docids: Iterable[str], command: str, workers: int = 4, timeout: float = 60.0, tries: int = 3) -> list[str]:
    """Cache the text of each document, as `command DOCID` prints it; `workers` commands run at once, each for `timeout` seconds at most.

    What is cached already is not asked for again, a gap is. A command that gives no document is asked `tries` times;
    then the reason is recorded, and the gaps are raised together as Unsettled. A program that cannot be started stops all,
    and so does one that has not answered for any of the first 20. What was fetched before an end of any kind stays, and
    nothing half-written counts.
    """
    docids, words = list(docids), commands.words(command)
    for docid in docids:
        if fault := spelling.fault(docid):
            raise Refused(f"the document id {docid!r} {fault}; give legal ids")
    wanted, folder = sorted(set(map(spelling.api, docids))), work.folder / "docs"
    with processes.lock(folder):
        for leftover in folder.glob(".*.tmp-*"):  # of a run that was killed while it wrote
            leftover.unlink(missing_ok=True)
        missing = [docid for docid in wanted if not _cached(work, docid)]
        patience = len(missing) if any(folder.glob("*.txt")) else _REFUSED
        reasons = _fetch_all(work, missing, words, workers, timeout, tries, patience)
    gaps = {docid: reason for docid, reason in sorted(reasons.items()) if reason}
    told = (
        f"documents: {len(wanted):,} asked for, {len(wanted) - len(missing):,} cached before, "
        f"{len(reasons) - len(gaps):,} fetched, {len(gaps):,} {'gap' if len(gaps) == 1 else 'gaps'}"
    )
    if len(reasons) == len(missing):
        if gaps:
            raise Unsettled(_by_reason(gaps), [told])
        return [told]
    stopped = (
        f"stopped before the other {len(missing) - len(reasons):,}: the command answered for none of the first {len(reasons)}; "
        "mend it and run fetch again, or fetch one question that it knows by --qid first"
    )
    raise Unsettled([*_by_reason(gaps), stopped], [told])


def _by_reason(gaps: dict[str, str]) -> list[str]:
    """A line for each reason with the documents that it holds for; each document's own is beside its text."""
    groups: dict[str, list[str]] = {}
    for docid, reason in gaps.items():
        groups.setdefault(reason, []).append(docid)
    lines = []
    for reason, docids in groups.items():
        more = f" and {len(docids) - _NAMED:,} more" if len(docids) > _NAMED else ""
        are = "document {} is a gap" if len(docids) == 1 else "documents {} are gaps"
        lines.append(f"{are.format(', '.join(docids[:_NAMED]) + more)}: {reason}; mend that and run fetch again")
    return lines


def _cached(work: Work, docid: str) -> bool:
    try:
        return bool(text(work, docid))
    except Gap:
        return False


def _fetch_all(
    work: Work, docids: list[str], words: list[str], workers: int, timeout: float, tries: int, patience: int
) -> dict[str, str | None]:
    """Of each document that was tried None, or the reason why it is a gap; all are, unless the first `patience` of them are gaps."""
    stop, reasons = threading.Event(), {}
    with ThreadPoolExecutor(max(1, workers)) as pool, tqdm(desc="fetch", total=len(docids), mininterval=10, disable=None) as bar:
        try:
            for part in (docids[:patience], docids[patience:]):
                if reasons and all(reasons.values()):  # the first are all gaps, so nobody is asked for the others
                    break
                asked = {pool.submit(_fetch_one, work, docid, words, timeout, tries, stop): docid for docid in part}
                for future in as_completed(asked):
                    reasons[asked[future]] = future.result()
                    bar.update()
        finally:  # an interrupt, a full disk, a program that is not there: what is under way is killed
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    return reasons


def _fetch_one(work: Work, docid: str, words: list[str], timeout: float, tries: int, stop: threading.Event) -> str | None:
    """Write a document's text, then what is known of it; or the gap, whose reason is given back."""
    target, done = work.text(docid), 0
    known = target.with_suffix(".json")
    reason = "its id begins with '-', which the command would read as an option"
    while done < max(1, tries) and not docid.startswith("-"):
        if done and stop.wait(min(_LONGEST, _BACKOFF * 2 ** (done - 1))):
            raise commands.Stopped
        try:
            answer = commands.answer(words, docid, timeout, stop)
        except commands.NoAnswer as error:
            done, reason = done + 1, str(error)
            continue
        data = answer.encode("utf-8")
        with files.whole(target) as temporary:
            temporary.write_bytes(data)
        files.write_json(known, {"docid": docid, "sha256": hashlib.sha256(data).hexdigest(), "chars": len(answer)})
        return None
    target.unlink(missing_ok=True)
    files.write_json(known, {"docid": docid, "gap": reason, "tries": done})
    return reason
