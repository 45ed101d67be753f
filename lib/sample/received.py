"""Find the truth of a pair by the texts that arrived in a request, whole or cut, never by an id."""

import json
import re
from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from lib import files, paths, trace
from lib.sample import personality, truth

FILES = ("documents.jsonl", "queries.jsonl", "truth_documents.jsonl", "truth_queries.jsonl")
LEAST = 64  # characters that a cut document must show to be recognised

ATTACKS = paths.PROMPTS / "attacks.jsonl"
BEFORE = "\n\n"  # stands between a document and the attack that is appended to it

_HEAD = re.compile(rf"task_id: ([0-9a-f]{{16}})\nguideline_version: {personality.GUIDELINE}\n\n<<<QUERY((?: [0-9a-f]{{16}})?)>>>\n")


class Slots(NamedTuple):
    """What a user message holds; `mark` is the nonce of its fences behind a blank, or empty."""

    task_id: str
    query: str
    document: str
    mark: str


class Unknown(ValueError):
    """No planted query, or no planted document, has the text that arrived."""


def slots(message: str, marked: bool = True) -> Slots | None:
    """The fenced texts of a user message byte for byte, or None where it does not have that form.

    Fences without a nonce are taken where `marked` is False; the document ends where the message does.
    """
    head = _HEAD.match(message)
    if head is None or (marked and not head[2]):
        return None
    task_id, mark = head.groups()
    between, end = f"\n<<<END QUERY{mark}>>>\n\n<<<DOCUMENT{mark}>>>\n", f"\n<<<END DOCUMENT{mark}>>>"
    query, fence, document = message[head.end() :].partition(between)
    if not fence or not document.endswith(end):
        return None
    return Slots(task_id, query, document.removesuffix(end), mark)


def attacks() -> list[str]:
    """The texts of `prompts/attacks.jsonl`, the longest first, so that one that ends as another does is known whole."""
    lines = files.read_bytes(ATTACKS).decode().splitlines()
    return sorted((json.loads(line)["text"] for line in lines), key=len, reverse=True)


def alone(document: str, known: list[str]) -> str:
    """The document without the attack that was appended to it, or as it is."""
    return next((document.removesuffix(BEFORE + attack) for attack in known if document.endswith(BEFORE + attack)), document)


class Planted:
    """The texts of a planted folder with the truth of each, sorted so that what begins with a text stands together."""

    def __init__(self, folder: str | Path):
        folder = Path(folder)
        missing = [name for name in FILES if not (folder / name).exists()]
        if missing:
            raise ValueError(
                f"{paths.shown(folder)} is no planted folder (it has no {missing[0]}); run the first notebook of the plan, which plants it"
            )
        for name in FILES:
            trace.record("read", folder / name)
        queries, documents = truth.load(folder)
        self.queries = _by_text(queries, "problem", "family", "query_evaluable", "reason_codes")
        pages = _by_text(documents, "relations")
        self._texts = sorted(pages)
        self._truths = [pages[text] for text in self._texts]
        for record in self.queries.values():
            if not record["query_evaluable"]:
                _legal(record["qid"], None, "not_assessed", record["reason_codes"])
        for text, record in pages.items():
            for relation in record["relations"]:
                _legal(record["docid"], relation["label"], relation["answer_validity"], relation["reason_codes"])
                if relation["needs"] > len(text):
                    raise ValueError(f"{record['docid']} needs {relation['needs']} characters of {len(text)}; plant the collection again")

    def truth(self, query: str, document: str) -> dict:
        """The true judgment of the texts that arrived; raises Unknown.

        A document that is no whole text is the beginning of one or of several. What any of them has proved by then
        stands in the text, so the highest label of them is the truth; on a tie the first text in order.
        """
        asked = self.queries.get(query)
        if asked is None:
            raise Unknown(f"no planted query has the text {query[:60]!r}")
        first = bisect_left(self._texts, document)
        if self._texts[first : first + 1] == [document]:
            return truth.label(asked, self._truths[first], len(document))
        found = None
        while len(document) >= LEAST and first < len(self._texts) and self._texts[first].startswith(document):
            this = truth.label(asked, self._truths[first], len(document))
            if found is None or (this["score"] or 0) > (found["score"] or 0):
                found = this
            first += 1
        if found is None:
            raise Unknown(f"no planted document begins with the text {document[:60]!r} ({len(document)} characters)")
        return found


def _by_text(records: dict[str, dict], *worth: str) -> dict[str, dict]:
    """Text -> record. Records of one text must agree in what they are worth, so that it does not matter which is found."""
    found: dict[str, dict] = {}
    first: dict[str, str] = {}
    for name, record in records.items():
        text = record["text"]
        known = found.setdefault(text, record)
        if any(known[field] != record[field] for field in worth):
            raise ValueError(f"{first[text]} and {name} have one text and two truths; plant the collection again")
        first.setdefault(text, name)
    return found


def _legal(name: str, *judgment) -> None:
    fault = personality.fault(judgment[0], judgment[0] is not None, *judgment[1:])
    if fault:
        raise ValueError(f"the truth of {name} is not legal: {fault}; plant the collection again")
