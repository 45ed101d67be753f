"""The memory of which texts were printed whole beside which standards."""

from collections.abc import Mapping

from lib import files, paths
from lib.qrels.documents import Document
from lib.qrels.refusals import Refused
from lib.qrels.standards import Standard
from lib.qrels.work import Work, read_json


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


def shows(marks: Mapping[str, dict], document: Document, hop: int, standard: Standard) -> bool:
    """Whether a whole render has shown this text of the document beside this standard of the hop."""
    mark = marks.get(document.docid)
    return mark is not None and mark["text_sha256"] == document.sha256 and mark["standards"].get(str(hop)) == standard.sha256
