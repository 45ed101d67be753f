"""The page of a question: what it holds, what it marks as shown, and that no text can leave its data block."""

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import small_qrels
from hypothesis import example, given
from hypothesis import strategies as st

from lib import files
from lib.qrels import documents, page, pools, rendered, standards
from lib.qrels.refusals import Refused, Unsettled
from lib.qrels.work import Work

TEMPLATE = Path(page.__file__).with_name("page.html").read_text(encoding="utf-8")


def content(work: Work, qid: str) -> dict:
    """What the page holds, read as a browser would: the text of the data block ends at the first end tag."""
    source = work.page(qid).read_bytes().decode("utf-8")
    return json.loads(source.split('<script type="application/json" id="data">')[1].split("</script", 1)[0])


@pytest.fixture
def work(tmp_path) -> Work:
    return small_qrels.make(tmp_path / "work")


def test_the_page_holds_the_question_its_standards_and_each_pending_document_in_full(work):
    text = "x\r\n" * 100_000 + "the end\x0b\x85\u2028"
    small_qrels.cache(work, "d3", text)
    said = page.write(work, "q1")
    held = content(work, "q1")
    assert held["question"] == "What is asked in q1?" and held["workbook_sha256"] == "a" * 64
    assert [(hop["hop"], hop["must_state"]) for hop in held["hops"]] == [(1, "what hop 1 of q1 must state"), (2, "what hop 2 of q1 must state")]
    assert [(one["docid"], one["hops"]) for one in held["documents"]] == [("d1", [2]), ("d2", [1]), ("d3", [1])]
    assert held["documents"][2]["text"] == text
    assert said == [f"{work.page('q1')}: 3 documents in full, 3 pending entries; open it in a browser, and move what it saves to {work.rejections('q1')}"]


def test_what_the_page_holds_counts_as_shown_whole_beside_the_standards_of_the_hops_it_is_asked_for(work):
    page.write(work, "q1")
    bars, marks = standards.read(work, pools.question(work, "q1")), rendered.read(work, "q1")
    assert set(marks) == {"d1", "d2", "d3"}
    shown = {(hop, docid) for hop in bars for docid in marks if rendered.shows(marks, documents.text(work, docid), hop, bars[hop])}
    assert shown == {(2, "d1"), (1, "d2"), (1, "d3")}, "d1 has a vote on hop 1: nobody was asked to read it for that hop"


def test_a_document_without_a_text_stands_on_the_page_with_its_reason_and_is_not_marked(work):
    small_qrels.gap(work, "d3", "the command exited with 3")
    with pytest.raises(Unsettled) as left:
        page.write(work, "q1")
    assert left.value.lines == ["d3: GAP, no text (the command exited with 3): run fetch --qid q1 and write the page again"]
    assert left.value.told[0].startswith(f"{work.page('q1')}: 2 documents in full")
    assert content(work, "q1")["gaps"] == [{"docid": "d3", "reason": "the command exited with 3", "hops": [1]}]
    assert "d3" not in rendered.read(work, "q1")


def test_without_standards_there_is_no_page(work):
    work.standards("q1").unlink()
    with pytest.raises(Refused, match="must state"):
        page.write(work, "q1")
    assert not work.page("q1").exists() and not work.rendered("q1").exists()


def test_a_question_with_nothing_pending_has_a_page_that_says_so(tmp_path):
    work = small_qrels.make(tmp_path, {"q": {1: {"d1": "Supports"}}})
    assert page.write(work, "q")[0].startswith(f"{work.page('q')}: 0 documents in full, 0 pending entries")
    assert content(work, "q")["documents"] == []


def test_a_former_save_is_loaded_under_the_spelling_of_the_pool(work):
    row = {"hop": 1, "docid": "shard_00045_06622", "sentence": "a", "contrast": "b"}
    files.write_json(work.rejections("q2"), [row])
    page.write(work, "q2")
    assert content(work, "q2")["rejections"] == [row | {"docid": "shard_00045_6622"}]


