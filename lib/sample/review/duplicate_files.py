"""Near- and exact-duplicate files of a small collection, as an analysis of the corpus leaves them: ids zero-padded."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lib import files, ids, text

LEAST = np.float32(0.7)
_SCHEMA = pa.schema([("doc_id", pa.string()), ("duplicates", pa.list_(pa.struct([("doc_id", pa.string()), ("jaccard", pa.float32())])))])


def near_pairs(texts: Sequence[str], n: int = 5) -> dict[tuple[int, int], np.float32]:
    """The Jaccard similarity of the sets of word n-grams, float32, of all pairs (i, j) with i < j that have at least 0.7."""
    posting: dict[tuple[str, ...], list[int]] = defaultdict(list)
    sizes, found = [], {}
    for j, each in enumerate(texts):
        grams = text.grams(text.tokens(each), n)
        shared = Counter(chain.from_iterable(posting[gram] for gram in grams))
        for i, common in sorted(shared.items()):
            likeness = np.float32(common / (sizes[i] + len(grams) - common))
            if likeness >= LEAST:
                found[i, j] = likeness
        sizes.append(len(grams))
        for gram in grams:
            posting[gram].append(j)
    return found


def write_near(folder: Path, texts: Mapping[str, str], untold: Collection[tuple[str, str]] = ()) -> int:
    """Write a Parquet file a shard of the ids, a row for each document, and return the number of edges in the rows.

    A row lists the near copies of its document, most alike first; `untold` names (row, copy) pairs that are left out, so
    that the edge stands in the copy's row only. Documents without a copy have an empty list, in the last shard a null.
    """
    docids = list(texts)
    lists: dict[str, list[tuple[np.float32, str]]] = {docid: [] for docid in docids}
    for (i, j), likeness in near_pairs(list(texts.values())).items():
        for row, copy in ((docids[i], docids[j]), (docids[j], docids[i])):
            if (row, copy) not in untold:
                lists[row].append((likeness, ids.analysis(copy)))
    shards: dict[str, list[dict]] = defaultdict(list)
    for docid in sorted(docids, key=ids.analysis):
        copies = [{"doc_id": copy, "jaccard": likeness} for likeness, copy in sorted(lists[docid], key=lambda one: (-one[0], one[1]))]
        shards[docid.split("_")[1]].append({"doc_id": ids.analysis(docid), "duplicates": copies})
    for row in shards[max(shards)]:
        row["duplicates"] = row["duplicates"] or None
    for shard, rows in sorted(shards.items()):
        with files.whole(folder / f"part-{shard}.parquet") as temporary:
            pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), temporary)
    return sum(map(len, lists.values()))


def write_exact(path: Path, texts: Mapping[str, str]) -> int:
    """Write the classes of equal texts as groups, a line each, and return the number of lines.

    A class of more than two is written as overlapping groups of two: who reads them has to merge.
    """
    classes: dict[str, list[str]] = defaultdict(list)
    for docid, each in texts.items():
        classes[text.sha256(each)].append(ids.analysis(docid))
    groups = sorted(list(pair) for members in classes.values() for pair in pairwise(sorted(members)))
    lines = [json.dumps({"group_id": number, "size": len(group), "doc_ids": group}) for number, group in enumerate(groups, 1)]
    files.write_text(path, "".join(line + "\n" for line in lines))
    return len(lines)
