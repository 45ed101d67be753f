"""Qrels are written whole or not at all: repeats collapse, everything against them is in one message, and hops without support stay listed."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import small_qrels as small
from hypothesis import example, given
from hypothesis import strategies as st

from lib import files, paths
from lib.qrels import build, pools, recorded, verdicts, worksheet
from lib.qrels.refusals import Refused, Unsettled
from lib.qrels.settlement import Settlement, settle

CASE = json.loads((Path(__file__).parent / "cases" / "40-qrels-repeats-and-strangers.json").read_text())


def judge(work, rejections=None):
    """Read every question whole, reject the (hop, document) pairs given by question, and record the rest as accepted."""
    for qid in pools.read(work):
        list(worksheet.render(work, qid, 0))
        rows = [{"hop": hop, "docid": docid, "sentence": "It ends here.", "contrast": "one that goes on"} for hop, docid in (rejections or {}).get(qid, ())]
        files.write_json(work.rejections(qid), rows)
    verdicts.record_all(work)


@pytest.fixture
def work(tmp_path):
    made = small.make(tmp_path)
    judge(made)
    return made


def change(path, alter):
    value = json.loads(path.read_text())
    alter(value)
    path.write_text(json.dumps(value))


def refused(work):
    """The lines of a build that writes no qrels, while needs_review is written."""
    (work.folder / build.REVIEW).unlink(missing_ok=True)
    before = work.qrels.read_bytes() if work.qrels.exists() else None
    with pytest.raises(Unsettled) as left:
        build.build(work, work.qrels)
    assert (work.folder / build.REVIEW).exists()
    assert (work.qrels.read_bytes() if work.qrels.exists() else None) == before
    return left.value.lines


def test_case_40_repeats_collapse_and_every_stranger_is_found_at_once():
    lines = [tuple(line) for line in CASE["input"]["verdict_lines"]]
    settled, right = settle(CASE["input"]["candidates"], set(CASE["input"]["corpus"]), lines), CASE["right_answer"]
    assert settled == Settlement(
        accepted={"q1": ["d1"], "q2": []}, conflicts=[tuple(right["conflict"])], unknown_documents=[tuple(right["unknown_document"])],
        unknown_questions=right["unknown_question"], empty=right["question_left_without_documents"],
    )


def test_case_40_through_the_files_is_one_message_and_no_qrels(tmp_path):
    given = CASE["input"]
    work = small.make(tmp_path, {qid: {1: dict.fromkeys(docids)} for qid, docids in given["candidates"].items()})
    judge(work)
    sample = {(row["hop"], row["docid"]): row for qid in given["candidates"] for row in recorded.read(work, qid)["verdicts"]}
    stranger = json.loads(work.verdicts("q1").read_text())
    for qid in ("q1", "q2", "q9"):
        rows = [
            sample.get((1, docid), sample[1, "d1"]) | {"docid": docid, "accepted": bool(grade), "by": "silence" if grade else "rejection"}
            for of, docid, grade in given["verdict_lines"] if of == qid
        ]
        if qid == "q9":
            files.write_json(work.verdicts("q9"), stranger | {"qid": "q9", "verdicts": rows})
        else:
            change(work.verdicts(qid), lambda found, rows=rows: found.update(verdicts=rows))
            work.rejections(qid).unlink()  # they would contradict the lines of the case
    lines = refused(work)
    beginnings = (
        "q1: hop 1 of d2 is both accepted and rejected;", "q2 is left without documents;", "q2: d404 is no candidate of hop 1;",
        "q9 has verdicts and is no question of candidates.jsonl;",
    )
    assert len(lines) == 4 and all(line.startswith(beginning) for line, beginning in zip(lines, beginnings, strict=True)), lines
    assert not work.qrels.exists()


POOL = {"q1": {"a", "b"}, "q2": {"c"}}
LINES = st.lists(st.tuples(st.sampled_from(["q1", "q2", "q3"]), st.sampled_from("abcd"), st.integers(0, 1)), max_size=12)


@given(LINES, st.sampled_from([None, set(), {"a", "c"}, {"a", "b", "c", "d"}]), st.randoms(use_true_random=False))
@example([("q1", "a", 1), ("q1", "a", 1)], None, random.Random(0))
@example([("q1", "a", 1), ("q1", "a", 0), ("q1", "b", 1)], {"a"}, random.Random(0))
@example([("q1", "d", 0), ("q3", "a", 0)], None, random.Random(0))
def test_settling_is_what_a_loop_over_all_pairs_finds_in_any_order(lines, corpus, order):
    expected = Settlement({qid: [] for qid in POOL}, [], [], sorted({qid for qid, _, _ in lines} - set(POOL)), [])
    for qid in POOL:
        for item in "abcd":
            given = [grade for of, it, grade in lines if (of, it) == (qid, item)]
            known = item in POOL[qid] and (corpus is None or item in corpus or 1 not in given)
            if given and not known:
                expected.unknown_documents.append((qid, item))
            if 0 in given and 1 in given:
                expected.conflicts.append((qid, item))
            elif 1 in given and known:
                expected.accepted[qid].append(item)
        if not expected.accepted[qid]:
            expected.empty.append(qid)
    shuffled = lines + lines[:3]
    order.shuffle(shuffled)
    assert settle(POOL, corpus, lines) == settle(POOL, corpus, shuffled) == expected


def test_the_qrels_hold_what_was_accepted_and_by_what(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": "Supports", "d2": None, "d3": None}, 2: {"d1": None, "d2": None, "d4": "Does not support"}},
                                 "q0": {1: {"shard_00045_06622": "Partial support"}}})
    judge(work, {"q1": [(2, "d2"), (1, "d3")]})
    told = build.build(work, work.qrels)
    first, second = small.lines(work.qrels)
    assert first == {
        "qid": "q1", "question": "What is asked in q1?", "workbook_sha256": "a" * 64,
        "hops": [{"hop": 1, "text": "What does hop 1 ask?", "live": True}, {"hop": 2, "text": "What does hop 2 ask?", "live": True}],
        "documents": [{"docid": "d1", "hops": [1, 2], "by": ["vote", "silence"]}, {"docid": "d2", "hops": [1], "by": ["silence"]}],
        "rejected": [{"docid": "d2", "hops": [2]}, {"docid": "d3", "hops": [1]}, {"docid": "d4", "hops": [2]}],
        "votes": {"Supports": 1, "Partial support": 0, "Does not support": 1, "none": 4}, "pairs": 6,
        "standards": recorded.read(work, "q1")["standards"],
    }
    assert second["qid"] == "q0" and second["documents"] == [{"docid": "shard_00045_6622", "hops": [1], "by": ["vote"]}]
    assert told[0].endswith("qrels.jsonl: 2 questions, 3 relevant documents") and told[1].endswith("0 hops for the reviewer to look at")


def test_accepted_for_one_hop_and_rejected_for_another_is_no_conflict(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None}, 2: {"d1": None}}})
    judge(work, {"q1": [(2, "d1")]})
    build.build(work, work.qrels)
    line, = small.lines(work.qrels)
    assert line["documents"] == [{"docid": "d1", "hops": [1], "by": ["silence"]}] and line["rejected"] == [{"docid": "d1", "hops": [2]}]


def test_two_answers_for_one_text_are_a_conflict(tmp_path):
    texts = {"d1": "One text. It ends here.", "d2": "One text. It ends here.", "d3": "Another. It ends here."}
    work = small.make(tmp_path, {"q1": {1: {"d1": None, "d2": None, "d3": None}, 2: {"d1": None, "d2": None}}}, texts)
    judge(work, {"q1": [(1, "d2"), (1, "d3")]})
    line, = refused(work)
    assert line.startswith("q1: hop 1 accepts d1 (by silence) and rejects d2 (by rejection), which have one and the same text; give both one answer")
    judge(work, {"q1": [(1, "d2"), (1, "d1"), (1, "d3")]})
    assert build.build(work, work.qrels)


def test_every_live_hop_without_support_stays_in_needs_review_and_so_does_every_ask(tmp_path):
    pools_of = {"q1": {1: {"d1": None}, 2: {"d2": None}, 3: {"d3": "Does not support"}, 4: {"d4": None}, 5: {"d5": "Supports"}, 6: {}, 7: {"d7": None}}}
    work = small.make(tmp_path, pools_of, skipped=[("q1", 4), ("q1", 5)])
    rows = small.lines(work.candidates)
    rows[0]["hops"][1] |= {"judgment": "No"}
    rows[0]["hops"][6] |= {"judgment": "No", "note": "needed?", "note_class": "ask"}
    work.candidates.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge(work, {"q1": [(2, "d2")]})
    build.build(work, work.qrels)
    assert [(row["qid"], row["hop"], row["judgment"], row["note"], row["reason"]) for row in small.lines(work.folder / "needs_review.jsonl")] == [
        ("q1", 2, "No", None, "judged No, and no document supports it"),
        ("q1", 3, "Yes", None, "no document supports it"),
        ("q1", 6, "Yes", None, "no document supports it"),
        ("q1", 7, "No", "needed?", "its note leaves open whether the hop is needed"),
    ]
    assert list(small.lines(work.folder / "needs_review.jsonl")[0]) == ["qid", "hop", "text", "judgment", "note", "reason", "workbook_sha256"]
    line, = small.lines(work.qrels)
    assert line["votes"] == {"Supports": 1, "Partial support": 0, "Does not support": 1, "none": 4} and line["pairs"] == 6  # also what nobody judged
    by_document = {row["docid"]: row["hops"] for row in line["documents"]}
    assert by_document == {"d1": [1], "d5": [5], "d7": [7]}  # d5 is guaranteed on a skipped hop, d4 was judged by nobody


def test_needs_review_is_written_before_anything_is_judged(tmp_path):
    work = small.make(tmp_path)
    assert [line.split(";")[0] for line in refused(work)] == ["q1 has no verdicts", "q2 has no verdicts"]
    assert [(row["qid"], row["hop"], row["reason"]) for row in small.lines(work.folder / "needs_review.jsonl")] == [
        ("q1", 2, "its candidates have no verdicts of today"), ("q2", 1, "its candidates have no verdicts of today"),
    ]  # hop 1 of q1 has a guaranteed document


def test_a_question_left_without_documents_keeps_the_qrels_from_being_written(tmp_path):
    work = small.make(tmp_path)
    judge(work, {"q2": [(1, "d3"), (1, "shard_00045_6622")]})
    assert refused(work) == ["q2 is left without documents; add some in the workbook, or take the question out, and run candidates again"]
    assert [(row["qid"], row["hop"]) for row in small.lines(work.folder / "needs_review.jsonl")] == [("q2", 1)]


@pytest.mark.parametrize(("alter", "line"), [
    (lambda work: change(work.verdicts("q1"), lambda file: file.update(question_sha256="0" * 64)),
     "verdicts/q1.json was recorded for another line of candidates.jsonl; run verdicts --qid q1 again"),
    (lambda work: small.cache(work, "d2", "A new text."),
     "verdicts/q1.json judges hop 1 of d2 by another text of the document; run worksheet --qid q1, then run verdicts --qid q1"),
    (lambda work: small.gap(work, "d2"), "verdicts/q1.json judges hop 1 of d2 by a text that is no longer cached"),
    (lambda work: change(work.standards("q1"), lambda file: file["2"].update(near_miss="another")),
     "verdicts/q1.json judges hop 2 of d1 by another standard of the hop"),
    (lambda work: work.standards("q1").unlink(), "verdicts/q1.json judges hop 1 of d2 by another standard of the hop"),
    (lambda work: small.gap(work, "d1"), "verdicts/q1.json judges hop 2 of d1 by a text that is no longer cached"),
    (lambda work: change(work.verdicts("q1"), lambda file: file["verdicts"].pop(1)), "verdicts/q1.json has no verdict on hop 1 of d2"),
    (lambda work: change(work.verdicts("q1"), lambda file: file["verdicts"].pop(4)), "verdicts/q1.json has no verdict on hop 2 of d4"),
    (lambda work: change(work.verdicts("q1"), lambda file: file["verdicts"][0].update(accepted=False)),
     "verdicts/q1.json answers against the votes on hop 1 of d1"),
    (lambda work: change(work.verdicts("q1"), lambda file: file.pop("reports")), "verdicts/q1.json is no verdicts file of q1; delete it"),
    (lambda work: work.verdicts("q1").write_text("{"), "verdicts/q1.json is no strict JSON"),
    (lambda work: work.verdicts("q1").unlink(), "q1 has no verdicts; judge it and run verdicts --qid q1"),
    (lambda work: work.verdicts("q2").rename(work.verdicts("q3")), "verdicts/q3.json holds the verdicts of q2, whose file has another name"),
    (lambda work: (work.folder / "verdicts" / "q3.json").write_text("[]"), "verdicts/q3.json is no verdicts file; remove it"),
])
def test_verdicts_that_are_not_of_today_are_refused_with_the_way_out(work, alter, line):
    build.build(work, work.qrels)
    alter(work)
    lines = refused(work)
    assert any(line in found for found in lines), lines
    assert len(lines) == 1 + ("q3" in line and not work.verdicts("q2").exists())


def test_a_rejection_that_a_vote_wins_against_does_not_keep_the_qrels_from_being_written(tmp_path):
    work = small.make(tmp_path)
    judge(work, {"q1": [(1, "d1"), (1, "d2")]})  # d1 is guaranteed
    build.build(work, work.qrels)
    assert {document["docid"] for document in small.lines(work.qrels)[0]["documents"]} == {"d1", "d3"}


def test_a_rejection_that_was_written_or_taken_back_after_the_verdicts_is_no_consent(work):
    build.build(work, work.qrels)
    files.write_json(work.rejections("q1"), [{"hop": 1, "docid": "d2", "sentence": "It ends here.", "contrast": "one that goes on"}])
    assert [line.split(", ")[0].split("rejections/")[1] for line in refused(work)] == ["q1.json says something else than " + paths.shown(work.verdicts("q1"))]
    verdicts.record(work, "q1")
    build.build(work, work.qrels)
    assert {"docid": "d2", "hops": [1]} in small.lines(work.qrels)[0]["rejected"]
    files.write_json(work.rejections("q1"), [])
    assert len(refused(work)) == 1
    work.rejections("q1").write_text("{")
    assert "rejections/q1.json is no strict JSON" in refused(work)[0]
    work.rejections("q1").unlink()  # the verdicts hold all of it
    assert build.build(work, work.qrels)


def test_a_released_document_needs_a_text(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": "Supports", "d2": "Supports", "d4": "Does not support"}}})
    small.gap(work, "d1")
    small.gap(work, "d4")  # is not released
    judge(work)
    assert refused(work) == ["q1: d1 is accepted for hop 1, but no text of it is cached, so the corpus may lack it; run fetch --qid q1"]
    small.cache(work, "d1", "Here it is.")
    assert build.build(work, work.qrels)


def test_a_stale_file_says_that_it_is_an_earlier_one(work):
    build.build(work, work.qrels)
    work.verdicts("q1").unlink()
    with pytest.raises(Unsettled) as left:
        build.build(work, work.qrels)
    assert left.value.told[-1].endswith("qrels.jsonl was not written; the file that is there is of an earlier build")


@pytest.mark.parametrize("name", ["needs_review.jsonl", "candidates.jsonl", "qrels_expanded.jsonl"])
def test_the_qrels_do_not_go_over_another_file_of_the_line(work, name):
    with pytest.raises(Refused, match="another file of the line"):
        build.build(work, work.folder / name)
    assert small.lines(work.candidates)


def test_a_second_build_has_the_same_bytes_wherever_it_lies(work, tmp_path):
    out = tmp_path / "elsewhere" / "released.jsonl"
    build.build(work, work.qrels)
    build.build(work, out)
    again = small.make(tmp_path / "again")
    judge(again)
    build.build(again, again.qrels)
    assert work.qrels.read_bytes() == out.read_bytes() == again.qrels.read_bytes()
    assert (out.parent / "needs_review.jsonl").read_bytes() == (work.folder / "needs_review.jsonl").read_bytes()


def test_a_killed_build_leaves_no_half_file_and_the_next_one_is_whole(work):
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom lib.qrels import build\nfrom lib.qrels.work import Work\n"
        "replace, os.replace = os.replace, lambda source, target: os.kill(os.getpid(), signal.SIGKILL) if target.name == sys.argv[2] else replace(source, target)\n"
        "build.build(Work(Path(sys.argv[1])), Path(sys.argv[1]) / 'qrels.jsonl')\n"
    )
    for name in ("needs_review.jsonl", "qrels.jsonl"):
        done = subprocess.run([sys.executable, "-c", code, str(work.folder), name], cwd=paths.ROOT, env=os.environ)
        assert done.returncode == -9 and not work.qrels.exists()
    build.build(work, work.qrels)
    assert len(small.lines(work.qrels)) == 2


@pytest.mark.parametrize(("place", "reason"), [("work", "File too large"), ("file", "File exists"), ("file/in", "Not a directory")])
def test_a_folder_that_takes_no_file_is_one_sentence_that_names_it(tmp_path, place, reason):
    small.make(tmp_path / "work")
    (tmp_path / "file").write_text("")
    command = f"ulimit -f 0; exec {sys.executable} -m lib.qrels build --work-dir {tmp_path / place}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=paths.ROOT)
    assert done.returncode == 1
    told = f"lib.qrels: {tmp_path / place}\\S* cannot be used \\({reason}\\); make room, or allow it to be read and written, and run again\n"
    assert re.fullmatch(told, done.stderr), done.stderr


def test_the_command_line_goes_from_the_worksheet_to_the_qrels(tmp_path):
    work = small.make(tmp_path)

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "lib.qrels", *arguments, "--work-dir", str(tmp_path)], capture_output=True, text=True, cwd=paths.ROOT)

    assert run("verdicts", "--qid", "q1").returncode == 1
    for qid in ("q1", "q2"):
        assert run("worksheet", "--qid", qid).returncode == 0
    files.write_json(work.rejections("q1"), [{"hop": 1, "docid": "d3", "sentence": small.sentence("d3"), "contrast": "a proof"}])
    some = run("verdicts", "--all")
    assert some.returncode == 1 and "q1.json: 3 accepted" in some.stdout and "q2 is not judged yet" in some.stderr
    assert run("build").returncode == 1 and not work.qrels.exists()
    assert run("verdicts", "--qid", "q2").returncode == 0
    assert run("build", "--out", str(tmp_path / "out.jsonl")).returncode == 0
    assert [[row["docid"] for row in line["documents"]] for line in small.lines(tmp_path / "out.jsonl")] == [["d1", "d2"], ["d3", "shard_00045_6622"]]
