"""How a document's text is printed: whole or TRUNCATED, and so that no text steers a terminal or passes for a heading."""

import re
from collections.abc import Collection

from lib.qrels.documents import Document
from lib.qrels.refusals import Refused

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


def block(document: Document, about: str, max_chars: int, longest: int = 0) -> list[str]:
    """The lines of one document: id, what it is read for, length and hash; then its text, whole or TRUNCATED."""
    name, whole = visible(document.docid), is_whole(document.text, max_chars)
    shown = document.text if whole else document.text[:max_chars]
    return [
        f"=== {name}: {about}; {len(document.text):,} characters, sha256 {document.sha256}",
        *quoted(shown),
        f"=== end of {name}" if whole else f"=== {name}: {truncated(document.text, max_chars, longest)}",
    ]
