"""A small world of copies: near-duplicate Parquet, exact groups, qrels, texts and a reader who decides by the text alone."""

import json
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import small_qrels

from lib import ids
from lib.qrels import work as places
from lib.qrels.work import Work

SCHEMA = pa.schema({"doc_id": pa.string(), "duplicates": pa.list_(pa.struct({"doc_id": pa.string(), "jaccard": pa.float32()}))})


class Copies(NamedTuple):
    """A work folder with qrels, and the files that a scan reads."""

    work: Work
    qrels: Path
    near: Path
    exact: Path
    texts: dict[str, str]

    @property
    def sources(self):
        return self.qrels, self.near, self.exact


def near_files(folder: Path, edges: dict[tuple[str, str], float], docids, shards: int = 2) -> Path:
    """One row a document in padded spelling; an edge stands in the row of its first document."""
    rows = [
        {"doc_id": ids.analysis(docid), "duplicates": [{"doc_id": ids.analysis(b), "jaccard": jaccard} for (a, b), jaccard in edges.items() if a == docid]}
        for docid in sorted(docids)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for shard in range(shards):
        pq.write_table(pa.Table.from_pylist(rows[shard::shards], SCHEMA), folder / f"part-{shard}.parquet")
    return folder


def qrels_row(qid: str, judged: dict[str, list[int]], live=(1, 2), dead=(), rejected=None) -> dict:
    """A line as `build` writes it."""
    return {
        "qid": qid, "question": f"What is asked in {qid}?", "workbook_sha256": "a" * 64,
        "hops": [{"hop": hop, "text": f"What does hop {hop} ask?", "live": hop in live} for hop in sorted({*live, *dead})],
        "documents": [{"docid": docid, "hops": sorted(hops), "by": ["silence"] * len(hops)} for docid, hops in sorted(judged.items())],
        "rejected": [{"docid": docid, "hops": sorted(hops)} for docid, hops in sorted((rejected or {}).items())],
        "votes": {"Supports": 0, "Partial support": 0, "Does not support": 0, "none": 1}, "pairs": 1, "standards": {},
    }


def make(folder: Path, questions: list[dict], edges: dict[tuple[str, str], float], exact=(), texts=None, documents=()) -> Copies:
    """Judged and rejected documents are cached, the others are to be fetched; every document has a row in the near-duplicate files."""
    work = Work(folder / "work")
    docids = {*documents, *(docid for edge in edges for docid in edge), *(docid for group in exact for docid in group)}
    for row in questions:
        pool = {each["docid"] for name in ("documents", "rejected") for each in row[name]}
        docids |= pool
        small_qrels.standards(work, row["qid"], [hop["hop"] for hop in row["hops"] if hop["live"]])
    texts = {docid: (texts or {}).get(docid, f"A page.\n\n{small_qrels.sentence(docid)}\n") for docid in docids}
    for row in questions:
        for name in ("documents", "rejected"):
            for each in row[name]:
                small_qrels.cache(work, each["docid"], texts[each["docid"]])
    places.write_lines(work.qrels, questions)
    near = near_files(folder / "near", edges, docids)
    (folder / "exact.jsonl").write_text("".join(json.dumps({"doc_ids": [ids.analysis(docid) for docid in group]}) + "\n" for group in exact))
    return Copies(work, work.qrels, near, folder / "exact.jsonl", texts)


def fetch(copies: Copies) -> None:
    """What `fetch --ids-file expand/fetch_ids.json` leaves."""
    for docid in json.loads(copies.work.fetch_ids.read_text()):
        small_qrels.cache(copies.work, docid, copies.texts[docid])


def pending(copies: Copies, qid: str) -> dict[str, dict]:
    return {row["docid"]: row for row in json.loads(copies.work.pending(qid).read_text())["pending"]}


def decision(copies: Copies, docid: str, hops, contrast: str = "it names another number") -> dict:
    """An answer with a sentence that stands in the text."""
    sentence = copies.texts[docid].strip().splitlines()[-1]
    return {"hops": sorted(hops), "sentence": sentence, "contrast": contrast}


def random_world(folder: Path, seed: int, questions: int = 3, documents: int = 26) -> Copies:
    """Exact groups that overlap, copies that only their text gives away, edges at one end or both, hops that are dead, votes that reject."""
    drawn = Random(seed)
    docids = [f"shard_{drawn.randrange(3):05d}_{place}" for place in range(1, documents + 1)]
    text_of = {docid: docid if drawn.random() < 0.7 else drawn.choice(docids[: max(1, place)]) for place, docid in enumerate(docids)}
    for docid in docids:  # the text of a text
        text_of[docid] = text_of[text_of[docid]]
    same = [[docid for docid in docids if text_of[docid] == text] for text in sorted(set(text_of.values()))]
    exact = [drawn.sample(group, drawn.randint(2, len(group))) for group in same if len(group) > 1 for _ in range(2) if drawn.random() < 0.6]
    edges = {}
    while len(edges) < 2 * documents:
        a, b = drawn.sample(docids, 2)
        edges[a, b] = drawn.choice([0.7, 0.75, 0.8, 0.9, 0.95, 1.0])
    rows = []
    for number in range(questions):
        judged = {docid: drawn.choice([[1], [2], [1, 2], [1, 3]]) for docid in drawn.sample(docids, 2)}
        texts = {text_of[docid] for docid in judged}
        out = {docid: drawn.choice([[1], [1, 2]]) for docid in drawn.sample(docids, 2) if text_of[docid] not in texts}
        rows.append(qrels_row(f"q{number}", judged, live=(1, 2), dead=(3,), rejected=out))
    texts = {docid: f"A page.\n\n{small_qrels.sentence(text_of[docid])}\n" for docid in docids}
    return make(folder, rows, edges, exact, texts, docids)


def answer(copies: Copies, qid: str, docid: str) -> list[int]:
    """The hops that a reader finds in a text: the same for every copy of it, and none that the judging loop denied to it."""
    denied = {
        hop for row in small_qrels.lines(copies.qrels) if row["qid"] == qid for each in row["rejected"]
        if copies.texts[each["docid"]] == copies.texts[docid] for hop in each["hops"]
    }
    found = Random(f"{qid} {copies.texts[docid]}").choice([[], [], [1], [2], [1, 2], [1, 2]])
    return [hop for hop in found if hop not in denied]


def decide(copies: Copies, qid: str, docids, path: Path) -> Path:
    """A decisions file for some pending documents."""
    path.write_text(json.dumps({docid: decision(copies, docid, answer(copies, qid, docid)) for docid in docids}))
    return path
