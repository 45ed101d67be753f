"""File names of questions and documents, safe and distinct on any file system."""

import hashlib
import re

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")  # Windows opens a device for these, whatever the suffix


def safe(an_id: str) -> str:
    """The file name of an id, without a suffix.

    A plain id is its own name: ASCII digits, small letters, `_` and `-`, at most 80 of them, as `shard_00045_6622` and `78` are.
    Any other id gives its first plain characters and 16 hex digits of its hash: no name holds a path, a device or
    two ids that differ in case alone, and no plain id ends so (`~` stands before the digits).
    """
    if _PLAIN.fullmatch(an_id) and not _RESERVED.fullmatch(an_id):
        return an_id
    digest = hashlib.sha256(an_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{re.sub(r'[^a-z0-9_-]+', '-', an_id.lower(), flags=re.ASCII)[:40].strip('-') or 'id'}~{digest}"
