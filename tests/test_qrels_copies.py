"""The texts of near copies: any of several exact copies may be the one that was read, and one that is lost can be fetched again."""

import json

import pytest
import small_expansion as small
import small_qrels

from lib.qrels import expansion, release
from lib.qrels import work as places
from lib.qrels.refusals import Refused

A, B, C = "a", "b", "c"


@pytest.fixture
def copies(tmp_path):
    """B and C are one text near A; B was read, and C, which is nearer to A, came unread and was never fetched."""
    made = small.make(
        tmp_path, [small.qrels_row("q1", {A: [1, 2]})], {(A, B): 0.7, (A, C): 0.8}, exact=[[B, C]], texts=dict.fromkeys((B, C), "One text.\n"),
    )
    places.write_lines(made.work.folder / "needs_review.jsonl", [])
    expansion.scan(made.work, *made.sources)
    small.fetch(made)
    list(expansion.render(made.work, "q1", made.qrels))
    (tmp_path / "decisions.json").write_text(json.dumps({B: {"hops": [1, 2], "sentence": "One text."}}))
    expansion.apply(made.work, "q1", tmp_path / "decisions.json")
    expansion.export(made.work, made.qrels, made.work.expanded, made.near, made.exact)
    return made


def released(copies):
    out = copies.work.folder.parent / "released"
    release.release(copies.work, copies.work.expanded, out, copies.near, None)
    return {row["_id"]: row["text"] for row in small_qrels.lines(out / "beir" / "corpus.jsonl")}


def test_the_nearest_copy_is_released_with_the_text_of_the_one_that_was_read(copies):
    origins = {row["docid"]: (row["origin"], row["parent"]) for row in small_qrels.lines(copies.work.expanded)[0]["documents"]}
    assert origins == {A: ("judged", None), B: ("exact", C), C: ("near", A)}
    assert not copies.work.text(C).exists()
    assert released(copies) == {A: copies.texts[A], B: "One text.\n", C: "One text.\n"}


def test_the_text_of_an_accepted_copy_that_is_lost_is_fetched_by_the_list_of_a_scan(copies):
    copies.work.text(B).unlink()
    with pytest.raises(Refused, match="the text of document b is missing .*expand scan and fetch --ids-file, or release with --no-texts"):
        released(copies)
    lines = expansion.scan(copies.work, *copies.sources)
    assert lines[0].startswith("accepted, and no longer cached for a release, 1 near copy: run fetch --ids-file ") and lines[1:] == [expansion.CLOSED]
    assert json.loads(copies.work.fetch_ids.read_text()) == [B]
    small.fetch(copies)
    assert expansion.scan(copies.work, *copies.sources) == [expansion.CLOSED] and json.loads(copies.work.fetch_ids.read_text()) == []
    assert set(released(copies)) == {A, B, C}


def test_the_text_of_a_rejected_copy_is_needed_by_nobody(copies):
    copies.work.decisions("q1").unlink()
    expansion.scan(copies.work, *copies.sources)
    path = copies.work.folder.parent / "decisions.json"
    path.write_text(json.dumps({B: {"hops": [], "sentence": "One text.", "contrast": "another one"}}))
    expansion.apply(copies.work, "q1", path)
    copies.work.text(B).unlink()
    assert expansion.scan(copies.work, *copies.sources) == [expansion.CLOSED]
