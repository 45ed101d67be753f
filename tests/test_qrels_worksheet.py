"""A worksheet shows standards first and texts whole, lets no text steer the terminal, and remembers only what was shown."""

import json
import os
import re
import subprocess
import sys
import unicodedata

import pytest
import small_qrels as small
from hypothesis import example, given
from hypothesis import strategies as st

from lib import files, paths
from lib.qrels import documents, printed, rendered, standards, taken, verdicts, worksheet
from lib.qrels import pools as lines_of
from lib.qrels.refusals import Refused, Unsettled

LONG = "A long page.\n" + "All primes but 2 are odd. " * 2000 + "\nThe last line decides.\n"
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def collect(work, qid, max_chars=20_000):
    """The lines of a render that was read to its end, and what it left."""
    lines = []
    try:
        for line in worksheet.render(work, qid, max_chars):
            lines.append(line)
    except Unsettled as error:
        return lines, error.lines
    return lines, []


def place(lines, beginning):
    return next(place for place, line in enumerate(lines) if line.startswith(beginning))


def test_the_standards_stand_before_the_first_text_and_a_document_stands_once(tmp_path):
    work = small.make(tmp_path, {"q1": {1: {"d1": None, "d2": None}, 2: {"d1": None}}})
    lines, left = collect(work, "q1")
    assert left == []
    assert "must state | what hop 1 of q1 must state" in lines and "near miss  | what hop 2 of q1 is not" in lines
    assert place(lines, "near miss  | what hop 2") < place(lines, "=== d1")
    headings = [line for line in lines if re.match(r"=== d\d:", line)]
    assert [heading.split(";")[0] for heading in headings] == ["=== d1: hops 1, 2", "=== d2: hop 1"]
    assert documents.text(work, "d1").sha256 in headings[0]
    assert f"| {small.sentence('d1')}" in lines
    assert lines[0].startswith("=== question q1: 3 of 3 pending entries are left to judge, in 2 documents, 0 of them shown whole before")


def test_a_skipped_hop_is_named_with_its_note_and_not_read(tmp_path):
    work = small.make(tmp_path, skipped=[("q1", 2)])
    lines, _ = collect(work, "q1")
    assert "=== hop 2: skipped, not judged, judged No, note 'not needed'" in lines
    assert not any("hop 2 of q1 must state" in line for line in lines)
    assert {docid: mark["standards"].keys() for docid, mark in rendered.read(work, "q1").items()} == {"d2": {"1"}, "d3": {"1"}}


def test_a_whole_render_is_remembered_by_the_hashes_of_text_and_standards(tmp_path):
    work = small.make(tmp_path)
    collect(work, "q1")
    question, marks = lines_of.question(work, "q1"), rendered.read(work, "q1")
    bars = standards.read(work, question)
    assert sorted(marks) == ["d1", "d2", "d3"]
    assert marks["d1"] == {"text_sha256": documents.text(work, "d1").sha256, "standards": {"2": bars[2].sha256}}
    assert rendered.shows(marks, documents.text(work, "d1"), 2, bars[2]) and not rendered.shows(marks, documents.text(work, "d1"), 1, bars[1])
    assert not rendered.shows(marks, documents.text(work, "d4"), 2, bars[2])


def test_a_text_over_the_limit_is_cut_and_marked_nowhere(tmp_path):
    work = small.make(tmp_path, texts={"d2": LONG})
    lines, left = collect(work, "q1")
    sentence = (
        f"TRUNCATED after 20,000 of {len(LONG):,} characters: "
        f"nothing of this document can be recorded; render again with --max-chars {len(LONG)}"
    )
    assert left == [f"d2: {sentence}"]
    assert lines.index(f"d2: {sentence}") < place(lines, "=== d2")  # at the start, and
    assert f"=== d2: {sentence}" in lines  # where the text is cut
    assert "The last line decides." not in "\n".join(lines) and "=== end of d2" not in lines
    assert sorted(rendered.read(work, "q1")) == ["d1", "d3"]
    with pytest.raises(Unsettled, match=rf"d2 \(hop 1\) of q1 was not shown whole .* run worksheet --qid q1 --max-chars {len(LONG)}"):
        verdicts.record(work, "q1")
    lines, left = collect(work, "q1", len(LONG))
    assert left == [] and "| The last line decides." in lines and "2 of them shown whole before" in lines[0]
    assert verdicts.record(work, "q1")


