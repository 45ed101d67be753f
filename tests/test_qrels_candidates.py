"""The workbook and the verified questions become one pool a question, and what does not fit together is named."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
import small_qrels
from hypothesis import example, given
from hypothesis import strategies as st

from lib import paths
from lib.qrels import candidates, questions, workbook
from lib.qrels.refusals import Refused, Unsettled
from lib.qrels.work import Work
from lib.qrels.workbook import HopRow, VoteRow, Workbook

CASES = Path(__file__).parent / "cases"


class Desk:
    """A reviewer's workbook, made from rows, and the verified questions beside it."""

    def __init__(self, folder: Path):
        self.folder, self.work = folder, Work(folder / "work")
        self.workbook, self.questions = folder / "review.xlsx", folder / "verified.jsonl"

    def verify(self, **hops: int) -> None:
        """Write the verified questions, each with its number of hops."""
        self.questions.write_text("".join(
            json.dumps({"qid": qid, "question": f"What is {qid}?", "hops": [{"hop": n, "text": f"Hop {n} of {qid}?"} for n in range(1, count + 1)]}) + "\n"
            for qid, count in hops.items()
        ))

    def review(self, hops: list[tuple], votes: list[tuple]) -> None:
        """Write the workbook: hop rows (qid, hop, text, judgment, note), vote rows (qid, hop, docid, vote)."""
        book = openpyxl.Workbook()
        for sheet, header, rows in (
            (book.active, ("Question ID", "Hop", "Sub-question", "Judgment", "Note"), hops),
            (book.create_sheet(), ("Question ID", "Hop", "Document ID", "Vote"), votes),
        ):
            sheet.title = "Hops" if rows is hops else "Votes"
            for row in (header, *rows):
                sheet.append(row)
        book.save(self.workbook)

    def override(self, *rows: dict) -> None:
        self.work.folder.mkdir(exist_ok=True)
        self.work.overrides.write_text(json.dumps(rows))

    def write(self) -> list[str]:
        return candidates.write(self.work, self.workbook, self.questions)

    def left(self) -> list[str]:
        """The lines that a step leaves to settle."""
        with pytest.raises(Unsettled) as left:
            self.write()
        self.told = left.value.told
        return left.value.lines

    def states(self, qid: str = "q1") -> dict[tuple[int, str], str]:
        return {(entry["hop"], entry["docid"]): entry["state"] for entry in candidates.question(self.work, qid)["pool"]}


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


