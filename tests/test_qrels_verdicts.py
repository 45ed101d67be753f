"""Only failures are recorded: a rejection needs its sentence in the text, silence needs a whole render, and a vote wins."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import small_qrels as small
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib import files, ids, paths, processes
from lib.qrels import build, documents, pools, recorded, rejections, rendered, standards, status, verdicts, worksheet
from lib.qrels.refusals import Refused, Unsettled


def read_all(work, *qids):
    """Render the questions whole; those that are read already are shown again."""
    for qid in qids or pools.read(work):
        list(worksheet.render(work, qid, 0))


def rejection(docid="d2", hop=1, sentence=None, contrast="a page that proves it"):
    return {"hop": hop, "docid": docid, "sentence": small.sentence(ids.api(docid)) if sentence is None else sentence, "contrast": contrast}


def reject(work, qid, *rows):
    files.write_text(work.rejections(qid), json.dumps(rows))


def answers(work, qid):
    return {(row["hop"], row["docid"]): (row["accepted"], row["by"]) for row in recorded.read(work, qid)["verdicts"]}


@pytest.fixture
def work(tmp_path):
    made = small.make(tmp_path)
    read_all(made)
    return made


def rewrite(work, change):
    """Change the lines of candidates.jsonl, and with them overrides.json, from which they were taken."""
    rows = small.lines(work.candidates)
    change(rows)
    files.write_json(work.overrides, [
        {"qid": row["qid"], "hop": entry["hop"], "docid": entry["docid"], **entry["override"]}
        for row in rows for entry in row["pool"] if entry["override"]
    ])
    work.candidates.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_silence_accepts_what_was_shown_and_votes_decide_the_rest(work):
    assert verdicts.record(work, "q1")[0].endswith("q1.json: 4 accepted (3 by silence, 1 by vote), 1 rejected (1 by vote)")
    assert answers(work, "q1") == {
        (1, "d1"): (True, "vote"), (1, "d2"): (True, "silence"), (1, "d3"): (True, "silence"),
        (2, "d1"): (True, "silence"), (2, "d4"): (False, "vote"),
    }


def test_a_rejection_keeps_its_sentence_its_contrast_and_the_hashes(work):
    reject(work, "q1", rejection("d2"))
    verdicts.record(work, "q1")
    question, found = pools.question(work, "q1"), recorded.read(work, "q1")
    bars = standards.read(work, question)
    assert found["verdicts"][1] == {
        "hop": 1, "docid": "d2", "accepted": False, "by": "rejection", "sentence": small.sentence("d2"), "contrast": "a page that proves it",
        "text_sha256": documents.text(work, "d2").sha256, "standard_sha256": bars[1].sha256,
    }
    assert found["standards"] == {"1": bars[1].sha256, "2": bars[2].sha256} and found["workbook_sha256"] == "a" * 64
    assert found["question_sha256"] == pools.sha256(question) and found["reports"] == []


def test_a_document_may_fail_one_hop_and_pass_another(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None}, 2: {"d1": None}}})
    read_all(work)
    reject(work, "q1", rejection("d1", 2))
    verdicts.record(work, "q1")
    assert answers(work, "q1") == {(1, "d1"): (True, "silence"), (2, "d1"): (False, "rejection")}


def test_a_vote_wins_against_a_rejection_and_it_is_reported(work):
    reject(work, "q1", rejection("d1"))
    lines = verdicts.record(work, "q1")
    assert answers(work, "q1")[1, "d1"] == (True, "vote")
    assert lines[1:] == ["q1: hop 1 of d1 stays accepted against a rejection: Supports in Votes!E2"] == recorded.read(work, "q1")["reports"]


def test_a_guaranteed_document_on_a_skipped_hop_is_kept_and_reported(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None}, 2: {"d2": "Partial support", "d3": None}}}, skipped=[("q1", 2)])
    read_all(work)
    assert verdicts.record(work, "q1")[1:] == ["q1: hop 2 of d2 stays accepted on a skipped hop: Partial support in Votes!E3"]
    assert answers(work, "q1") == {(1, "d1"): (True, "silence"), (2, "d2"): (True, "vote")}  # d3 was not judged, so it has no verdict


def test_an_override_on_a_skipped_hop_is_kept_and_reported(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None}, 2: {"d2": "Does not support"}}}, skipped=[("q1", 2)])
    override = {"verdict": "supports", "reason": "an oversight", "quote": small.sentence("d2")}
    rewrite(work, lambda rows: rows[0]["pool"][1].update(state="overridden", override=override))
    read_all(work)
    assert verdicts.record(work, "q1")[1:] == ["q1: hop 2 of d2 stays accepted on a skipped hop: Does not support in Votes!E3, overridden"]
    assert answers(work, "q1")[2, "d2"] == (True, "override")


SENTENCE = small.sentence("d2")
FAULTS = [
    ({"docid": "d9", "sentence": SENTENCE}, "names d9, which is no candidate of hop 1 or of any hop"),
    ({"docid": "d4", "sentence": SENTENCE}, "names d4, which is no candidate of hop 1, it is one of hop 2"),
    ({"hop": 2, "docid": "d4"}, "which is not pending: a Does not support vote rejects it already"),
    ({"hop": 3}, "names hop 3, the question has 1, 2"),
    ({"hop": True}, "has the hop True, which is no whole number"),
    ({"hop": "1"}, "has the hop '1'"),
    ({"hop": 1.0}, "has the hop 1.0"),
    ({"docid": 7}, "has the docid 7, which is a int, not text"),
    ({"docid": "d 2"}, "has the docid 'd 2', which holds the character U+0020"),
    ({"sentence": ""}, "has a sentence that is blank"),
    ({"sentence": " \n\t"}, "has a sentence that is blank"),
    ({"contrast": "\u00a0"}, "has a contrast that is blank"),
    ({"contrast": None}, "has a contrast that is null, not text"),
    ({"contrast": "\udc80"}, "has a contrast that holds half a surrogate pair"),
    ({"sentence": small.sentence("d3")}, "does not stand in the cached text of d2"),
    ({"sentence": SENTENCE.lower()}, "does not stand in the cached text of d2"),
    ({"reason": "old"}, "has the unknown key 'reason'"),
]


@pytest.mark.parametrize(("change", "fault"), FAULTS)
def test_one_fault_refuses_the_whole_file(work, change, fault):
    reject(work, "q1", rejection("d3"), rejection("d2") | change)
    with pytest.raises(Refused, match=re.escape(fault)) as refusal:
        verdicts.record(work, "q1")
    assert "rejections/q1.json is refused, nothing was written for q1" in str(refusal.value) and "rejection 2" in str(refusal.value)
    assert not work.verdicts("q1").exists()


def test_all_faults_of_a_file_are_in_one_message(work):
    reject(work, "q1", *(rejection("d2") | change for change, _ in FAULTS), {"hop": 1}, "d2", rejection("d3"))
    with pytest.raises(Refused) as refusal:
        verdicts.record(work, "q1")
    lines = str(refusal.value).splitlines()
    assert len(lines) == 1 + len(FAULTS) + 2
    for number, (line, (_, fault)) in enumerate(zip(lines[1:], FAULTS, strict=False), 1):
        assert line.startswith(f"  rejection {number} ") and fault in line
    assert lines[-2:] == ["  rejection 18 has no docid, sentence, contrast", "  rejection 19 is no object with hop, docid, sentence, contrast"]


def test_a_dead_hop_is_refused_also_for_a_guaranteed_document(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None}, 2: {"d2": "Supports"}}}, skipped=[("q1", 2)])
    read_all(work)
    reject(work, "q1", rejection("d2", 2))
    with pytest.raises(Refused, match="names hop 2, which is skipped and not judged"):
        verdicts.record(work, "q1")


def test_a_repeat_is_refused_also_in_the_other_spelling(work):
    reject(work, "q2", rejection("shard_00045_6622"), rejection("shard_00045_06622"))
    with pytest.raises(Refused, match=r"rejection 2 names hop 1 of shard_00045_06622 \(that is shard_00045_6622\) a second time"):
        verdicts.record(work, "q2")
    reject(work, "q2", rejection("shard_00045_06622"))
    verdicts.record(work, "q2")
    assert answers(work, "q2")[1, "shard_00045_6622"] == (False, "rejection")


def test_the_white_space_of_a_sentence_does_not_count_and_all_else_does(work):
    reject(work, "q1", rejection("d2", sentence="  " + small.sentence("d2").replace(" ", " \n\t") + "\nIt ends  here."))
    verdicts.record(work, "q1")
    assert answers(work, "q1")[1, "d2"] == (False, "rejection")


@pytest.mark.parametrize("text", ["", "{", "{}", "null", '[{"hop": 1, "hop": 2}]', "[NaN]", "\ufeff[]", '"[]"'])
def test_a_file_that_is_no_list_of_strict_json_is_refused(work, text):
    files.write_text(work.rejections("q1"), text)
    with pytest.raises(Refused, match=r"rejections/q1.json .*\[\] where every document passes"):
        verdicts.record(work, "q1")
    assert not work.verdicts("q1").exists()


def test_what_no_whole_render_has_shown_is_neither_accepted_nor_rejected(tmp_path):
    work = small.make(tmp_path)
    reject(work, "q1", rejection("d2"))
    with pytest.raises(Unsettled) as left:
        verdicts.record(work, "q1")
    assert left.value.lines == [
        f"{docid} (hop {hop}) of q1 was not shown whole with today's text and standards: run worksheet --qid q1; nothing was written for q1"
        for docid, hop in (("d1", 2), ("d2", 1), ("d3", 1))
    ]
    assert not work.verdicts("q1").exists()


def test_the_way_out_shows_the_longest_of_the_texts_whole(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None, "d2": None, "d3": None}}}, {"d1": "a" * 30_000, "d2": "b" * 25_000})
    with pytest.raises(Unsettled):
        list(worksheet.render(work, "q1"))
    with pytest.raises(Unsettled) as left:
        verdicts.record(work, "q1")
    assert [line.split(":")[1].split(";")[0] for line in left.value.lines] == [" run worksheet --qid q1 --max-chars 30000"] * 2
    list(worksheet.render(work, "q1", 30_000))
    assert verdicts.record(work, "q1")


def test_another_text_or_another_standard_has_to_be_shown_again(work):
    small.cache(work, "d2", "Another text.")
    with pytest.raises(Unsettled, match=r"^d2 \(hop 1\) of q1 was not shown"):
        verdicts.record(work, "q1")
    read_all(work, "q1")
    given = json.loads(work.standards("q1").read_text())
    given["2"]["near_miss"] += "."
    files.write_json(work.standards("q1"), given)
    with pytest.raises(Unsettled) as left:
        verdicts.record(work, "q1")
    assert [line.split(" of ")[0] for line in left.value.lines] == ["d1 (hop 2)"]
    read_all(work, "q1")
    assert verdicts.record(work, "q1")


def test_a_gap_keeps_the_question_open_where_it_is_pending_and_not_where_a_vote_decides(work):
    small.gap(work, "d3")
    with pytest.raises(Unsettled, match=r"d3 \(hop 1\) of q1 has no cached text \(timed out after 60 s\): run fetch --qid q1, then run worksheet --qid q1"):
        verdicts.record(work, "q1")
    small.cache(work, "d3", "Back.")
    read_all(work, "q1")
    small.gap(work, "d1")
    reject(work, "q1", rejection("d1"))
    with pytest.raises(Refused, match=r"rejection 1 cannot be checked, the text of d1 is not cached"):
        verdicts.record(work, "q1")
    pool = {"q1": {1: {"d1": "Supports", "d2": None}}}
    other = small.make(work.folder / "other", pool)
    read_all(other)
    small.gap(other, "d1")
    verdicts.record(other, "q1")
    assert answers(other, "q1") == {(1, "d1"): (True, "vote"), (1, "d2"): (True, "silence")}
    assert recorded.read(other, "q1")["verdicts"][0]["text_sha256"] is None


def test_contradicting_votes_are_refused_with_their_cells(work):
    def change(rows):
        rows[0]["pool"][0] |= {"state": "contradiction", "votes": [{"vote": "Supports", "cell": "Votes!E2"}, {"vote": "Does not support", "cell": "Votes!E9"}]}
    rewrite(work, change)
    with pytest.raises(Refused, match=r"the votes of q1 contradict each other: hop 1 of d1 \(Supports in Votes!E2, Does not support in Votes!E9\)"):
        verdicts.record(work, "q1")


@pytest.mark.parametrize(("state", "verdict", "accepted"), [("overridden", "supports", True), ("bound", "does not support", False)])
def test_an_override_decides_and_its_quote_has_to_stand_in_the_text(work, state, verdict, accepted):
    def change(quote):
        override = {"verdict": verdict, "reason": "an oversight", "quote": quote}
        return lambda rows: rows[0]["pool"][4].update(state=state, override=override)
    rewrite(work, change("a quote of nowhere"))
    with pytest.raises(Unsettled, match="the override on hop 2 of d4 of q1 quotes 'a quote of nowhere', which the text does not hold"):
        verdicts.record(work, "q1")
    rewrite(work, change(small.sentence("d4").replace(" ", "  ")))
    verdicts.record(work, "q1")
    assert answers(work, "q1")[2, "d4"] == (accepted, "override")
    small.gap(work, "d4")
    with pytest.raises(Unsettled, match="the override on hop 2 of d4 of q1 cannot be checked"):
        verdicts.record(work, "q1")


def test_an_override_that_candidates_has_not_taken_up_or_that_was_taken_back_keeps_the_question_open(work):
    override = {"verdict": "supports", "reason": "an oversight", "quote": small.sentence("d4")}
    written = [{"qid": "q1", "hop": 2, "docid": "d4", **override}]
    for qid in ("q1", "q2"):
        verdicts.record(work, qid)
    assert build.build(work, work.qrels)

    def is_open(step):
        with pytest.raises(Refused, match="overrides.json says something else of q1 than candidates.jsonl, .*; run python -m lib.qrels candidates again"):
            step()
        assert status.standings(work)[0].next == "candidates"

    files.write_json(work.overrides, written)
    is_open(lambda: verdicts.record(work, "q1"))
    is_open(lambda: build.build(work, work.qrels))
    assert verdicts.record(work, "q2")
    rewrite(work, lambda rows: rows[0]["pool"][4].update(state="overridden", override=override))
    verdicts.record(work, "q1")
    assert build.build(work, work.qrels) and status.standings(work)[0].next == "expand scan"
    work.overrides.unlink()
    is_open(lambda: verdicts.record(work, "q1"))
    is_open(lambda: build.build(work, work.qrels))


def test_standards_are_asked_for_where_something_is_pending(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None}}, "q2": {1: {"d1": "Supports"}}}, with_standards=False)
    with pytest.raises(Refused, match="standards/q1.json is not there"):
        verdicts.record(work, "q1")
    verdicts.record(work, "q2")
    assert recorded.read(work, "q2")["standards"] == {} and recorded.read(work, "q2")["verdicts"][0]["standard_sha256"] is None


def test_all_takes_what_is_judged_and_lists_the_others(tmp_path):
    work = small.make(tmp_path, {
        "judged": {1: {"d1": None}}, "open": {1: {"d1": None}}, "voted": {1: {"d1": "Supports"}}, "bad": {1: {"d1": None}},
        "unread": {1: {"d2": None}}, "last": {1: {"d3": None}},
    })
    read_all(work, "judged", "open", "bad", "last")
    for qid in ("judged", "unread", "last", "typo"):
        reject(work, qid)
    reject(work, "bad", rejection("d404"))
    with pytest.raises(Unsettled) as left:
        verdicts.record_all(work)
    assert sorted(path.stem for path in work.verdicts("any").parent.glob("*.json")) == ["judged", "last", "voted"]
    assert [line.split(":")[0].rsplit("/", 1)[1] for line in left.value.told] == ["judged.json", "voted.json", "last.json"]
    stray, not_judged, bad, unread = left.value.lines
    assert stray == "rejections/typo.json belongs to no question of candidates.jsonl; rename it, or remove it"
    assert not_judged.startswith("open is not judged yet: write ") and not_judged.endswith(
        "rejections/open.json, [] where every document passes, or run verdicts --qid open")
    assert "rejection 1 names d404" in bad and unread.startswith("d2 (hop 1) of unread was not shown whole")


def test_all_keeps_what_a_reader_finished_by_name_while_it_stands(work):
    verdicts.record(work, "q1")
    reject(work, "q2")
    before = work.verdicts("q1").read_bytes()
    verdicts.record_all(work)
    assert work.verdicts("q1").read_bytes() == before
    rewrite(work, lambda rows: rows[0].update(workbook_sha256="c" * 64))
    with pytest.raises(Unsettled, match="^q1 is not judged yet"):
        verdicts.record_all(work)


def test_rejections_that_were_taken_away_are_not_taken_for_consent(work):
    reject(work, "q1", rejection("d2"))
    reject(work, "q2")
    verdicts.record_all(work)
    work.rejections("q1").unlink()
    with pytest.raises(Unsettled, match="^q1 is not judged yet"):
        verdicts.record_all(work)
    assert answers(work, "q1")[1, "d2"] == (False, "rejection")
    verdicts.record(work, "q1")  # the reader says so
    assert answers(work, "q1")[1, "d2"] == (True, "silence")


def test_silence_is_no_consent_beside_rejections_under_a_name_that_nobody_reads(tmp_path):
    work = small.make(tmp_path, {"Q1": {1: {"d1": None}}})
    read_all(work)
    (tmp_path / "rejections").mkdir()
    (tmp_path / "rejections" / "Q1.json").write_text("[]")
    with pytest.raises(Refused, match=r"rejections/Q1.json belongs to no question .*; the rejections of Q1 are read from .*/rejections/q1~[0-9a-f]{16}.json"):
        verdicts.record(work, "Q1")
    (tmp_path / "rejections" / "Q1.json").rename(work.rejections("Q1"))
    assert verdicts.record(work, "Q1")


@pytest.mark.parametrize("name", ["q1.JSON", "q1.json.txt", "q1 (1).json"])
def test_silence_is_no_consent_beside_a_file_that_a_program_named_anew(work, name):
    reject(work, "q1", rejection())
    work.rejections("q1").rename(work.rejections("q1").with_name(name))
    with pytest.raises(Refused, match=f"rejections/{re.escape(name)} belongs to no question"):
        verdicts.record(work, "q1")
    reject(work, "q1", rejection())
    work.rejections("q1").with_name(name).rename(work.rejections("q1").with_name("q1.json~"))  # what an editor keeps
    assert verdicts.record(work, "q1")
    assert not any("q1.json~" in line for line in rejections.strays(work, ["q1", "q2"]))


def test_a_question_that_another_process_holds_does_not_keep_the_others_from_being_written(work):
    reject(work, "q1")
    reject(work, "q2")
    code = "import sys; from lib.qrels.work import Work; from pathlib import Path\nwith Work(Path(sys.argv[1])).held('q1'): print(flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", code, str(work.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=paths.ROOT)
    holder.stdout.readline()
    with pytest.raises(Unsettled, match=rf"is in use by process {holder.pid}"):
        verdicts.record_all(work)
    assert work.verdicts("q2").exists() and not work.verdicts("q1").exists()
    with pytest.raises(processes.Locked):
        verdicts.record(work, "q1")
    holder.communicate(b"\n")
    verdicts.record_all(work)


KILLED = """
import os, signal, sys
from pathlib import Path
from lib import files
from lib.qrels import verdicts
from lib.qrels.work import Work

