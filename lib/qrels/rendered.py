"""How a document's text is printed, and the memory of which texts were printed whole beside which standards."""

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lib import files, paths
from lib.qrels.refusals import Refused
from lib.qrels.standards import Standard
from lib.qrels.work import Work, read_json

if TYPE_CHECKING:
    from lib.qrels.documents import Document

MAX_CHARS = 20_000  # of one document in one render; 0 is no limit
# control characters (a tab is none here), line and paragraph separators, direction marks, half surrogates, invisible tags
_UNSEEN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")


def visible(text: str) -> str:
    """A text that a terminal shows as it is and in its order: what would steer it is written out, as `[U+001B]`."""
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def quoted(text: str, mark: str = "| ") -> list[str]:
    """The lines of a text, each behind `mark`, so that no text can pass for a heading; CR, LF and CR LF end a line."""
    return [mark + visible(line) for line in re.split(r"\r\n|\r|\n", text)]


def named_hops(hops: Collection[int]) -> str:
    """`hop 1`, or `hops 1, 2`."""
    return f"hop{'s' if len(hops) > 1 else ''} {', '.join(map(str, sorted(hops)))}"


def check_max_chars(max_chars: int) -> None:
    if isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 0:
        raise Refused(f"--max-chars {max_chars} is no number of characters; take 1 or more, or 0 for no limit")


def is_whole(text: str, max_chars: int) -> bool:
    return not max_chars or len(text) <= max_chars


def truncated(text: str, max_chars: int, longest: int = 0) -> str:
    """What stands wherever a text is cut: how far it goes, what that means, and the flag that shows all of it.

    The flag covers a text of `longest` characters too, the longest of the render.
    """
    return (
        f"TRUNCATED after {max_chars:,} of {len(text):,} characters: "
        f"nothing of this document can be recorded; render again with --max-chars {max(longest, len(text))}"
    )


def block(document: "Document", about: str, max_chars: int, longest: int = 0) -> list[str]:
    """The lines of one document: id, what it is read for, length and hash; then its text, whole or TRUNCATED."""
    name, whole = visible(document.docid), is_whole(document.text, max_chars)
    shown = document.text if whole else document.text[:max_chars]
    return [
        f"=== {name}: {about}; {len(document.text):,} characters, sha256 {document.sha256}",
        *quoted(shown),
        f"=== end of {name}" if whole else f"=== {name}: {truncated(document.text, max_chars, longest)}",
    ]


def read(work: Work, qid: str) -> dict[str, dict]:
    """What whole renders of a question have shown: {docid: {"text_sha256": ..., "standards": {hop as text: sha256}}}."""
    path = work.rendered(qid)
    if not path.exists():
        return {}
    way_out = "delete it and render the question again"
    marks = read_json(path, way_out)
    if isinstance(marks, dict) and all(_is_mark(mark) for mark in marks.values()):
        return marks
    raise Refused(f"{paths.shown(path)} is no memory of renders; {way_out}")


def _is_mark(mark) -> bool:
    if not isinstance(mark, dict) or set(mark) != {"text_sha256", "standards"} or not isinstance(mark["standards"], dict):
        return False
    hops, hashes = mark["standards"].keys(), (mark["text_sha256"], *mark["standards"].values())
    return all(hop.isdecimal() for hop in hops) and all(isinstance(value, str) for value in hashes)


def mark(work: Work, qid: str, shown: Mapping[str, tuple[str, Mapping[int, str]]]) -> None:
    """Remember {docid: (hash of the text, {hop: hash of its standard})} of a render that was printed to its end.

    The newest text of a document wins; for the same text the hops are united, the newest standard of a hop wins.
    """
    if not shown:
        return
    with work.held(qid):
        marks = read(work, qid)
        for docid, (text_sha256, standards) in shown.items():
            known = marks.get(docid, {})
            before = known["standards"] if known.get("text_sha256") == text_sha256 else {}
            hops = before | {str(hop): sha256 for hop, sha256 in standards.items()}
            marks[docid] = {"text_sha256": text_sha256, "standards": dict(sorted(hops.items(), key=lambda item: int(item[0])))}
        files.write_json(work.rendered(qid), dict(sorted(marks.items())))


def shows(marks: Mapping[str, dict], document: "Document", hop: int, standard: Standard) -> bool:
    """Whether a whole render has shown this text of the document beside this standard of the hop."""
    mark = marks.get(document.docid)
    return mark is not None and mark["text_sha256"] == document.sha256 and mark["standards"].get(str(hop)) == standard.sha256