def test_the_command_joins_workbook_and_questions_and_says_what_stands_out(desk):
    desk.verify(q1=3, q2=2)
    desk.review(
        [("q1", 1, "Hop 1 of q1?", "Yes", None), ("q1", 2, "Hop  2 of q1?", "No", "This hop is not needed."), ("q1", 3, "Another?", "No", None),
         ("q2", 1, None, "No", "Not needed, or is it?"), ("q7", 1, None, "Yes", None)],
        [("q1", 1, "shard_00045_06622", "Supports"), ("q1", 1, "shard_00045_6622", None), ("q1", 1, "d3", None), ("q1", 1, "d2", "Does not support"),
         ("q1", 2, "d4", "Partial support"), ("q1", 2, "d5", None), ("q1", 3, "d5", None), ("q2", 1, "d1", None), ("q2", 2, "d1", "supports"),
         ("q7", 1, "d9", "Supports")],
    )
    command = [sys.executable, "-m", "lib.qrels", "candidates", "--work-dir", "work", "--workbook", "review.xlsx", "--questions", "verified.jsonl"]
    done = subprocess.run(command, cwd=desk.folder, env={"PYTHONPATH": str(paths.ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "2 of the 3 questions of review.xlsx are among the 2 of verified.jsonl",
        "left out, 1 not verified: q7",
        "ask: Hops!D5: hop 1 of question q2 stays live; whether it is needed does not come out of its note 'Not needed, or is it?'",
        "question q1 hop 2 document d4 is guaranteed although the hop is skipped: Partial support in Votes!D6",
        "Hops!D4: the text of hop 3 of question q1 is not the verified one, which is taken",
        "questions: 2; hops: 4 live, 1 skipped, 1 ask",
        "entries: 8 (3 guaranteed, 1 bound, 0 overridden, 0 contradiction, 3 pending, 1 skipped); documents: 6",
    ]
    first, second = small_qrels.lines(desk.work.candidates)
    assert [(hop["hop"], hop["judgment"], hop["note_class"], hop["live"], hop["cell"]) for hop in first["hops"] + second["hops"]] == [
        (1, "Yes", None, True, "Hops!D2"), (2, "No", "skip", False, "Hops!D3"), (3, "No", None, True, "Hops!D4"),
        (1, "No", "ask", True, "Hops!D5"), (2, None, None, True, None),  # judged by nobody: live
    ]
    assert first["pool"][:3] == [
        {"hop": 1, "docid": "d2", "state": "bound", "votes": [{"vote": "Does not support", "cell": "Votes!D5"}], "override": None},
        {"hop": 1, "docid": "d3", "state": "pending", "votes": [], "override": None},
        {"hop": 1, "docid": "shard_00045_6622", "state": "guaranteed", "votes": [{"vote": "Supports", "cell": "Votes!D2"}], "override": None},
    ]
    assert [(entry["hop"], entry["docid"], entry["state"]) for entry in first["pool"][3:] + second["pool"]] == [
        (2, "d4", "guaranteed"), (2, "d5", "skipped"), (3, "d5", "pending"), (1, "d1", "pending"), (2, "d1", "guaranteed"),
    ]
    assert first["workbook"] == "review.xlsx" and first["workbook_sha256"] == workbook.read(desk.workbook).sha256
    assert candidates.read(desk.work) == {"q1": first, "q2": second}
    raw = desk.work.candidates.read_bytes()
    assert candidates.sha256(first) == hashlib.sha256(raw.split(b"\n")[0]).hexdigest()
    desk.write()
    assert desk.work.candidates.read_bytes() == raw


@pytest.mark.parametrize("judgment, note, live, told", [
    ("No", "not needed", False, None), ("No", None, True, None), ("No", "see page 3", True, None), (None, None, True, None),
    ("Yes", "not needed", True, "its note 'not needed' says it is not needed, and it is judged Yes"),
    (None, "not needed", True, "its note 'not needed' says it is not needed, and it is judged neither Yes nor No"),
    ("No", "maybe not needed", True, "ask: Hops!D2"),
])
def test_a_hop_is_skipped_only_when_judged_no_with_a_note_that_says_so(desk, judgment, note, live, told):
    desk.verify(q1=1)
    desk.review([("q1", 1, None, judgment, note)], [("q1", 1, "d1", None)])
    lines = desk.write()
    assert candidates.question(desk.work, "q1")["hops"][0]["live"] is live
    assert desk.states() == {(1, "d1"): "pending" if live else "skipped"}
    assert any(told in line for line in lines) if told else not any("Hops!" in line for line in lines)


def test_every_row_on_a_hop_that_its_question_does_not_have_is_named_in_one_message_and_nothing_is_written(desk):
    desk.verify(q1=2, q2=1)
    desk.review(
        [("q1", 1, None, "Yes", None), ("q1", 4, None, "Yes", None), ("q9", 9, None, "Yes", None)],
        [("q1", 3, "d1", "Supports"), ("q2", 1, "d1", None), ("q2", 2, "d1", None), ("q9", 9, "d1", None)],
    )
    with pytest.raises(Refused) as refused:
        desk.write()
    assert str(refused.value) == (
        "review.xlsx: Hops!D3 names hop 4 of question q1, which has 1, 2; Votes!D2 names hop 3 of question q1, which has 1, 2; "
        "Votes!D4 names hop 2 of question q2, which has 1; mend these cells, or the hops in verified.jsonl"
    )
    assert not desk.work.candidates.exists()


def test_a_workbook_of_other_questions_is_refused(desk):
    desk.verify(q1=1)
    desk.review([], [("Q1", 1, "d1", None)])
    with pytest.raises(Refused, match=r"none of the 1 questions of review.xlsx \('Q1'\) is among the 1 of verified.jsonl \('q1'\); give the two"):
        desk.write()
    assert not desk.work.candidates.exists()


def test_a_verified_question_without_a_pool_is_written_and_left_to_settle(desk):
    desk.verify(q1=1, q2=1, q3=1)
    desk.review([("q2", 1, None, "Yes", None)], [("q1", 1, "d1", None)])
    assert desk.left() == [
        "question q2 has no document in review.xlsx; add it there, or take it out of verified.jsonl",
        "question q3 does not stand in review.xlsx; add it there, or take it out of verified.jsonl",
    ]
    assert [(row["qid"], len(row["pool"])) for row in small_qrels.lines(desk.work.candidates)] == [("q1", 1), ("q2", 0), ("q3", 0)]
    assert desk.told[0] == "2 of the 2 questions of review.xlsx are among the 3 of verified.jsonl"


OVERRIDE = {"qid": "q1", "hop": 1, "docid": "shard_1_00002", "verdict": "supports", "reason": "It says so.", "quote": "the sum is 4"}
CONTRADICTED = [("q1", 1, "shard_1_2", "Supports"), ("q1", 1, "shard_1_00002", "Does not support"), ("q1", 1, "d2", "Partial support")]


def test_a_contradiction_is_listed_with_its_cells_and_the_file_is_written(desk):
    desk.verify(q1=1)
    desk.review([], CONTRADICTED)
    assert desk.left() == [
        "question q1 hop 1 document shard_1_2 is contradicted: Supports in Votes!D2, Does not support in Votes!D3; "
        "settle it in the workbook, or by a reason and a quote in overrides.json"
    ]
    assert desk.states() == {(1, "d2"): "guaranteed", (1, "shard_1_2"): "contradiction"}


@pytest.mark.parametrize("verdict, state", [("supports", "overridden"), ("does not support", "bound")])
def test_an_override_settles_a_contradiction_either_way(desk, verdict, state):
    desk.verify(q1=1)
    desk.review([], CONTRADICTED)
    desk.override(OVERRIDE | {"verdict": verdict})
    assert any("is not checked yet (it was not fetched yet); run fetch, then candidates again" in line for line in desk.write())
    assert desk.states()[1, "shard_1_2"] == state
    recorded = {key: OVERRIDE[key] for key in ("reason", "quote")} | {"verdict": verdict}
    assert candidates.question(desk.work, "q1")["pool"][1]["override"] == recorded


def test_the_workbook_settles_it_too_and_then_an_override_has_nothing_to_stand_on(desk):
    desk.verify(q1=1)
    desk.review([], [CONTRADICTED[0], CONTRADICTED[2]])
    desk.write()
    assert desk.states() == {(1, "d2"): "guaranteed", (1, "shard_1_2"): "guaranteed"}
    desk.override(OVERRIDE)
    with pytest.raises(Refused, match="question q1 hop 1 document shard_1_2 has Supports, and an override needs a Does not support vote"):
        desk.write()


def test_a_vote_against_is_overridden_only_with_a_quote_that_stands_in_the_cached_text(desk):
    desk.verify(q1=1)
    desk.review([], [("q1", 1, "shard_1_2", "Does not support")])
    desk.write()
    assert desk.states() == {(1, "shard_1_2"): "bound"}
    desk.override(OVERRIDE)
    small_qrels.cache(desk.work, "shard_1_2", "In the end the\n sum  is 4.")
    assert not any("not checked" in line for line in desk.write())
    assert desk.states() == {(1, "shard_1_2"): "overridden"}
    before = desk.work.candidates.read_bytes()
    small_qrels.cache(desk.work, "shard_1_2", "In the end the Sum is 4.")
    with pytest.raises(Refused, match="'the sum is 4', does not stand in the text; quote it as it stands there"):
        desk.write()
    assert desk.work.candidates.read_bytes() == before


@pytest.mark.parametrize("rows, told", [
    ([OVERRIDE | {"docid": "d9"}], "question q1 hop 1 document d9 is in no pool"),
    ([OVERRIDE | {"qid": "q9"}, OVERRIDE | {"hop": 2}], "question q9 hop 1 .* is in no pool.*; question q1 hop 2 .* is in no pool"),
    ([OVERRIDE | {"docid": "d2"}], "document d2 has Partial support, and an override needs"),
    ([OVERRIDE, OVERRIDE | {"docid": "shard_1_2", "reason": "Another."}], "override 2 repeats question q1 hop 1 document shard_1_2"),
    ([OVERRIDE | {"reason": " "}], "override 1 has the reason ' '; give a reason that is not blank"),
    ([OVERRIDE | {"quote": ""}], "override 1 has the quote ''"), ([OVERRIDE | {"quote": None}], "override 1 has the quote None"),
    ([OVERRIDE | {"verdict": "Supports"}], "override 1 has the verdict 'Supports'; give 'supports' or 'does not support'"),
    ([OVERRIDE | {"verdict": ["supports"]}], "override 1 has the verdict"), ([OVERRIDE | {"hop": "1"}], "override 1 has the hop '1'"),
    ([OVERRIDE | {"hop": True}], "override 1 has the hop True"), ([OVERRIDE | {"qid": 78}], "override 1 has the qid 78, which is a int, not text"),
    ([OVERRIDE | {"by": "me"}], "override 1 has .*not exactly the keys"), (["q1"], "override 1 has str, not exactly"), ([{}], "override 1 has"),
])
def test_a_stranger_a_repeat_or_a_blank_refuses_the_overrides_whole(desk, rows, told):
    desk.verify(q1=1)
    desk.review([], CONTRADICTED)
    desk.override(*rows)
    with pytest.raises(Refused, match=f"overrides.json: .*{told}"):
        desk.write()
    assert not desk.work.candidates.exists()


@pytest.mark.parametrize("text", ["{}", "[", '[{"qid": "a", "qid": "b"}]', "NaN"])
def test_overrides_that_are_no_list_are_refused(desk, text):
    desk.verify(q1=1)
    desk.review([], CONTRADICTED)
    desk.override()
    desk.work.overrides.write_text(text)
    with pytest.raises(Refused, match=r"overrides.json .*; (mend it, or remove it; )?it may hold a list of objects with docid, hop"):
        desk.write()


VOTES = st.sampled_from([None, "Supports", "Partial support", "Does not support"])


@given(st.lists(st.tuples(st.sampled_from(["d1", "shard_1_2", "shard_1_02"]), VOTES), max_size=6), st.booleans(), st.sampled_from([None, "supports", "does not support"]))
@example([("d1", "Supports"), ("d1", "Does not support")], False, None)
@example([("shard_1_2", "Supports"), ("shard_1_02", "Does not support")], True, "does not support")
def test_states_follow_the_rules_one_by_one(rows, live, verdict):
    cast = {}
    for docid, vote in rows:
        cast.setdefault(docid.replace("_02", "_2"), []).extend([vote] if vote else [])
    for votes in cast.values():
        override = candidates.Override(verdict, "why", "quote") if verdict else None
        found = candidates.state(votes, override, live)
        positive, negative = "Supports" in votes or "Partial support" in votes, "Does not support" in votes
        if not positive and not negative:
            assert found == ("pending" if live else "skipped")
        elif negative and verdict == "supports":
            assert found == "overridden"
        elif negative and verdict == "does not support":
            assert found == "bound"
        elif positive and negative:
            assert found == "contradiction"
        else:
            assert found == ("guaranteed" if positive else "bound")


def test_an_override_on_a_skipped_hop_is_told_as_a_vote_there_is(desk):
    desk.verify(q1=1)
    desk.review([("q1", 1, None, "No", "not needed")], [("q1", 1, "shard_1_2", "Does not support")])
    desk.override(OVERRIDE)
    assert "question q1 hop 1 document shard_1_2 is guaranteed although the hop is skipped: Does not support in Votes!D2" in desk.write()
    assert desk.states() == {(1, "shard_1_2"): "overridden"}


@pytest.mark.parametrize("second", [("No", None), ("Yes", "not needed")])
def test_two_judgments_of_one_hop_are_refused_with_both_cells(desk, monkeypatch, second):
    rows = [HopRow("q1", 1, None, "Yes", None, "Hops!D2"), HopRow("q1", 1, None, *second, "Hops!D7")]
    monkeypatch.setattr(workbook, "read", lambda path: Workbook("review.xlsx", "a" * 64, rows, [VoteRow("q1", 1, "d1", None, "Votes!D2")], []))
    desk.verify(q1=1)
    with pytest.raises(Refused, match="Hops!D2 and Hops!D7 judge hop 1 of question q1 in two ways"):
        desk.write()


def test_what_the_workbook_notices_is_told_first(desk, monkeypatch):
    book = Workbook("review.xlsx", "a" * 64, [], [VoteRow("q1", 1, "d1", None, "Votes!D2")], ["Hops: row 3 is hidden"])
    monkeypatch.setattr(workbook, "read", lambda path: book)
    desk.verify(q1=1)
    assert desk.write()[0] == "Hops: row 3 is hidden"


def test_case_32_ids_of_questions_and_documents_stay_text(desk, monkeypatch):
    case = json.loads((CASES / "32-ids-stay-text.json").read_text())
    ids = case["input"]["ids"]
    desk.verify(**dict.fromkeys(ids, 1))
    monkeypatch.setattr(workbook, "read", lambda path: Workbook("w", "a" * 64, [], [VoteRow(an_id, 1, an_id, None, "Votes!D2") for an_id in ids], []))
    desk.write()
    assert [row["qid"] for row in small_qrels.lines(desk.work.candidates)] == case["right_answer"]["ids_back"]
    assert [row["pool"][0]["docid"] for row in small_qrels.lines(desk.work.candidates)][:-1] == case["right_answer"]["ids_back"][:-1]
    for bad in case["input"]["refused"]:
        desk.questions.write_text(json.dumps({"qid": bad, "question": "What?", "hops": ["How?"]}))
        with pytest.raises(Refused, match=r"verified.jsonl line 1: the qid .*; give a legal id in quotes"):
            desk.write()


def test_pools_that_were_not_written_by_this_step_are_refused(desk):
    small_qrels.make(desk.work.folder)
    line = desk.work.candidates.read_text().splitlines()[0]
    for damage, told in ((f"{line}\n{line}\n", "line 2 repeats a question"), ('{"qid": "q1"}', "line 1 is no line of candidates"), (line[:50], "line 1 is no strict JSON")):
        desk.work.candidates.write_text(damage)
        with pytest.raises(Refused, match=rf"candidates.jsonl {told}.*; run python -m lib.qrels candidates$"):
            candidates.read(desk.work)


GOOD = '{"qid": "78", "question": "Which?", "hops": [{"hop": 2, "text": "Where?", "more": 1}, {"hop": 1, "text": "Who?"}], "level": 3}'


@pytest.mark.parametrize("text", [
    GOOD, f"\ufeff{GOOD}", f"{GOOD}\r\n\r\n", f"\n  \n{GOOD}", '{"qid": "78", "question": "Which?", "hops": ["Who?", "Where?"]}\n',
])
def test_questions_are_read_with_other_fields_a_byte_order_mark_crlf_or_hops_as_texts(tmp_path, text):
    (tmp_path / "verified.jsonl").write_bytes(text.encode())
    found = questions.read(tmp_path / "verified.jsonl")
    assert found.questions == [questions.Question("78", "Which?", (questions.Hop(1, "Who?"), questions.Hop(2, "Where?")))]
    assert (found.name, len(found.sha256)) == ("verified.jsonl", 64)


@pytest.mark.parametrize("text, told", [
    (GOOD.replace('"78"', "78"), "line 1: the qid 78 is a number; write it in quotes, ids are text"),
    (GOOD.replace('"78"', "7.8"), "line 1: the qid 7.8 is a number; write it in quotes"), (GOOD.replace('"78"', "true"), "line 1: the qid True is a bool"),
    (GOOD.replace('"78"', '"7 8"'), r"line 1: the qid '7 8' holds the character U\+0020"), (GOOD.replace('"78"', "null"), "line 1: the qid None"),
    (f"\n{GOOD}\n{GOOD}", "line 3: the question '78' stands on line 2 already; keep one of the two"),
    (GOOD.replace('"hop": 2', '"hop": 1'), "line 1: hop 1 of '78' stands twice"), (GOOD.replace('"hop": 2', '"hop": "2"'), "line 1: a hop of '78' has the number '2'"),
    (GOOD.replace('"hop": 2', '"hop": 0'), "number 0; give a whole number from 1"), (GOOD.replace('"hop": 2', '"hop": 2.0'), "number 2.0; give a whole number"),
    (GOOD.replace('"hop": 2', '"hop": true'), "number True; give"), (GOOD.replace('"Where?"', '" "'), "line 1: hop 2 of '78' is ' '; give a text"),
    (GOOD.replace('"Which?"', "null"), "the question of '78' is None"), (GOOD.replace('"Which?"', r'"\ud800"'), "holds a lone surrogate"),
    ('{"qid": "78", "question": "Which?", "hops": []}', "the hops of '78' are no list with at least one hop"),
    ('{"qid": "78", "question": "Which?", "hops": ["a", {"hop": 2, "text": "b"}]}', "some hops of '78' are texts and some are objects"),
    ('{"qid": "78", "question": "Which?", "hops": [3]}', "a hop of '78', 3, is neither"), ('{"qid": "78", "question": "Which?"}', "line 1: is no object with the fields"),
    (f"{GOOD}\n[1]", "line 2: is no object"), (f"{GOOD}\n{{", "line 2: is no strict JSON"), ('{"qid": "a", "qid": "b"}', "line 1: is no strict JSON .*stands twice"),
    (GOOD.replace("3}", "NaN}"), "line 1: is no strict JSON"), ("[" * 100_000, "line 1: is no strict JSON"), ("", "holds no question"), (" \r\n", "holds no question"),
])
def test_questions_that_are_not_as_declared_are_refused_with_their_line(tmp_path, text, told):
    (tmp_path / "verified.jsonl").write_text(text)
    with pytest.raises(Refused, match=rf"verified.jsonl .*{told}"):
        questions.read(tmp_path / "verified.jsonl")


def test_questions_that_cannot_be_read_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "verified.jsonl").write_bytes(GOOD.encode("utf-16"))
    for path, told in (("verified.jsonl", r"is no UTF-8 \(byte 0\); save it as UTF-8"), ("none.jsonl", "is not there; give"), (".", "cannot be read")):
        with pytest.raises(Refused, match=told):
            questions.read(tmp_path / path)