ROW = {"hop": 1, "docid": "d2", "sentence": "a", "contrast": "b"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "is no list of rejections"),
        ([ROW, ROW | {"hop": "1"}], "rejection 2 is"),
        ([ROW | {"hop": True}], "rejection 1 is"),
        ([ROW | {"why": "x"}], "rejection 1 is"),
        ([ROW, ROW], "rejection 2 names hop 1 of d2 a second time"),
        ([7], "rejection 1 is 7, not an object of hop"),
    ],
)
def test_a_rejections_file_that_the_page_could_not_give_back_is_refused(work, rows, message):
    files.write_json(work.rejections("q1"), rows)
    with pytest.raises(Refused, match=message) as refused:
        page.write(work, "q1")
    assert str(refused.value).startswith(str(work.rejections("q1"))) and "mend it, or remove" in str(refused.value)
    assert not work.page("q1").exists() and not work.rendered("q1").exists()


def test_the_same_folder_gives_the_same_bytes_and_a_change_of_anything_shown_another_version(work):
    def version() -> str:
        page.write(work, "q1")
        return content(work, "q1")["version"]

    versions = [version()]
    first = work.page("q1").read_bytes()
    assert version() == versions[0] and work.page("q1").read_bytes() == first
    small_qrels.cache(work, "d2", "Another text.")
    versions.append(version())
    files.write_json(work.standards("q1"), {hop: {"must_state": "m", "near_miss": "n"} for hop in ("1", "2")})
    versions.append(version())
    files.write_json(work.rejections("q1"), [ROW])
    versions.append(version())
    assert len(set(versions)) == 4
    page.write(work, "q2")
    assert content(work, "q2")["version"] not in versions


@given(st.text(st.characters(exclude_categories=[])))
@example("</script><img src=x onerror=alert(1)>")
@example("<!--<script>")
@example("]]>&lt;/script&gt;\u2028\u2029\r\n\r\n")
@example("\ud800 half a pair, \u202e turned, \ufeff and \x00")
def test_a_data_block_gives_its_text_back_and_no_character_of_it_can_end_it(text):
    block = page.data_block({"text": text, text: 1})
    assert json.loads(block.encode("utf-8").decode("utf-8")) == {"text": text, text: 1}
    assert not set(block) & set("<>&\u2028\u2029\r\n")


def test_hostile_ids_and_texts_stay_inside_the_title_and_the_data_block(tmp_path):
    qid, docid = "</title><script>x()</script>{{data}}", '"><img/src=x/onerror=x()>'
    work = small_qrels.make(tmp_path, {qid: {1: {docid: None}}})
    small_qrels.cache(work, docid, "</script><script>x()</script><!--<script>")
    page.write(work, qid)
    source = work.page(qid).read_text(encoding="utf-8")
    assert source.count("<script") == TEMPLATE.count("<script") == 2 and source.count("</script") == 2 and source.count("<!--") == 0
    assert f"<title>{html.escape(qid)} · worksheet</title>" in source
    assert content(work, qid)["documents"][0]["docid"] == docid
    assert content(work, qid)["file"] == work.rejections(qid).name


def test_the_policy_lets_the_pages_own_script_and_style_run_and_loads_nothing(work):
    page.write(work, "q1")
    source = work.page("q1").read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', source)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert {"img-src", "connect-src", "font-src", "frame-src"} & set(rules) == set() and "unsafe" not in policy
    for tag in ("script", "style"):
        [own] = re.findall(f"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.encode("utf-8")).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"


def test_the_template_has_no_address_no_handler_and_no_way_from_text_to_html():
    assert re.findall(r"https?://|\bsrc=|<link|@import|url\(|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|\bon\w+=\"| style=\"", TEMPLATE) == []
    assert TEMPLATE.count("{{data}}") == TEMPLATE.count("{{policy}}") == TEMPLATE.count("{{title}}") == 1


def test_the_command_writes_the_page_and_says_where(work):
    command = [sys.executable, "-m", "lib.qrels", "worksheet", "--qid", "q2", "--html", "--work-dir", str(work.folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{work.page('q2')}: 2 documents in full, 2 pending entries" in done.stdout
    assert [one["docid"] for one in content(work, "q2")["documents"]] == ["d3", "shard_00045_6622"]
