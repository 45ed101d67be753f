"""Where each step of the qrels line writes: everything lies in one work folder."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lib import files, paths, processes
from lib.qrels import names
from lib.qrels.refusals import Refused


@dataclass(frozen=True)
class Work:
    """The paths under the work folder; `qid` and `docid` are ids, not file names."""

    folder: Path

    @property
    def candidates(self) -> Path:
        return self.folder / "candidates.jsonl"

    @property
    def overrides(self) -> Path:
        return self.folder / "overrides.json"

    @property
    def qrels(self) -> Path:
        return self.folder / "qrels.jsonl"

    @property
    def expanded(self) -> Path:
        return self.folder / "qrels_expanded.jsonl"

    @property
    def expand(self) -> Path:
        return self.folder / "expand"

    @property
    def fetch_ids(self) -> Path:
        return self.expand / "fetch_ids.json"

    @property
    def exported(self) -> Path:
        """What the expanded qrels were made of."""
        return self.expand / "exported.json"

    def text(self, docid: str) -> Path:
        """The cached text of a document, and beside it, as .json, what is known of the fetch."""
        return self.folder / "docs" / f"{names.safe(docid)}.txt"

    def standards(self, qid: str) -> Path:
        return self.folder / "standards" / f"{names.safe(qid)}.json"

    def rendered(self, qid: str) -> Path:
        return self.folder / "rendered" / f"{names.safe(qid)}.json"

    def page(self, qid: str) -> Path:
        return self.folder / "worksheets" / f"{names.safe(qid)}.html"

    def rejections(self, qid: str) -> Path:
        return self.folder / "rejections" / f"{names.safe(qid)}.json"

    def verdicts(self, qid: str) -> Path:
        return self.folder / "verdicts" / f"{names.safe(qid)}.json"

    def pending(self, qid: str) -> Path:
        return self.expand / "pending" / f"{names.safe(qid)}.json"

    def decisions(self, qid: str) -> Path:
        return self.expand / "decisions" / f"{names.safe(qid)}.json"

    @contextmanager
    def held(self, qid: str | None = None) -> Iterator[None]:
        """Hold one question, or the whole folder, against a second process that would write the same."""
        with processes.lock(self.folder if qid is None else self.folder / "locks" / names.safe(qid)):
            yield


def _distinct(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object")
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")


def parse(text: str, of_pairs: Callable = _distinct):
    """Strict JSON: NaN and Infinity raise ValueError, and so does a key that stands twice, unless `of_pairs` makes objects otherwise."""
    return json.loads(text, object_pairs_hook=of_pairs, parse_constant=_no_constant)


def read_json(path: Path, way_out: str, of_pairs: Callable = _distinct):
    """The JSON of a file; Refused, with the way out, where it is missing, no UTF-8 or no strict JSON."""
    try:
        return parse(files.read_bytes(path).decode("utf-8"), of_pairs)
    except FileNotFoundError:
        raise Refused(f"{paths.shown(path)} is not there; {way_out}") from None
    except OSError as error:
        raise Refused(f"{paths.shown(path)} cannot be read ({error.strerror}); {way_out}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"{paths.shown(path)} is no strict JSON ({error}); {way_out}") from error


def read_lines(path: Path, way_out: str) -> list[dict]:
    """The objects of a JSONL file; Refused, with the line, at what is no object. Blank lines are passed over."""
    try:
        lines = files.read_bytes(path).decode("utf-8").split("\n")
    except FileNotFoundError:
        raise Refused(f"{paths.shown(path)} is not there; {way_out}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{paths.shown(path)} cannot be read as UTF-8 ({error}); {way_out}") from error
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                value = parse(line)
            except (ValueError, RecursionError) as error:
                raise Refused(f"{paths.shown(path)} line {number} is no strict JSON ({error}); {way_out}") from error
            if not isinstance(value, dict):
                raise Refused(f"{paths.shown(path)} line {number} is no JSON object; {way_out}")
            found.append(value)
    return found


def write_lines(path: Path, rows: list[dict]) -> None:
    """Write JSONL, one object a line, keys in the order given, UTF-8 and LF."""
    files.write_text(path, "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows))
