"""The qrels of a work folder released, read back, and every file that cannot be."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import released
import small_qrels

from lib.qrels import corpus_ids, release
from lib.qrels import work as places
from lib.qrels.__main__ import main
from lib.qrels.refusals import Refused
from lib.qrels.work import Work

STRUCT = pa.list_(pa.struct({"doc_id": pa.string(), "jaccard": pa.float32()}))
VOTES = {"Supports": 1, "Partial support": 2, "Does not support": 1, "none": 2}
CORPUS = ["d1", "d2", "copy", "copy_of_copy", "=1+1", "shard_00045_06622", "other"]  # as the corpus artifacts spell them
EXPECTED = {"007": {"d1": 1, "=1+1": 1}, "q1": {"copy": 1, "copy_of_copy": 1, "d1": 1, "d2": 1, "shard_00045_6622": 1}}


def line(qid: str, documents: list[dict], **more) -> dict:
    return {"qid": qid, "question": f"What is asked in {qid}?", "workbook_sha256": "a" * 64, "hops": [{"hop": 1, "text": "?", "live": True}],
            "documents": documents, "rejected": [], "votes": VOTES, "pairs": 5, "standards": {"1": "b" * 64}} | more


def document(docid: str, origin: str = "judged", parent: str | None = None, hops=(1,)) -> dict:
    return {"docid": docid, "hops": list(hops), "origin": origin, "round": int(origin != "judged"), "parent": parent, "jaccard": None}


def expanded() -> list[dict]:
    near = [{"docid": "shard_00045_6622", "jaccard": 0.75, "hops": [1], "round": 1}, *({"docid": docid, "jaccard": 0.5, "hops": [], "round": 1} for docid in ("far", "off"))]
    end = {"near": near, "classes": [{"docid": "copy", "size": 3}], "rounds": 1, "rejected": [{"docid": "r", "hops": [1, 2]}]}
    q1 = [document("shard_00045_6622", "near", "d1"), document("d1", hops=(1, 2)), document("d2"), document("copy", "exact", "d1"),
          document("copy_of_copy", "exact", "copy")]
    return [line("q1", q1, **end), line("007", [document("=1+1"), document("d1")], **end | {"near": [], "rejected": []})]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """Two questions, closed over duplicates; the exact copies were never fetched."""
    made = Work(tmp_path / "work")
    for docid in ("d1", "d2", "=1+1", "shard_00045_6622"):
        small_qrels.cache(made, docid, f"text of {docid}\r\n\u2028")
    places.write_lines(made.expanded, expanded())
    places.write_lines(made.qrels, [line("q1", [{"docid": "d1", "hops": [1], "by": ["vote"]}])])
    places.write_lines(made.folder / "needs_review.jsonl", [{"qid": "q1", "hop": 3}, {"qid": "q1", "hop": 4}, {"qid": "q3", "hop": 1}])
    near_dups(tmp_path / "near", CORPUS)
    return made


def near_dups(folder: Path, docids: list[str]) -> Path:
    """Files of two rows each."""
    folder.mkdir(exist_ok=True)
    for at in range(0, len(docids), 2):
        rows = docids[at:at + 2]
        pq.write_table(pa.table({"doc_id": rows, "duplicates": pa.array([[]] * len(rows), STRUCT)}), folder / f"part-{at}.parquet")
    return folder


def write(work: Work, qrels: Path | None = None, texts: bool = True) -> tuple[Path, list[str]]:
    out = work.folder.parent / "out"
    return out, release.release(work, qrels or work.expanded, out, work.folder.parent / "near", None, texts)


def facts(out: Path) -> dict:
    return json.loads((out / "manifest.json").read_text())


def test_the_released_set_is_read_back_by_every_reader(work, tmp_path, monkeypatch):
    out, told = write(work)
    assert {name: found for name, found in released.read_back(out).items() if found != EXPECTED} == {}
    assert released.queries(out) == {qid: f"What is asked in {qid}?" for qid in EXPECTED}
    assert sorted(released.contents(out)) == released.FILES
    docids = sorted({docid for found in EXPECTED.values() for docid in found})
    copies = {"copy": "d1", "copy_of_copy": "d1"}
    assert released.documents(out, monkeypatch, tmp_path / "home") == {docid: f"text of {copies.get(docid, docid)}\r\n\u2028" for docid in docids}
    assert told == [f"released: 7 pairs of 2 questions, 6 documents, in {out}"]


def test_nothing_of_a_hop_is_released(work):
    out, _ = write(work)
    for name, data in released.contents(out).items():
        if name != "README.md":
            assert b"hops" not in data.replace(b'"needs review": {\n  "hops"', b""), name
    assert {grade for found in released.read_back(out)["json"].values() for grade in found.values()} == {1}


def test_the_card_and_the_manifest_count_what_is_released_and_what_is_not(work):
    out, _ = write(work)
    found = facts(out)
    assert found["counts"] == {"questions": 2, "pairs": 7, "grades": {"1": 7}} and found["documents"] == 6
    assert found["origin"] == {"judged": 4, "exact": 2, "near": 1} and sum(found["origin"].values()) == found["counts"]["pairs"]
    assert found["votes"] == {vote: 2 * count for vote, count in VOTES.items()} and found["pool entries"] == 10
    assert found["near copies"] == {"judged": 3, "rejected": 2} and found["rejected"] == 1
    assert found["needs review"] == {"hops": 3, "questions": 2} and found["closed over duplicates"]
    assert found["workbooks"] == ["a" * 64] and list(found["made from"]) == ["needs_review.jsonl", "qrels_expanded.jsonl"]
    assert list(found["corpus"]) == ["part-0.parquet", "part-2.parquet", "part-4.parquet", "part-6.parquet"]
    card = (out / "README.md").read_text()
    for said in ("2 questions, 7 pairs.", "| 1 | 7 | relevant", "10 pool entries", "| Partial support | 4 |", "3 were judged, 2 of them rejected",
                 "parts 3, questions 2.", "were read from 4 files", "unjudged, not non-relevant", f"| workbook | {'a' * 64} |", "exact copy of an included document"):
        assert said in card
    assert "Not closed" not in card


def test_what_build_wrote_is_released_with_the_notice_that_it_is_not_closed(work):
    out, told = write(work, work.qrels)
    assert released.read_back(out)["ir_measures"] == {"q1": {"d1": 1}}
    assert told[-1] == f"{work.qrels} is not closed over duplicates; expand it and release again"
    assert not facts(out)["closed over duplicates"] and "**Not closed over duplicates**" in (out / "README.md").read_text()


def test_a_second_release_gives_the_same_bytes_in_any_order_of_the_questions(work):
    first = released.contents(write(work)[0])
    assert released.contents(write(work)[0]) == first
    shuffled = [row | {"documents": row["documents"][::-1]} for row in expanded()[::-1]]
    places.write_lines(work.expanded, shuffled)
    second = released.contents(write(work)[0])
    assert {name for name in first if first[name] != second[name]} == {"README.md", "manifest.json"}, "they name the hash of the file"


def test_a_copy_takes_the_text_of_its_class_from_another_question_too(work):
    rows = expanded()
    rows[0]["documents"][1] |= {"docid": "=1+1"}
    rows[0]["documents"][3] |= {"parent": "copy_of_copy"}
    rows[0]["documents"][4] |= {"parent": "copy"}  # a ring
    places.write_lines(work.expanded, rows)
    with pytest.raises(Refused, match="the text of document copy is missing .it was not fetched yet.; .*, or release with --no-texts"):
        write(work)
    rows[1]["documents"].append(document("copy", "exact", "d1"))
    places.write_lines(work.expanded, rows)
    write(work)


def test_a_near_copy_never_takes_the_text_of_what_it_is_near(work):
    work.text("shard_00045_6622").unlink()
    with pytest.raises(Refused, match="the text of document shard_00045_6622 is missing"):
        write(work)


def test_without_texts_no_text_is_needed(work):
    work.text("d1").unlink()
    with pytest.raises(Refused, match="the text of document .* is missing .*--no-texts"):
        write(work)
    assert not (work.folder.parent / "out").exists()
    out, _ = write(work, texts=False)
    assert sorted(released.contents(out)) == [name for name in released.FILES if name != "beir/corpus.jsonl"]


def broken(change) -> list[dict]:
    rows = expanded()
    change(rows)
    return rows


@pytest.mark.parametrize("change, fault", [
    (lambda rows: rows.append(rows[0]), "question 3 is 'q1' again; a question stands once"),
    (lambda rows: rows[0]["documents"].append(document("d1")), "the question 'q1' has 'd1' twice"),
    (lambda rows: rows[0]["documents"].append(document("shard_00045_06622")), "the question 'q1' has 'shard_00045_6622' twice"),
    (lambda rows: rows[0]["documents"].append(document("d 9")), r"'q1', has a document whose id holds the character U\+0020"),
    (lambda rows: rows[0]["documents"].append({"hops": [1]}), "'q1', has a document whose id is a NoneType, not text"),
    (lambda rows: rows[0]["documents"].append("d2"), "'q1', has a document whose id is no object"),
    (lambda rows: rows[0].update(qid="q 1"), r"the question id 'q 1' holds the character U\+0020"),
    (lambda rows: rows[0].update(qid=7), "question 1 has no 'qid' that is a str"),
    (lambda rows: rows[0].update(documents=[]), "'q1', has no document and cannot be released"),
    (lambda rows: rows[1].pop("rounds"), "question 2 is expanded and question 1 is not, or the reverse"),
    (lambda rows: rows[1].pop("votes"), "question 2 has no 'votes' that is a dict"),
    (lambda rows: rows[0]["near"].append({"docid": "d7"}), "has a line that no step wrote .KeyError.'hops'..; give the file that expand export or build wrote"),
    (lambda rows: rows[0].update(votes={"Supports": "many"}), "has a line that no step wrote .TypeError"),
    (lambda rows: rows.clear(), "holds no question; run build first"),
    (lambda rows: rows[0]["documents"].append(document("d404")), "1 of 7 documents are not in .*near: 'd404'; check that"),
    (lambda rows: rows[0]["documents"].append(document("shard_00045_6623")), "1 of 7 documents are not in .*near: 'shard_00045_6623'"),
])  # fmt: skip
def test_what_cannot_be_released_is_named_and_nothing_is_left(work, change, fault):
    places.write_lines(work.expanded, broken(change))
    with pytest.raises(Refused, match=fault):
        write(work)
    assert not (work.folder.parent / "out").exists()


def test_files_that_are_not_there_are_named(work):
    with pytest.raises(Refused, match="none.jsonl is not there; run expand export, or build, first"):
        write(work, work.folder / "none.jsonl")
    (work.folder / "needs_review.jsonl").unlink()
    with pytest.raises(Refused, match="no needs_review.jsonl beside .* run build first"):
        write(work)


def test_the_corpus_is_a_list_of_ids_in_either_spelling(work, tmp_path):
    for spelled in ("shard_00045_06622", "shard_00045_6622"):
        (tmp_path / "ids.txt").write_text("\n".join(["d1", "d2", "copy", "copy_of_copy", "=1+1", spelled]) + "\r\n")
        assert list(corpus_ids.check({"d1", "shard_00045_6622"}, None, tmp_path / "ids.txt")) == ["ids.txt"]
        release.release(work, work.expanded, tmp_path / "out", tmp_path / "absent", tmp_path / "ids.txt")
    assert list(facts(tmp_path / "out")["corpus"]) == ["ids.txt"]
    with pytest.raises(Refused, match="2 of 3 documents are not in .*ids.txt: 'D1', 'q'"):
        corpus_ids.check({"D1", "d1", "q"}, None, tmp_path / "ids.txt")
    with pytest.raises(Refused, match="nothing says which documents the corpus has"):
        corpus_ids.check({"d1"}, None, None)
    with pytest.raises(Refused, match="absent.txt cannot be read"):
        corpus_ids.check({"d1"}, None, tmp_path / "absent.txt")
    (tmp_path / "ids.txt").write_bytes(b"d\xff")
    with pytest.raises(Refused, match="ids.txt is not UTF-8"):
        corpus_ids.check({"d1"}, None, tmp_path / "ids.txt")


def test_many_strangers_are_ten_names_and_a_number(tmp_path):
    with pytest.raises(Refused, match="13 of 15 documents are not in .*'e00', .*, 'e09' and 3 more; "):
        corpus_ids.check({"d1", "d2"} | {f"e{n:02d}" for n in range(13)}, near_dups(tmp_path / "near", CORPUS), None)


def test_the_command_line_releases(work, tmp_path, capsys):
    arguments = ["release", "--work-dir", str(work.folder), "--outdir", str(tmp_path / "out")]
    main([*arguments, "--near-dup-dir", str(tmp_path / "near"), "--no-texts"])
    assert capsys.readouterr().out.startswith("released: 7 pairs of 2 questions")
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(SystemExit, match="lib.qrels: .*out holds mine, which no release wrote there"):
        main([*arguments, "--near-dup-dir", str(tmp_path / "near")])
