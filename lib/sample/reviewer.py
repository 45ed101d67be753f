"""The planted reader of the sample's questions, who judges from the texts as an agent would, through files alone.

It knows which sentences state a hop and which just miss it, and nothing of which document holds them: it reads the cached
text and finds out, so a copy that lost the sentence is rejected. `standards`, then `rejections`, then, after each scan,
`decisions` write what the steps of the qrels line read.
"""

import argparse
import json
import re
from pathlib import Path

from lib import files, paths
from lib.text import tokens


class Unread(Exception):
    """The reader cannot judge: a file that a step of the qrels line should have written is not there."""


def standards(set_folder: Path, work: Path) -> list[str]:
    """Write `standards/QID.json`, what a page must state and the near miss to reject, for each hop of the candidates that is live."""
    known, told = _truth(set_folder), []
    for question in _candidates(work):
        hops = _hops(known, question["qid"])
        live = [hop["hop"] for hop in question["hops"] if hop["live"]]
        bars = {str(hop): {key: hops[hop][key] for key in ("must_state", "near_miss")} for hop in live}
        path = work / "standards" / f"{question['qid']}.json"
        files.write_json(path, bars)
        told.append(f"{question['qid']}: standards of {len(bars)} hops in {paths.shown(path)}")
    return told


def rejections(set_folder: Path, work: Path, qid: str | None = None) -> list[str]:
    """Write `rejections/QID.json`, the pending entries whose text does not state their hop, of one question or of all."""
    known, told = _truth(set_folder), []
    for question in _asked(_candidates(work), qid):
        hops, rejected = _hops(known, question["qid"]), []
        pending = [entry for entry in question["pool"] if entry["state"] == "pending"]
        for entry in pending:
            hop, text = hops[entry["hop"]], _text(work, entry["docid"])
            if not stating(hop, text):
                sentence, contrast = deciding(hop, text)
                rejected.append({"hop": entry["hop"], "docid": entry["docid"], "sentence": sentence, "contrast": contrast})
        path = work / "rejections" / f"{question['qid']}.json"
        files.write_json(path, rejected)
        told.append(f"{question['qid']}: {len(pending)} read, {len(rejected)} rejected in {paths.shown(path)}")
    return told


def decisions(set_folder: Path, work: Path, qid: str | None = None, part: tuple[int, int] = (1, 1), out: Path | None = None) -> list[str]:
    """Write a decision on each pending copy, the `part` i of n of each question's, as `expand/to_apply/QID.json` or to `out`.

    A decision answers all live hops, also those that the copy's text was judged on before. A copy of another pending one is
    left to that one's decision. A question with nothing to decide has no file, and an older one is taken away.
    """
    known, told = _truth(set_folder), []
    live = {question["qid"]: [hop["hop"] for hop in question["hops"] if hop["live"]] for question in _candidates(work)}
    pending = work / "expand" / "pending"
    found = sorted(pending.glob("*.json")) if qid is None else [pending / f"{qid}.json"]
    if out and len(found) != 1:
        raise Unread(f"{len(found)} questions do not go into the one file {paths.shown(out)}; name one with --qid")
    for path in found:
        scanned = _json(path, "run python -m lib.qrels expand scan")
        hops = _hops(known, scanned["qid"])
        rows = [row for row in scanned["pending"] if "copy_of" not in row][part[0] - 1 :: part[1]]
        made = {row["docid"]: _decision(hops, live[scanned["qid"]], _text(work, row["docid"])) for row in rows}
        target = out or work / "expand" / "to_apply" / path.name
        if made:
            files.write_json(target, made)
            rejected = sum(not one["hops"] for one in made.values())
            told.append(f"{scanned['qid']}: {len(made)} read, {rejected} rejected in {paths.shown(target)}")
        else:
            target.unlink(missing_ok=True)
    return told or ["nothing is pending"]


def stating(hop: dict, text: str) -> str | None:
    """The sentence by which a text states a hop, or None; a sentence may run over a line's end."""
    folded = " ".join(text.split())
    return next((sentence for sentence in hop["states"] if _stands(sentence, folded)), None)