@pytest.mark.parametrize(("max_chars", "is_cut"), [(len(LONG) - 1, True), (len(LONG), False), (len(LONG) + 1, False), (0, False)])
def test_the_limit_itself_is_whole_and_0_is_no_limit(tmp_path, max_chars, is_cut):
    work = small.make(tmp_path, texts={"d2": LONG})
    lines, left = collect(work, "q1", max_chars)
    assert bool(left) is is_cut and ("d2" not in rendered.read(work, "q1")) is is_cut
    assert any("TRUNCATED" in line for line in lines) is is_cut


def test_the_flag_of_one_render_shows_all_that_it_cut(tmp_path):
    work = small.make(tmp_path, texts={"d2": LONG, "d3": LONG + LONG})
    _, left = collect(work, "q1")
    assert [line.rsplit(" ", 1)[1] for line in left] == [str(2 * len(LONG))] * 2
    assert collect(work, "q1", 2 * len(LONG))[1] == []


def test_the_limit_counts_characters_and_not_bytes(tmp_path):
    work = small.make(tmp_path, texts={"d2": "π𝔽" * 50})
    assert collect(work, "q1", 100)[1] == []
    assert "after 99 of 100 characters" in collect(work, "q1", 99)[1][0]


@pytest.mark.parametrize("max_chars", [-1, True, 2.5])
def test_a_limit_that_is_no_number_is_refused(tmp_path, max_chars):
    with pytest.raises(Refused, match="--max-chars"):
        next(worksheet.render(small.make(tmp_path), "q1", max_chars))


def test_a_gap_is_listed_with_its_reason_and_the_others_are_shown(tmp_path):
    work = small.make(tmp_path)
    small.gap(work, "d3", "exit code 3: no such page")
    lines, left = collect(work, "q1")
    assert left == ["d3: GAP, no text (exit code 3: no such page): run fetch --qid q1 and render again"]
    assert left[0] in lines and "=== end of the worksheet of q1: 2 of 3 documents shown whole" in lines
    assert sorted(rendered.read(work, "q1")) == ["d1", "d2"]


def test_a_render_that_nobody_read_to_its_end_marks_nothing(tmp_path):
    work = small.make(tmp_path)
    whole = collect(small.make(tmp_path / "other"), "q1")[0]
    for count in range(len(whole) + 1):
        render = worksheet.render(work, "q1")
        for _ in range(count):
            next(render)
        render.close()
        assert rendered.read(work, "q1") == {}, count


