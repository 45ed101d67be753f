"""One question's worksheet as a page that stands alone: hops and standards beside the full text, and the rejections it saves.

The text of a document is nobody's friend: it enters the page as JSON inside a data block, in which no character can end
the block, and reaches the screen as text only. A policy lets the page's own script and style run, known by their hashes,
and nothing be loaded from anywhere.
"""

import base64
import hashlib
import html
import json
import re
from pathlib import Path

from lib import files, ids, paths
from lib.qrels import documents, pools, rejections, rendered, standards
from lib.qrels.printed import visible
from lib.qrels.refusals import Refused, Unsettled, option, run
from lib.qrels.standards import Standard
from lib.qrels.work import Work, read_json

_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")  # what could end a data block or a line of script, and what UTF-8 lacks


def write(work: Work, qid: str) -> list[str]:
    """Write the page of a question to `work.page(qid)` and mark its documents as shown whole; the lines to print.

    Nothing is cut in the page, so each pending document whose text is cached counts as shown beside the standards of the hops
    it is pending on. A document without a text is a gap: it stands on the page with its reason, is not marked, and Unsettled
    lists it once the page is written. The same work folder gives the same bytes. Refused as `standards.read` refuses, and where
    a rejections file cannot be loaded.
    """
    with work.held(qid):
        question = pools.question(work, qid)
        bars = standards.read(work, question)
        asked: dict[str, list[int]] = {}
        for entry in question["pool"]:
            if entry["state"] == "pending":
                asked.setdefault(entry["docid"], []).append(entry["hop"])
        found, gaps = [], []
        for docid in sorted(asked):
            try:
                found.append(documents.text(work, docid))
            except documents.Gap as gap:
                gaps.append({"docid": docid, "reason": gap.reason, "hops": sorted(asked[docid])})
        shown = [
            {"docid": one.docid, "sha256": one.sha256, "hops": sorted(asked[one.docid]), "chars": len(one.text), "text": one.text} for one in found
        ]
        files.write_text(work.page(qid), fill(_content(work, question, bars, shown, gaps)))
        rendered.mark(work, qid, {one["docid"]: (one["sha256"], {hop: bars[hop].sha256 for hop in one["hops"]}) for one in shown})
    entries = sum(len(one["hops"]) for one in shown)
    told = [f"{paths.shown(work.page(qid))}: {len(shown):,} documents in full, {entries:,} pending entries; open it in a browser, "
            f"and move what it saves to {paths.shown(work.rejections(qid))}"]
    if gaps:
        way_out = f"{run('fetch', qid)} and write the page again"
        raise Unsettled([f"{visible(gap['docid'])}: GAP, no text ({visible(gap['reason'])}): {way_out}" for gap in gaps], told)
    return told


def fill(content: dict) -> str:
    """The template with this content in its data block, and with the policy that fits its script and its style."""
    template = files.read_bytes(Path(__file__).with_name("page.html")).decode("utf-8")
    script, style = (re.search(f"<{tag}>(.*?)</{tag}>", template, re.DOTALL)[1] for tag in ("script", "style"))
    policy = (f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'; "
              "require-trusted-types-for 'script'; trusted-types 'none'")
    head, tail = template.split("{{data}}")
    head = head.replace("{{policy}}", policy).replace("{{title}}", html.escape(content["qid"]))
    return head + data_block(content) + tail


def data_block(content: dict) -> str:
    """JSON that an HTML parser reads as text and nothing else, whatever it holds; JSON.parse gives the same value back."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(content, ensure_ascii=False, allow_nan=False))


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")


def _content(work: Work, question: dict, bars: dict[int, Standard], shown: list[dict], gaps: list[dict]) -> dict:
    """What the page shows. `version` is the hash of all of it: a draft belongs to one version and is never taken into another."""
    qid = question["qid"]
    hops = [{
        "hop": hop["hop"], "text": hop["text"], "live": hop["live"], "judgment": hop["judgment"], "note": hop["note"],
        "must_state": bars[hop["hop"]].must_state if hop["hop"] in bars else None,
        "near_miss": bars[hop["hop"]].near_miss if hop["hop"] in bars else None,
    } for hop in question["hops"]]
    content = {
        "qid": qid, "question": question["question"], "question_sha256": pools.sha256(question), "workbook": question["workbook"],
        "workbook_sha256": question["workbook_sha256"],
        "file": work.rejections(qid).name, "command": f"python -m lib.qrels verdicts {option(qid)}",
        "hops": hops, "documents": shown, "gaps": gaps, "rejections": _rejections(work.rejections(qid)),
    }
    return content | {"version": hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()}


def _rejections(path: Path) -> list[dict]:
    """The rejections of a former save, none where there is no file; whether each may stand is for `verdicts` to say."""
    if not path.exists():
        return []
    kinds = dict(zip(rejections.KEYS, (int, str, str, str), strict=True))
    way_out = "mend it, or remove it to start the page without rejections"
    rows, found = read_json(path, way_out), {}
    if not isinstance(rows, list):
        raise Refused(f"{paths.shown(path)} is no list of rejections; {way_out}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or set(row) != set(kinds) or any(type(row[key]) is not kind for key, kind in kinds.items()):
            form = "an object of hop (a number), docid, sentence and contrast (texts)"
            raise Refused(f"{paths.shown(path)} rejection {number} is {json.dumps(row)[:80]}, not {form}; {way_out}")
        key = row["hop"], ids.api(row["docid"])
        if key in found:
            raise Refused(f"{paths.shown(path)} rejection {number} names hop {key[0]} of {key[1]} a second time; {way_out}")
        found[key] = row | {"docid": key[1]}
    return list(found.values())