left, inside, replace = int(sys.argv[2]), sys.argv[3] == "inside", os.replace

def die(source, target):
    global left
    if left == 0 and inside:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

os.replace = die
verdicts.record_all(Work(Path(sys.argv[1])))
"""


@pytest.mark.parametrize(("number", "where"), [(0, "inside"), (0, "after"), (1, "inside"), (2, "after")])
def test_a_run_that_was_killed_between_questions_resumes_to_the_same_bytes(tmp_path, number, where):
    def made(name):
        work = small.make(tmp_path / name, {qid: {1: {"d1": None, "d2": None}} for qid in ("q1", "q2", "q3", "q4")})
        read_all(work)
        for qid in pools.read(work):
            reject(work, qid, rejection("d2"))
        return work

    def verdict_files(work):
        return {path.name: path.read_bytes() for path in work.verdicts("any").parent.glob("*.json")}

    unbroken, broken = made("unbroken"), made("broken")
    verdicts.record_all(unbroken)
    done = subprocess.run([sys.executable, "-c", KILLED, str(broken.folder), str(number), where], cwd=paths.ROOT, env=os.environ)
    assert done.returncode == -9
    assert len(verdict_files(broken)) == number + (where == "after")
    verdicts.record_all(broken)
    assert verdict_files(broken) == verdict_files(unbroken) and len(verdict_files(broken)) == 4
    verdicts.record_all(broken)
    assert verdict_files(broken) == verdict_files(unbroken)


VOTES = [None, "Supports", "Partial support", "Does not support"]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from(VOTES), st.booleans()), min_size=1, max_size=9), st.integers(0, 7))
@example([(1, 1, "Supports", True), (1, 2, None, True), (2, 1, None, False), (2, 2, "Does not support", False)], 0)
@example([(1, 1, "Partial support", False), (1, 2, None, False), (2, 3, None, True)], 1)
def test_every_entry_gets_the_answer_that_the_rules_give_it(entries, skipped_bits):
    pool, rejected = {}, set()
    for hop, number, vote, is_rejected in entries:
        pool.setdefault(hop, {})[f"d{number}"] = vote
        if is_rejected:
            rejected.add((hop, f"d{number}"))
    skipped = [hop for hop in pool if skipped_bits >> (hop - 1) & 1]
    expected = {}  # the spec's sentences, one by one
    for hop, votes in pool.items():
        for docid, vote in votes.items():
            if vote in ("Supports", "Partial support"):
                expected[hop, docid] = (True, "vote")
            elif vote == "Does not support":
                expected[hop, docid] = (False, "vote")
            elif hop not in skipped:
                expected[hop, docid] = (False, "rejection") if (hop, docid) in rejected else (True, "silence")
    allowed = [pair for pair in sorted(rejected) if pair[0] not in skipped and pool[pair[0]][pair[1]] != "Does not support"]
    with tempfile.TemporaryDirectory() as folder:
        work = small.make(Path(folder), {"q": pool}, skipped=[("q", hop) for hop in skipped])
        read_all(work)
        reject(work, "q", *(rejection(docid, hop) for hop, docid in allowed))
        verdicts.record(work, "q")
        assert answers(work, "q") == expected
        rows = recorded.read(work, "q")["verdicts"]
        assert [(row["hop"], row["docid"]) for row in rows] == sorted(expected)
        won = {(hop, docid) for hop, docid in allowed if pool[hop][docid]}
        assert sum("against a rejection" in line for line in recorded.read(work, "q")["reports"]) == len(won)


def test_a_file_of_verdicts_that_was_damaged_is_refused_with_the_way_out(work):
    for text in ("{}", "[]", "{", json.dumps({"qid": "q2"})):
        files.write_text(work.verdicts("q1"), text)
        with pytest.raises(Refused, match="delete it and run verdicts --qid q1"):
            recorded.read(work, "q1")
    assert recorded.read(work, "q2") is None


def test_nothing_is_kept_of_the_render_of_another_question(work):
    assert rendered.read(work, "q1").keys() == {"d1", "d2", "d3"} and rendered.read(work, "q2").keys() == {"d3", "shard_00045_6622"}


@pytest.mark.parametrize(("by", "text", "bar"), [("silence", True, True), ("rejection", True, True), ("override", True, False), ("vote", False, False)])
def test_a_verdict_stands_as_long_as_what_it_was_given_for(by, text, bar):
    row = {"by": by, "text_sha256": "t", "standard_sha256": "s"}
    assert recorded.fault(row, "t", "s") is None
    assert recorded.fault(row, "new", "s") == ("another text of the document" if text else None)
    assert recorded.fault(row, None, "s") == ("a text that is no longer cached" if text else None)
    assert recorded.fault(row, "t", "new") == recorded.fault(row, "t", None) == ("another standard of the hop" if bar else None)
