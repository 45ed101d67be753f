"""The table of where each question stands, followed through the steps of the command line on a small work folder."""

import json

import small_qrels

from lib.qrels import build, rendered, status, verdicts, worksheet
from lib.qrels.__main__ import main
from lib.qrels.work import Work, write_lines


def stands(work: Work, qid: str = "q1") -> status.Standing:
    return next(one for one in status.standings(work) if one.question == qid)


def test_each_step_names_the_next_one(tmp_path):
    work = small_qrels.make(tmp_path, with_standards=False)
    assert (stands(work).entries, stands(work).documents, stands(work).cached, stands(work).pending) == (5, 4, 4, 3)
    assert stands(work).shown is None and stands(work).next == "write its standards"
    small_qrels.standards(work, "q1", [1, 2])
    small_qrels.standards(work, "q2", [1])
    assert stands(work).shown == 0 and stands(work).next == "worksheet --qid q1"
    for qid in ("q1", "q2"):
        assert list(worksheet.render(work, qid))
    assert stands(work).shown == 3 and stands(work).next == "verdicts --qid q1"
    for qid in ("q1", "q2"):
        verdicts.record(work, qid)
    assert stands(work).verdicts == 5 and stands(work).next == "build"
    build.build(work, work.qrels)
    assert stands(work).relevant == 3 and stands(work).next == "expand scan"


def test_a_changed_text_or_standard_or_vote_leads_back(tmp_path):
    work = small_qrels.make(tmp_path)
    for qid in ("q1", "q2"):
        assert list(worksheet.render(work, qid))
        verdicts.record(work, qid)
    assert stands(work).next == "build"
    work.rejections("q1").parent.mkdir()
    work.rejections("q1").write_text(json.dumps([{"hop": 1, "docid": "d2", "sentence": small_qrels.sentence("d2"), "contrast": "one that proves it"}]))
    assert stands(work).next == "verdicts --qid q1"
    verdicts.record(work, "q1")
    assert stands(work).next == "build"
    work.rejections("q1").unlink()
    small_qrels.cache(work, "d2", "Another text.")
    assert (stands(work).shown, stands(work).verdicts, stands(work).next) == (2, 4, "worksheet --qid q1")
    small_qrels.gap(work, "d2")
    assert (stands(work).cached, stands(work).next) == (3, "fetch --qid q1")
    rows = small_qrels.lines(work.candidates)
    rows[0]["pool"][0]["state"] = "contradiction"
    write_lines(work.candidates, rows)
    assert stands(work).next == "settle what contradicts itself"


def test_an_id_is_named_as_a_shell_takes_it(tmp_path):
    work = small_qrels.make(tmp_path, {"a;b": {1: {"d1": None}}})
    assert stands(work, "a;b").next == "worksheet --qid 'a;b'"
    assert any("a;b" in line for line in status.lines(work))
    assert json.loads(work.candidates.read_text())["qid"] == "a;b"


def test_an_id_that_looks_like_an_option_is_named_as_the_command_line_takes_it(tmp_path, capsys):
    work = small_qrels.make(tmp_path, {"-q": {1: {"d1": None}}})
    assert stands(work, "-q").next == "worksheet --qid=-q"
    main([*stands(work, "-q").next.split(), "--work-dir", str(tmp_path)])
    said = capsys.readouterr().out
    assert "then run verdicts --qid=-q" in said and rendered.read(work, "-q")
