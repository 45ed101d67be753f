"""The page of a question in a real headless Chromium: keys, search, drafts, what it saves, and what it never lets happen.

`make test-browser` runs these. Without a browser they are skipped with the reason; QRELBOOK_BROWSER=required makes that a failure.
"""

import json
import os
import random
import re
import shutil
import socket
import sys

import pytest
import small_qrels

from lib import files
from lib.qrels import documents, page, verdicts
from lib.qrels import work as places
from lib.qrels.refusals import Unsettled

pytestmark = pytest.mark.browser
ARGUMENTS = (
    "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-quic".split()
)
LONG = "The gnomon of an odd number is a layer.\nIt wraps the square\nbefore it. So the ODD\r\nnumbers add up.\r\n\r\n" * 200


def found() -> str:
    """The system's Chromium; skips, or fails where one is required, with the reason why there is none."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    reason = "no chromium on the PATH; install Debian's package chromium" if path is None else None
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError as error:
        reason = reason or f"playwright cannot be imported ({error}); run make test-browser"
    if reason:
        (pytest.fail if os.environ.get("QRELBOOK_BROWSER") == "required" else pytest.skip)(reason)
    return path


@pytest.fixture(scope="module")
def chromium():
    path = found()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """A function that opens a question's page; every error of a page and every request beside the page's own is a failure."""
    context = chromium.new_context(viewport={"width": 1400, "height": 850}, accept_downloads=True)
    errors, requests = [], []

    def open_page(work, qid, **options):
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("dialog", lambda dialog: tab.dialogs.append(dialog.type) or dialog.accept())
        tab.dialogs, tab.downloads, tab.requests = [], [], requests
        tab.on("download", lambda download: tab.downloads.append(download.suggested_filename))
        tab.goto(work.page(qid).as_uri())
        return tab

    yield open_page
    context.close()
    assert (errors, [url for url in requests if not url.startswith(("file:", "blob:"))]) == ([], [])


@pytest.fixture
def work(tmp_path):
    folder = small_qrels.make(tmp_path / "work", texts={"d3": LONG})
    for qid in small_qrels.POOLS:
        page.write(folder, qid)
    return folder


def press(tab, *keys: str) -> None:
    for key in keys:
        tab.keyboard.press(key)


def saved(tab, work, qid: str) -> list[dict]:
    """What Ctrl+S downloads, put where the page says; its bytes are those that Python would write."""
    with tab.expect_download() as download:
        press(tab, "Control+s")
    assert download.value.suggested_filename == work.rejections(qid).name
    work.rejections(qid).parent.mkdir(exist_ok=True)
    download.value.save_as(work.rejections(qid))
    data = work.rejections(qid).read_bytes()
    files.write_json(work.rejections(qid), json.loads(data))
    assert work.rejections(qid).read_bytes() == data
    return json.loads(data)


def text(tab, name: str) -> str:
    return tab.locator(f"#{name}").text_content()


def in_view(tab, span: str) -> bool:
    """Whether a span of the text stands in the pane, once the page has come to rest."""
    tab.evaluate("async () => { for (let i = 0; i < 6; i++) await new Promise(requestAnimationFrame); }")
    box, pane = tab.evaluate(f"range(...{span}).getBoundingClientRect().toJSON()"), tab.locator("#text").bounding_box()
    return pane["y"] <= box["top"] and box["bottom"] <= pane["y"] + pane["height"]


def test_a_document_is_rejected_by_keys_alone_and_the_verdicts_record_it(opened, work):
    tab = opened(work, "q1")
    press(tab, "j", "/")
    tab.keyboard.type("first d2 ODD")
    press(tab, "Enter", "Escape", "l", "1")
    tab.keyboard.type("It would have to hold for every n.")
    press(tab, "Escape", "d")
    rows = [{"hop": 1, "docid": "d2", "sentence": small_qrels.sentence("d2"), "contrast": "It would have to hold for every n."}]
    assert saved(tab, work, "q1") == rows
    assert "q1.json went to this browser's downloads with 1 rejection." in text(tab, "said")
    assert "2 documents are still open here" in text(tab, "said")
    verdicts.record(work, "q1")
    [row] = [row for row in places.read_json(work.verdicts("q1"), "")["verdicts"] if row["docid"] == "d2"]
    assert (row["accepted"], row["by"], row["sentence"], row["contrast"]) == (False, "rejection", rows[0]["sentence"], rows[0]["contrast"])


def test_every_document_stands_in_full_as_it_was_fetched(opened, work):
    tab = opened(work, "q1")
    for docid in ("d1", "d2", "d3"):
        assert text(tab, "docid") == docid
        assert tab.evaluate("pane.textContent") == documents.text(work, docid).text
        press(tab, "j")


@pytest.mark.parametrize("query", ["odd numbers", "SQUARE  before", "is a", ".", "gnomon (", "ſo the"])
def test_search_finds_what_python_finds_in_every_document(opened, work, query):
    tab = opened(work, "q1")
    pattern = re.compile(r"\s+".join(map(re.escape, query.split())), re.IGNORECASE)
    expected = {docid: len(pattern.findall(documents.text(work, docid).text)) for docid in ("d1", "d2", "d3")}
    press(tab, "j", "j")
    tab.locator("#query").fill(query)
    press(tab, "Enter")
    assert tab.evaluate("Object.fromEntries(data.documents.map(one => [one.docid, hits.get(one.docid).length]))") == expected
    here, near = expected["d3"], min(expected["d3"], 2000)
    assert tab.evaluate("CSS.highlights.get('hit').size") == near
    if here:
        assert text(tab, "count") == f"1 of {here:,} here"
        assert pattern.fullmatch(tab.evaluate("[...CSS.highlights.get('now')][0].toString()"))
    listed = [one.inner_text() for one in tab.locator("#documents button").all()]
    assert [f"{count:,} hit" in line for count, line in zip(expected.values(), listed, strict=True)] == [count > 0 for count in expected.values()]


def test_next_and_previous_go_round_over_all_documents_and_bring_the_hit_into_view(opened, work):
    tab = opened(work, "q1")
    tab.locator("#query").fill("a square.")
    press(tab, "Enter", "Escape")
    seen = []
    for key in "nnpp":
        press(tab, key)
        seen.append(text(tab, "docid"))
    assert seen == ["d2", "d1", "d2", "d1"]
    tab.locator("#query").fill("gnomon")
    press(tab, "Enter", "Escape", "p", "p")
    assert (text(tab, "docid"), text(tab, "count")) == ("d3", "199 of 200 here")
    assert in_view(tab, "hits.get('d3')[198]")


def test_white_space_is_what_python_takes_for_it(opened, work):
    tab = opened(work, "q1")
    script = "last => Array.from({length: last + 1}, (_, code) => code).filter(code => fold('a' + String.fromCodePoint(code) + 'b') === 'a b')"
    assert tab.evaluate(script, sys.maxunicode) == [code for code in range(sys.maxunicode + 1) if chr(code).isspace()]


SPACES = ["\r\n", "\n", " ", "\t ", "\xa0", "\u2028", "\x1f", "\ufeff", "\x85"]


def test_whatever_is_selected_occurs_for_python_as_for_the_page(opened, tmp_path):
    rng = random.Random(7)
    words = ["one", "אחת", "𝒳²", "e\u0301", "\u202eturned\u202c", "</b>", "Ende.", "straße", "\ufeff"]
    body = "".join(rng.choice(words) + rng.choice(SPACES) for _ in range(4000))
    work = small_qrels.make(tmp_path / "work", {"q": {1: {"d": None}}}, {"d": body})
    page.write(work, "q")
    tab = opened(work, "q")
    length = tab.evaluate("current.text.length")
    for _ in range(60):
        start = rng.randrange(length)
        span = [start, min(length, start + rng.choice([1, 5, 40, 30_000]))]
        sentence, verdict = tab.evaluate(
            "async span => { pick(span); await new Promise(requestAnimationFrame); take(1);"
            " return [$('hop-1-sentence').value, $('hop-1-check').textContent]; }", span,
        )
        assert documents.occurs(sentence, body) == verdict.startswith("Stands") == bool(sentence.split()), (span, sentence)
    for typed in ("one one one one one", "ONE", " one ", "\n", body[100:200], body[100:200].replace(" ", "  ")):
        tab.locator("#hop-1-sentence").fill(typed)
        assert text(tab, "hop-1-check").startswith("Stands") == documents.occurs(typed, body), typed


def test_the_mouse_selects_across_line_ends_of_any_kind(opened, tmp_path):
    body = "First line\r\nof one paragraph.\r\n\r\nAnother one."
    work = small_qrels.make(tmp_path / "work", {"q": {1: {"d": None}}}, {"d": body})
    page.write(work, "q")
    tab = opened(work, "q")
    boxes = [tab.evaluate("span => range(...span).getBoundingClientRect().toJSON()", span) for span in ([6, 7], [27, 28])]
    tab.mouse.move(boxes[0]["left"] + 1, boxes[0]["top"] + 8)
    tab.mouse.down()
    tab.mouse.move(boxes[1]["right"] + 1, boxes[1]["top"] + 8, steps=4)
    tab.mouse.up()
    tab.locator("#hop-1-reject").check()
    tab.locator("#hop-1-take").click()
    assert tab.locator("#hop-1-sentence").input_value() == "line of one paragraph"
    assert text(tab, "hop-1-check") == "Stands in the text ✓"


def test_sentences_are_walked_and_widened_by_keys(opened, work):
    tab = opened(work, "q1")
    press(tab, "j", "j", "l")
    got = [tab.evaluate("fold(current.text.slice(...picked))")]
    for key in ("l", "l", "h", "Shift+L", "Shift+H"):
        press(tab, key)
        got.append(tab.evaluate("fold(current.text.slice(...picked))"))
    one, two, three = "The gnomon of an odd number is a layer.", "It wraps the square before it.", "So the ODD numbers add up."
    assert got == [one, two, three, two, f"{two} {three}", two]


def test_an_incomplete_rejection_is_not_saved_and_the_page_says_why(opened, work):
    tab = opened(work, "q1")
    refused = "Not saved: the rejection of d2 for hop 1"
    press(tab, "j", "1", "Escape", "Control+s")
    assert text(tab, "refusal") == f"{refused} needs the sentence that decides it. Complete it, or accept."
    assert tab.locator("#refusal").is_visible() and tab.locator("#hop-1-sentence").evaluate("node => node === document.activeElement")
    tab.keyboard.type("this is not in the text")
    assert text(tab, "hop-1-check") == "Does not stand in the text"
    press(tab, "Control+s")
    assert "gives a sentence that does not stand in the text" in text(tab, "refusal")
    tab.locator("#hop-1-sentence").fill("A page\n about   numbers.")
    press(tab, "Escape", "k", "Control+s")
    assert text(tab, "refusal") == f"{refused} needs a contrast case. Complete it, or accept."
    assert text(tab, "docid") == "d2", "the page goes to the rejection that is incomplete"
    assert tab.downloads == []
    tab.keyboard.type("Numbers as such.")
    assert text(tab, "refusal") == ""
    assert len(saved(tab, work, "q1")) == 1


def test_a_rejection_taken_back_is_not_saved_and_not_forgotten(opened, work):
    tab = opened(work, "q1")
    press(tab, "j", "1")
    tab.keyboard.type("half a thought")
    press(tab, "Escape", "1")
    assert saved(tab, work, "q1") == []
    press(tab, "Escape", "1")
    assert tab.locator("#hop-1-sentence").input_value() == "half a thought"


def test_a_draft_survives_a_reload_and_leaving_it_unsaved_warns(opened, work):
    tab = opened(work, "q1")
    press(tab, "d", "1")
    tab.keyboard.type("A page about")
    tab.reload()
    assert tab.dialogs == ["beforeunload"]
    assert text(tab, "docid") == "d3" and text(tab, "documents-title") == "3 documents, 1 open"
    press(tab, "k")
    assert tab.locator("#hop-1-sentence").input_value() == "A page about"
    tab.locator("#hop-1-contrast").fill("c")
    saved(tab, work, "q1")
    tab.reload()
    assert tab.dialogs == ["beforeunload"], "what is saved is left without a word"
    assert "1 rejection · nothing unsaved" in text(tab, "progress")


def test_a_draft_belongs_to_one_version_of_one_question(opened, work):
    tab = opened(work, "q1")
    press(tab, "j", "1")
    tab.keyboard.type("A page about")
    assert "0 rejections" in text(opened(work, "q2"), "progress")
    small_qrels.cache(work, "d2", "The page was changed.")
    page.write(work, "q1")
    newer = opened(work, "q1")
    assert "0 rejections" in text(newer, "progress")
    assert "Unsaved draft of another version" in text(newer, "earlier") and "A page about" in text(newer, "earlier")
    newer.get_by_role("button", name="Forget it").click()
    newer.reload()
    assert text(newer, "earlier") == ""


def test_a_second_tab_of_the_page_is_told_of_a_change(opened, work):
    first, second = opened(work, "q1"), opened(work, "q1")
    press(second, "d")
    first.get_by_text("This page changed in another tab").wait_for()


def test_a_former_save_is_loaded_and_what_is_not_shown_here_is_kept_or_removed(opened, work):
    rows = [{"hop": 1, "docid": docid, "sentence": "A page about numbers.", "contrast": "c"} for docid in ("d1", "d2", "stranger")]
    files.write_json(work.rejections("q1"), rows)
    page.write(work, "q1")
    tab = opened(work, "q1")
    assert "3 rejections · nothing unsaved" in text(tab, "progress")
    assert saved(tab, work, "q1") == rows
    tab.locator("#others li", has_text="stranger").get_by_role("button").click()
    assert saved(tab, work, "q1") == rows[:2], "the vote on d1 keeps it, and verdicts reports the rejection"


HOSTILE = [
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>",
    "<!--<script>window.hit = 1",
    "<svg onload=window.hit=1><iframe srcdoc='<script>parent.hit=1</script>'>",
    "{{data}} ${window.hit = 1} `+(window.hit=1)+` \\u003cimg src=x onerror=window.hit=1>",
    "\u202e</p><img src=http://127.0.0.1:9/x onerror=window.hit=1>\u2066 \u2028\u2029 \ufffe\uffff\x01\x7f",
]


def test_a_hostile_text_is_text_wherever_it_stands(opened, tmp_path):
    qid, evil = "q</title><script>window.hit=1</script>", "<img/src=x/onerror=window.hit=1>"
    texts = {f"{evil}{i}": one for i, one in enumerate(HOSTILE)}
    work = small_qrels.make(tmp_path / "work", {qid: {1: dict.fromkeys([*texts, f"{evil}gap"])}}, texts)
    [row] = small_qrels.lines(work.candidates)
    row["question"] = row["hops"][0]["text"] = row["hops"][0]["note"] = HOSTILE[0]
    places.write_lines(work.candidates, [row])
    files.write_json(work.standards(qid), {"1": {"must_state": HOSTILE[0], "near_miss": HOSTILE[1]}})
    small_qrels.gap(work, f"{evil}gap", HOSTILE[0])
    files.write_json(work.rejections(qid), [{"hop": 1, "docid": docid, "sentence": HOSTILE[0], "contrast": HOSTILE[2]} for docid in (*texts, evil)])
    with pytest.raises(Unsettled):
        page.write(work, qid)
    tab = opened(work, qid)
    assert tab.title() == f"{qid} · worksheet"
    tab.locator("#query").fill("<script>window.hit")
    press(tab, "Enter", "Escape", "n", "Control+s", "Escape")
    for docid in sorted(texts):
        tab.locator("#documents button", has_text=docid).click()
        assert tab.evaluate("pane.textContent") == texts[docid]
    tab.wait_for_timeout(200)
    assert tab.evaluate("window.hit") is None
    assert tab.locator("img, iframe, svg").count() == 0
    assert "invisible direction marks" in text(tab, "facts")
    assert tab.downloads == [], "sentences that do not stand in the texts are not saved"


def test_the_policy_stops_what_a_text_could_try(opened, work):
    """Run as if a text had got through: nothing is fetched, no markup is parsed, no inline script runs."""
    tab = opened(work, "q1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        tab.evaluate("address => { const one = document.createElement('img'); one.src = address; document.body.append(one); }", address)
        assert tab.evaluate("address => fetch(address).then(() => 'fetched', () => 'refused')", address) == "refused"
        assert tab.evaluate("() => { try { document.body.innerHTML = '<b>x</b>'; return 'parsed'; } catch { return 'refused'; } }") == "refused"
        handler = "() => { const one = document.createElement('button'); try { one.setAttribute('onclick', 'window.hit = 1'); one.click(); } catch {} }"
        tab.evaluate(handler)
        server.settimeout(0.5)
        with pytest.raises(TimeoutError):
            server.accept()
        assert tab.requests == [work.page("q1").as_uri(), address], "the image was asked for, and the policy stopped it"
        tab.requests.remove(address)
    assert tab.evaluate("window.hit") is None


def test_a_megabyte_is_shown_whole_and_searched_to_its_end(opened, tmp_path):
    one_line = "𝒳 " + "word " * 110_000
    many_lines = "A line of a long page.\n" * 24_000 + "The needle."
    work = small_qrels.make(tmp_path / "work", {"q": {1: {"a": None, "b": None}}}, {"a": one_line, "b": many_lines})
    page.write(work, "q")
    tab = opened(work, "q")
    assert tab.evaluate("pane.textContent") == one_line
    tab.locator("#query").fill("needle")
    press(tab, "Enter", "Enter", "Escape", "l")
    assert text(tab, "docid") == "b" and tab.evaluate("pane.textContent") == many_lines
    assert tab.evaluate("fold(current.text.slice(...picked))").endswith("The needle.")
    tab.locator("#query").fill("line")
    press(tab, "Enter")
    assert text(tab, "count") == "1 of 24,000 here" and in_view(tab, "hits.get('b')[0]")
    for at in (20_000, 3_000, 12_345, 23_999, 1):
        tab.evaluate("go", at)
        assert in_view(tab, f"hits.get('b')[{at}]"), at


CONTRAST = """() => {
  const linear = value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
  const luminance = colour => colour.map(value => linear(value / 255)).reduce((sum, value, i) => sum + value * [.2126, .7152, .0722][i], 0);
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const behind = node => {
    const found = parse(getComputedStyle(node).backgroundColor);
    return found.length < 4 || found[3] === 1 ? found.slice(0, 3) : behind(node.parentElement);
  };
  const low = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || node.closest('script, noscript') || !node.checkVisibility()) continue;
    const [a, b] = [luminance(parse(getComputedStyle(node).color).slice(0, 3)), luminance(behind(node))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    seen++;
    if (ratio < 4.5) low.push([node.textContent.slice(0, 40), ratio]);
  }
  return [seen, low];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1000, 1400])
