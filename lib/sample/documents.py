"""The retrieval command of the planted set: `python -m lib.sample.documents doc DOCID` prints the full text of a document.

The text's bytes and nothing else go to standard output. It knows ids in the spelling of the retrieval API only, and starts
fast: an index of byte offsets beside `documents.jsonl` says where the line is.
"""

import json
import os
import sys

_USAGE = "usage: python -m lib.sample.documents doc [--from FOLDER] DOCID   (FOLDER is $QRELS_SAMPLE unless given)"


def write(folder, texts: dict[str, str]) -> None:
    """Write `documents.jsonl` (docid, text), in the order given, and the index of its lines."""
    from lib import files  # only who writes needs it

    offsets, lines, place = {}, [], 0
    for docid, text in texts.items():
        line = json.dumps({"docid": docid, "text": text}, ensure_ascii=False) + "\n"
        lines.append(line)
        offsets[docid] = [place, len(line.encode())]
        place += len(line.encode())
    files.write_text(os.path.join(folder, "documents.jsonl"), "".join(lines))
    files.write_text(os.path.join(folder, "documents.index.json"), json.dumps(offsets) + "\n")


def text(folder: str, docid: str) -> str:
    """The text of a document; LookupError, in a sentence, for an id that the set lacks."""
    with open(os.path.join(folder, "documents.index.json"), encoding="utf-8") as handle:
        offsets = json.load(handle)
    if docid not in offsets:
        like = next(iter(offsets), None)
        raise LookupError(f"there is no document {docid!r} among the {len(offsets)} of the sample; its ids look like {like!r}")
    place, size = offsets[docid]
    with open(os.path.join(folder, "documents.jsonl"), "rb") as handle:
        handle.seek(place)
        return json.loads(handle.read(size))["text"]


def main(words: list[str]) -> int:
    """The command line; 1 with a sentence where there is no such document or no such set, 2 where the words are no command."""
    folder = os.environ.get("QRELS_SAMPLE")
    if "--from" in words[1:-1]:
        at = words.index("--from")
        folder, words = words[at + 1], words[:at] + words[at + 2 :]
    if words in (["-h"], ["--help"]):
        print(_USAGE)
        return 0
    if len(words) != 2 or words[0] != "doc" or not folder:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        found = text(folder, words[1])
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"{folder} holds no readable sample ({error}); write one with python -m lib.sample.qrels_set {folder}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(found.encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