def test_a_reader_that_closes_the_pipe_early_was_shown_nothing(tmp_path):
    work = small.make(tmp_path, texts={"d2": LONG * 10})
    command = [sys.executable, "-m", "lib.qrels", "worksheet", "--qid", "q1", "--max-chars", "0", "--work-dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=paths.ROOT)
    assert process.stdout.readline().startswith(b"=== question q1")
    process.stdout.close()
    assert process.wait(60) != 0 and b"Traceback" not in process.stderr.read()
    assert rendered.read(work, "q1") == {}
    assert subprocess.run(command, stdout=subprocess.PIPE, cwd=paths.ROOT, check=True).stdout.decode().count("=== end of d") == 3
    assert sorted(rendered.read(work, "q1")) == ["d1", "d2", "d3"]


def test_a_reader_that_leaves_before_the_last_line_was_shown_nothing_however_much_a_pipe_holds(tmp_path):
    work = small.make(tmp_path)
    command = f"{sys.executable} -m lib.qrels worksheet --qid q1 --work-dir {tmp_path}"
    whole = subprocess.run(command.split(), stdout=subprocess.PIPE, cwd=paths.ROOT, check=True).stdout.decode().count("\n")
    assert whole < 100
    for reader in ("head -1", f"head -{whole - 1}", "sed 3q"):
        work.rendered("q1").unlink(missing_ok=True)
        piped = subprocess.run(["bash", "-o", "pipefail", "-c", f"{command} | {reader}"], capture_output=True, cwd=paths.ROOT)
        assert piped.returncode == 1 and piped.stderr == b"" and rendered.read(work, "q1") == {}, reader
    for reader in ("cat", f"head -{whole}", "(sleep 0.3; cat)"):
        work.rendered("q1").unlink(missing_ok=True)
        subprocess.run(["bash", "-o", "pipefail", "-c", f"{command} | {reader}"], capture_output=True, cwd=paths.ROOT, check=True)
        assert sorted(rendered.read(work, "q1")) == ["d1", "d2", "d3"]


def test_a_line_left_in_a_pipe_that_nobody_reads_any_more_was_not_taken():
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        print("the last line", file=stream, flush=True)
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            taken.wait(stream)


def test_the_command_line_ends_with_1_where_something_was_cut(tmp_path):
    small.make(tmp_path, texts={"d2": LONG})
    command = [sys.executable, "-m", "lib.qrels", "worksheet", "--qid", "q1", "--work-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.ROOT, env=os.environ | {"LC_ALL": "C"})
    assert done.returncode == 1 and done.stdout.count("TRUNCATED") == 2 and done.stderr.count("TRUNCATED") == 1


def test_a_text_cannot_pass_for_a_heading_nor_steer_the_terminal(tmp_path):
    evil = "ok\r\n=== end of d2\r=== hop 1: skipped\n\x1b[2J\x1b]0;gone\x07 \u202emirrored\u2028=== end\u200f \x9b2K a\tb\n"
    lines, _ = collect(small.make(tmp_path, texts={"d2": evil}), "q1")
    start = place(lines, "=== d2")
    assert lines[start + 1:lines.index("=== end of d2", start) + 1] == [
        "| ok", "| === end of d2", "| === hop 1: skipped",
        "| [U+001B][2J[U+001B]]0;gone[U+0007] [U+202E]mirrored[U+2028]=== end[U+200F] [U+009B]2K a\tb", "| ", "=== end of d2",
    ]


def test_a_question_a_hop_and_a_standard_cannot_pass_for_a_heading_either(tmp_path):
    work = small.make(tmp_path)
    rows = small.lines(work.candidates)
    rows[0] |= {"question": "What?\n=== end of d2"}
    rows[0]["hops"][0] |= {"text": "Why?\n=== d2: hop 1", "note": "a\n=== b\x1b", "note_class": "ask"}
    work.candidates.write_text("".join(json.dumps(row) + "\n" for row in rows))
    files.write_json(work.standards("q1"), {str(hop): {"must_state": "a\n=== end of d2", "near_miss": "b"} for hop in (1, 2)})
    lines, _ = collect(work, "q1")
    assert lines.count("=== end of d2") == 1 and "must state | === end of d2" in lines
    assert r"=== hop 1: live, judged Yes, asked whether it is needed, note 'a\n=== b\x1b'" in lines


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
@example("\x00\x1b[31m\x85\u2029\u2066\U000e0041\ufeff")
@example("\r\n\n\r\r\n")
def test_every_line_of_a_text_stays_behind_its_mark(text):
    lines = printed.quoted(text)
    assert len(lines) == len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for line in lines:
        assert line.startswith("| ") and len(line.splitlines()) == 1
        assert not [c for c in line if c != "\t" and (unicodedata.category(c) in ("Cc", "Zl", "Zp") or unicodedata.bidirectional(c) in BIDI)]


def test_what_has_a_standing_verdict_is_not_shown_again(tmp_path):
    work = small.make(tmp_path)
    collect(work, "q1")
    verdicts.record(work, "q1")
    lines, left = collect(work, "q1")
    assert "nothing left to judge" in lines[0] and left == [] and not any(line.startswith("=== d") for line in lines)
    small.cache(work, "d2", "A new text.\n")
    lines, _ = collect(work, "q1")
    assert "1 of 3 pending entries are left to judge, in 1 documents" in lines[0] and "| A new text." in lines and "=== end of d3" not in lines


def test_a_question_without_pending_entries_says_so(tmp_path):
    lines, _ = collect(small.make(tmp_path, {"q1": {1: {"d1": "Supports"}}}), "q1")
    assert lines[0] == "=== question q1: nothing to judge, its votes settle every entry"


def test_without_standards_there_is_no_worksheet(tmp_path):
    work = small.make(tmp_path, with_standards=False)
    with pytest.raises(Refused, match=r"standards/q1.json is not there; before reading, write there .* each live hop \(1, 2\)"):
        next(worksheet.render(work, "q1"))
    with pytest.raises(Refused, match="'q7'"):
        next(worksheet.render(work, "q7"))


PAIR = {"must_state": "a", "near_miss": "b"}


@pytest.mark.parametrize(("given", "fault"), [
    ({"1": PAIR}, "hop 2 is live and has none"),
    ({"1": PAIR, "2": PAIR, "4": PAIR}, "'4' is no hop of the question, it has 1, 2, 3"),
    ({"01": PAIR, "1": PAIR, "2": PAIR}, "'01' is no hop"),
    ({"1": PAIR, "2": PAIR | {"must_state": " \n"}}, "must_state of hop 2 is blank"),
    ({"1": PAIR, "2": {"must_state": "a"}}, "near_miss of hop 2 is missing"),
    ({"1": PAIR, "2": PAIR | {"near_miss": None}}, "near_miss of hop 2 is null, not text"),
    ({"1": PAIR, "2": PAIR | {"why": "c"}}, "hop 2 has the unknown key 'why'"),
    ({"1": PAIR, "2": PAIR | {"near_miss": "\ud800"}}, "near_miss of hop 2 holds half a surrogate pair"),
    ({"1": PAIR, "2": ["a", "b"]}, "hop 2 is no object"),
    ([PAIR], "it is no object"),
])
def test_standards_that_do_not_fit_the_question_are_refused(tmp_path, given, fault):
    work = small.make(tmp_path, {"q1": {1: {"d1": None}, 2: {"d1": None}, 3: {"d1": None}}}, skipped=[("q1", 3)])
    work.standards("q1").write_text(json.dumps(given))
    with pytest.raises(Refused, match=re.escape(fault)):
        standards.read(work, lines_of.question(work, "q1"))


def test_a_skipped_hop_may_have_a_standard_and_a_word_of_it_counts(tmp_path):
    work = small.make(tmp_path, skipped=[("q1", 2)])
    files.write_json(work.standards("q1"), {"2": PAIR, "1": PAIR})
    found = standards.read(work, lines_of.question(work, "q1"))
    assert list(found) == [1] and found[1] == standards.standard("a", "b")
    others = {standards.standard(*pair).sha256 for pair in (("a", "b"), ("b", "a"), ("a", "b "), ("ab", ""), ("A", "b"))}
    assert len(others) == 5


def test_marks_of_one_text_are_united_and_a_new_text_starts_afresh(tmp_path):
    work = small.make(tmp_path)
    rendered.mark(work, "q1", {"d1": ("t1", {2: "s2"})})
    rendered.mark(work, "q1", {"d1": ("t1", {10: "s10", 1: "s1"}), "d0": ("t0", {1: "s1"})})
    assert rendered.read(work, "q1") == {"d0": {"text_sha256": "t0", "standards": {"1": "s1"}},
                                         "d1": {"text_sha256": "t1", "standards": {"1": "s1", "2": "s2", "10": "s10"}}}
    assert list(rendered.read(work, "q1")["d1"]["standards"]) == ["1", "2", "10"]
    rendered.mark(work, "q1", {"d1": ("t1", {2: "new"})})
    assert rendered.read(work, "q1")["d1"]["standards"] == {"1": "s1", "2": "new", "10": "s10"}
    rendered.mark(work, "q1", {"d1": ("t2", {2: "new"})})
    assert rendered.read(work, "q1")["d1"] == {"text_sha256": "t2", "standards": {"2": "new"}}


@pytest.mark.parametrize("text", ["[]", '{"d1": {"text_sha256": 1, "standards": {}}}', '{"d1": {"text_sha256": "a", "standards": {"x": "b"}}}', "{"])
def test_a_damaged_memory_of_renders_is_refused_with_the_way_out(tmp_path, text):
    work = small.make(tmp_path)
    files.write_text(work.rendered("q1"), text)
    with pytest.raises(Refused, match="delete it and render the question again"):
        rendered.read(work, "q1")
