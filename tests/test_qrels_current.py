"""Nothing is released that later verdicts or decisions have overtaken, and the status says where to go on."""

import json

import pytest
import small_expansion
import small_qrels as small

from lib import files
from lib.qrels import build, current, expansion, pools, release, status, verdicts, worksheet
from lib.qrels.refusals import Refused


@pytest.fixture
def line(tmp_path):
    """A work folder closed over duplicates, and the steps after its verdicts."""
    work = small.make(tmp_path / "work", {"q1": {1: {"d1": "Supports", "d2": None, "d3": None}}, "q2": {1: {"d3": None}}})
    small.cache(work, "near", f"Another page.\n\n{small.sentence('d1')}\n")
    near = small_expansion.near_files(tmp_path / "near", {("d1", "near"): 0.75}, ["d1", "d2", "d3", "near"])
    (tmp_path / "exact.jsonl").write_text("")

    class Line:
        folder, sources = work, (work.qrels, near, tmp_path / "exact.jsonl")

        def judge(self):
            for qid in pools.read(work):
                list(worksheet.render(work, qid))
                verdicts.record(work, qid)
            build.build(work, work.qrels)

        def decide(self, hops):
            expansion.scan(work, *self.sources)
            list(expansion.render(work, "q1", work.qrels))
            (tmp_path / "decisions.json").write_text(json.dumps({"near": {"hops": hops, "sentence": small.sentence("d1"), "contrast": "one without it"}}))
            expansion.apply(work, "q1", tmp_path / "decisions.json")

        def export(self, out=work.expanded):
            expansion.export(work, work.qrels, out, *self.sources[1:])

        def release(self, qrels=work.expanded):
            return release.release(work, qrels, tmp_path / "released", near, None)[0].split(",")[0]

        def next(self, qid="q1"):
            return next(one.next for one in status.standings(work) if one.question == qid)

    made = Line()
    made.judge()
    made.decide([1])
    made.export()
    return made


def test_what_is_of_today_is_released_in_either_form(line):
    assert line.next() == line.next("q2") == "release"
    assert line.release() == "released: 5 pairs of 2 questions"
    assert line.release(line.folder.qrels) == "released: 4 pairs of 2 questions"


def test_a_verdict_that_was_recorded_after_the_build_keeps_both_from_being_released(line):
    files.write_json(line.folder.rejections("q1"), [{"hop": 1, "docid": "d2", "sentence": small.sentence("d2"), "contrast": "one that proves it"}])
    with pytest.raises(Refused, match="q1.json says something else than .*run verdicts --qid q1 again"):
        line.release()
    verdicts.record(line.folder, "q1")
    for path, again in ((line.folder.qrels, "build again"), (line.folder.expanded, "build, expand scan and expand export again")):
        with pytest.raises(Refused, match=f"{path.name} is of other verdicts .* on q1; run python -m lib.qrels {again}"):
            line.release(path)
    assert (line.next(), line.next("q2")) == ("build", "release")
    build.build(line.folder, line.folder.qrels)
    assert line.release(line.folder.qrels) == "released: 3 pairs of 2 questions"
    with pytest.raises(Refused, match="of other verdicts or decisions than there are now on q1"):
        line.release()
    assert line.next() == "expand scan"
    expansion.scan(line.folder, *line.sources)
    assert line.next() == "expand scan, or expand export"
    line.export()
    assert line.release() == "released: 4 pairs of 2 questions" and line.next() == "release"


def test_a_decision_that_changed_after_the_export_keeps_it_from_being_released(line):
    line.folder.decisions("q1").unlink()
    expansion.scan(line.folder, *line.sources)
    assert line.next() == "expand render --qid q1"
    line.decide([])
    assert (line.next(), line.next("q2")) == ("expand scan, or expand export", "release")
    with pytest.raises(Refused, match="of other verdicts or decisions than there are now on q1"):
        line.release()
    line.export()
    assert line.release() == "released: 4 pairs of 2 questions"


def test_a_question_that_was_taken_out_keeps_its_qrels_from_being_released(line):
    rows = small.lines(line.folder.candidates)
    line.folder.candidates.write_text(json.dumps(rows[0]) + "\n")
    for path in (line.folder.qrels, line.folder.expanded):
        with pytest.raises(Refused, match="than there are now on q2; run"):
            line.release(path)


def test_a_copy_whose_text_changed_after_the_export_is_not_released_with_it(line):
    small.cache(line.folder, "near", "Another text.")
    assert (line.next(), line.next("q2")) == ("expand render --qid q1", "release")
    with pytest.raises(Refused, match="of other verdicts or decisions than there are now on q1"):
        line.release()
    assert expansion.scan(line.folder, *line.sources)[1] == "q1: the decision on near is open again, its text changed"


def test_an_export_that_was_killed_before_its_end_is_made_again(line):
    line.folder.expanded.write_bytes(line.folder.expanded.read_bytes() + b"\n")
    with pytest.raises(Refused, match="on q1, q2; run"):
        line.release()
    assert line.next() == "expand scan, or expand export"
    line.export()
    assert line.release() == "released: 5 pairs of 2 questions"


def test_a_file_of_another_place_is_taken_as_it_is(line):
    elsewhere = line.folder.folder.parent / "elsewhere.jsonl"
    line.export(elsewhere)
    line.folder.decisions("q1").unlink()
    assert line.release(elsewhere) == "released: 5 pairs of 2 questions"
    assert set(current.exported(line.folder)) == {"q1", "q2"}


def test_a_record_that_no_export_wrote_is_refused(line):
    line.folder.exported.write_text("[]")
    with pytest.raises(Refused, match="exported.json is not what an export writes; run"):
        line.release()