def test_the_page_reads_well_in_either_scheme_and_width(opened, work, scheme, width):
    small_qrels.gap(work, "d3")
    with pytest.raises(Unsettled):
        page.write(work, "q1")
    tab = opened(work, "q1")
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 700})
    tab.locator("#query").fill("numbers")
    press(tab, "Enter", "Escape", "j", "1", "Control+s")
    seen, low = tab.evaluate(CONTRAST)
    assert seen > 30 and low == []
    wide = """() => [document.documentElement, ...document.querySelectorAll('#list, #judge, #text, #bar, header')]
      .filter(one => one.scrollWidth > one.clientWidth).map(one => one.id || one.tagName)"""
    assert tab.evaluate(wide) == []
    assert tab.locator("#text").bounding_box()["width"] > 0.45 * width


def test_every_control_has_a_name_and_shows_its_focus(opened, work):
    tab = opened(work, "q1")
    press(tab, "j", "1", "Escape")
    names = tab.evaluate("""() => [...document.querySelectorAll('button, input, textarea')].filter(one => one.checkVisibility()).map(one =>
      one.getAttribute('aria-label') || [...one.labels ?? []].map(label => label.textContent.trim()).join(' ') || one.textContent.trim())""")
    assert len(names) > 12 and all(names)
    ids = tab.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    reached = set()
    for _ in range(30):
        press(tab, "Tab")
        name, outline, inside = tab.evaluate("""() => { const one = document.activeElement;
          return [one.id || one.textContent, getComputedStyle(one).outlineStyle, one !== document.body]; }""")
        assert outline == "solid" or not inside, name
        reached.add(name)
    assert set("save help-open query next previous done text hop-1-reject hop-1-sentence hop-1-take hop-1-contrast".split()) <= reached


def test_the_keys_are_listed_in_the_page_and_each_listed_key_acts(opened, work):
    tab = opened(work, "q1")
    press(tab, "?")
    assert tab.get_by_role("dialog", name="Keys").is_visible()
    listed = set(tab.locator("#help kbd").all_text_contents())
    assert set(tab.evaluate("Object.keys(KEYS)")) | {"1", "9", "Esc", "Enter", "Shift", "Ctrl", "S"} == listed
    press(tab, "d")
    assert text(tab, "documents-title") == "3 documents, 3 open", "a key does nothing behind the list"
    press(tab, "Escape")
    assert not tab.locator("#help").is_visible()
