"""Classes of exact copies: groups of a file, overlapping ones merged, read again only where they are asked for."""

import json
import os
import random
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.qrels import exact
from lib.qrels.exact import ExactDuplicates, merged
from lib.qrels.refusals import Refused


def merged_slowly(groups):
    """Unite any two classes that share a document until none do."""
    classes = [set(group) for group in groups]
    while True:
        for one in classes:
            other = next((other for other in classes if other is not one and other & one), None)
            if other is not None:
                classes.remove(other)
                one |= other
                break
        else:
            return sorted((frozenset(members) for members in classes if len(members) > 1), key=min)


def write(path, groups, **fields):
    path.write_text("".join(json.dumps({"doc_ids": group} | fields) + "\n" for group in groups), encoding="utf-8")
    return path


GROUPS = st.lists(st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=4), max_size=12)


@given(GROUPS)
@example([["a", "b"], ["c", "d"], ["b", "c"]])
@example([["a", "a"]])
@example([["a"], ["a"]])
@example([["l", "a"], ["k", "l"], ["j", "k"], ["a", "b"]])
def test_overlapping_groups_are_one_class(groups):
    assert merged(groups) == merged_slowly(groups)


@given(GROUPS, st.sets(st.sampled_from("abcdefghijklz")))
@example([["a", "b"], ["c", "d"], ["d", "b"]], {"a"})
@example([], {"a"})
@example([["a", "b"]], set())
def test_a_file_gives_the_whole_classes_of_the_documents_that_are_asked_for(tmp_path_factory, groups, docids):
    path = write(tmp_path_factory.mktemp("exact") / "groups.jsonl", groups)
    assert ExactDuplicates(path).classes(docids) == [members for members in merged_slowly(groups) if members & docids]


def test_two_ids_of_one_hash_are_still_two_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "hash", lambda docid: 7, raising=False)
    found = ExactDuplicates(write(tmp_path / "groups.jsonl", [["a", "b"], ["c", "d"]]))
    assert found.classes({"a"}) == [frozenset("ab")] and found.classes({"e"}) == []


def test_padded_ids_of_the_file_are_found_by_the_spelling_of_the_qrels(tmp_path):
    path = write(tmp_path / "groups.jsonl", [["shard_00045_06622", "shard_00001_00007"]], hash="ab", size=2)
    assert ExactDuplicates(path).classes({"shard_00045_6622"}) == [frozenset({"shard_00045_6622", "shard_00001_7"})]
    assert ExactDuplicates(path).classes({"shard_00045_06622"}) == []  # the caller normalises


def test_blank_lines_other_fields_and_a_last_line_without_its_end_are_read(tmp_path):
    (tmp_path / "groups.jsonl").write_text('\n{"size": 2, "ids": ["a", "b"], "note": null}\r\n\n{"ids": ["c", "b"]}')
    assert ExactDuplicates(tmp_path / "groups.jsonl").classes({"c"}) == [frozenset("abc")]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"doc_ids": ["a", "b"]', "line 3 is refused: Expecting"),
        ('["a", "b"]', "line 3 is refused: it is no JSON object"),
        ('{"doc_ids": ["a"], "other": ["b"]}', r"it has 2 lists \(doc_ids, other\), one list of document ids is wanted"),
        ('{"docs": 3}', r"it has 0 lists \(none\)"),
        ('{"doc_ids": []}', "doc_ids is empty"),
        ('{"doc_ids": ["a", 7]}', "id 2 of doc_ids is a int, not text"),
        ('{"doc_ids": ["a", "b c"]}', r"id 2 of doc_ids holds the character U\+0020"),
        ('{"doc_ids": ["a"], "doc_ids": ["b"]}', "'doc_ids' stands twice"),
        ('{"doc_ids": ["a"], "more": {}}', "more is an object"),
        ('{"doc_ids": ["a"], "x": NaN}', "NaN is no JSON number"),
    ],
)
def test_a_faulty_line_is_refused_with_its_number(tmp_path, line, why):
    (tmp_path / "groups.jsonl").write_text(f'{{"doc_ids": ["x", "y"]}}\n\n{line}\n')
    with pytest.raises(Refused, match=f"groups.jsonl line 3 is refused.*{why.removeprefix('line 3 is refused: ')}.*mend the file"):
        ExactDuplicates(tmp_path / "groups.jsonl")


def test_a_line_that_is_no_utf8_and_a_file_that_is_not_there_are_refused(tmp_path):
    (tmp_path / "groups.jsonl").write_bytes(b'{"doc_ids": ["\xff"]}\n')
    with pytest.raises(Refused, match="line 1 is refused: 'utf-8' codec"):
        ExactDuplicates(tmp_path / "groups.jsonl")
    with pytest.raises(Refused, match=r"none.jsonl cannot be read \(No such file or directory\); give the file"):
        ExactDuplicates(tmp_path / "none.jsonl")


def test_a_file_that_changes_while_it_is_used_is_refused(tmp_path):
    found = ExactDuplicates(write(tmp_path / "groups.jsonl", [["a", "b"]]))
    write(tmp_path / "groups.jsonl", [["a", "c", "d"]])
    os.utime(tmp_path / "groups.jsonl", ns=(1, 1))
    with pytest.raises(Refused, match="changed while it was read; run the step again"):
        found.classes({"a"})


def test_a_large_file_stays_small_in_memory(tmp_path):
    drawn = random.Random(0)
    groups = [[f"shard_{drawn.randrange(90):05d}_{place:05d}" for place in range(first, first + 3)] for first in range(0, 90_000, 3)]
    path = write(tmp_path / "groups.jsonl", groups)
    tracemalloc.start()
    try:
        found = ExactDuplicates(path)
        _, peak = tracemalloc.get_traced_memory()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 60 * 90_000 and peak < 200 * 90_000
    asked = "shard_" + groups[7][1].split("_")[1] + f"_{int(groups[7][1].split('_')[2])}"
    assert [len(members) for members in found.classes({asked})] == [3]