def deciding(hop: dict, text: str) -> tuple[str, str]:
    """For a text that does not state a hop, the sentence that comes nearest to it, and the sentence that would have passed."""
    folded = " ".join(text.split())
    missed = next((miss["sentence"] for miss in hop["misses"] if _stands(miss["sentence"], folded)), None)
    wanted = set(tokens(hop["states"][0]))
    nearest = missed or max(re.findall(r"[^.]+\.", folded), key=lambda sentence: (len(wanted & set(tokens(sentence))), sentence)).strip()
    return nearest, f"A page passes that says: {hop['states'][0]}"


def _stands(sentence: str, folded: str) -> bool:
    """Whether a sentence stands whole in a text: at its begin, or after the end of another or a title."""
    return bool(re.search(rf"(?:^|[.)] ){re.escape(sentence)}(?: |$)", folded))


def _decision(hops: dict[int, dict], live: list[int], text: str) -> dict:
    found = {hop: sentence for hop in live if (sentence := stating(hops[hop], text))}
    if found:
        first = min(found)
        contrast = f"A page fails where it has no more than this: {hops[first]['near_miss']}"
        return {"hops": sorted(found), "sentence": found[first], "contrast": contrast}
    sentence, contrast = deciding(hops[min(live)], text)
    return {"hops": [], "sentence": sentence, "contrast": contrast}


def _json(path: Path, way_out: str):
    try:
        return json.loads(files.read_bytes(path))
    except FileNotFoundError:
        raise Unread(f"{paths.shown(path)} is not there; {way_out}") from None


def _text(work: Path, docid: str) -> str:
    path = work / "docs" / f"{docid}.txt"
    try:
        return files.read_bytes(path).decode("utf-8")
    except FileNotFoundError:
        raise Unread(f"{paths.shown(path)} is not there, and an unread document gets no decision; run python -m lib.qrels fetch") from None


def _rows(path: Path, way_out: str) -> list[dict]:
    try:
        return [json.loads(line) for line in files.read_bytes(path).splitlines()]
    except FileNotFoundError:
        raise Unread(f"{paths.shown(path)} is not there; {way_out}") from None


def _candidates(work: Path) -> list[dict]:
    return _rows(work / "candidates.jsonl", "run python -m lib.qrels candidates")


def _truth(set_folder: Path) -> dict[str, dict[int, dict]]:
    """Of each question's hops the standard and the sentences; which documents hold them is not read."""
    rows = _rows(set_folder / "truth.jsonl", "write the set with python -m lib.sample.qrels_set")
    keys = ("must_state", "near_miss", "states", "misses")
    return {row["qid"]: {hop["hop"]: {key: hop[key] for key in keys} for hop in row["hops"]} for row in rows}


def _hops(known: dict[str, dict[int, dict]], qid: str) -> dict[int, dict]:
    if qid not in known:
        raise Unread(f"the question {qid!r} is none of the sample's {len(known)}; give the set that the work folder was made from")
    return known[qid]


def _asked(questions: list[dict], qid: str | None) -> list[dict]:
    found = [question for question in questions if qid in (None, question["qid"])]
    if not found:
        raise Unread(f"the question {qid!r} is none of the {len(questions)} candidates; leave --qid out for all of them")
    return found


def _part(words: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", words)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"{words!r} is no part; take 1/3, 2/3 or 3/3")
    return int(match[1]), int(match[2])


def main() -> None:
    """The command line; 1 with a sentence where something to read is missing."""
    says = "Judge the sample's questions from the texts in a work folder."
    parser = argparse.ArgumentParser(prog="python -m lib.sample.reviewer", description=says)
    steps = parser.add_subparsers(dest="step", required=True)
    for step, says in (("standards", standards), ("rejections", rejections), ("decisions", decisions)):
        one = steps.add_parser(step, description=says.__doc__)
        one.add_argument("set", type=Path, help="the folder of lib.sample.qrels_set")
        one.add_argument("work", type=Path, help="the work folder of the qrels line")
        if step != "standards":
            one.add_argument("--qid")
        if step == "decisions":
            one.add_argument("--part", type=_part, default=(1, 1), metavar="I/N")
            one.add_argument("--out", type=Path)
    given = parser.parse_args()
    try:
        match given.step:
            case "standards":
                told = standards(given.set, given.work)
            case "rejections":
                told = rejections(given.set, given.work, given.qid)
            case _:
                told = decisions(given.set, given.work, given.qid, given.part, given.out)
    except Unread as error:
        parser.exit(1, f"{error}\n")
    print("\n".join(told))


if __name__ == "__main__":
    main()
