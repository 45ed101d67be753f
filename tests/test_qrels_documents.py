"""Documents come from a real command, whole or as a gap with its reason, and what was fetched stays."""

import hashlib
import json
import shlex
import signal
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import doc_command
import pytest
import small_qrels
from hypothesis import example, given
from hypothesis import strategies as st
from small_corpus import alive, python, wait_for

from lib import paths
from lib.qrels import command, documents, names
from lib.qrels.refusals import Refused, Unsettled
from lib.qrels.work import Work

SCRIPT = Path(doc_command.__file__)


class Asked:
    """A work folder, the command whose log it keeps, and the ids it was started with."""

    def __init__(self, folder: Path):
        self.work, self.log = Work(folder / "work"), folder / "log"
        self.command = shlex.join([sys.executable, "-IS", str(SCRIPT), str(self.log)])

    def fetch(self, *docids: str, **options) -> list[str]:
        return documents.fetch(self.work, docids, self.command, **options)

    def gaps(self, *docids: str, **options) -> list[str]:
        """The lines on the gaps of a fetch that has some."""
        with pytest.raises(Unsettled) as left:
            self.fetch(*docids, **options)
        self.told = left.value.told
        return left.value.lines

    def events(self, event: str = "start") -> list[str]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line.split()[1] for line in lines if line.startswith(event)]

    def pids(self) -> list[int]:
        return [int(line.split()[2]) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def known(self, docid: str) -> dict:
        return json.loads(self.work.text(docid).with_suffix(".json").read_text(encoding="utf-8"))


@pytest.fixture
def asked(tmp_path, monkeypatch) -> Asked:
    monkeypatch.setattr(documents, "_BACKOFF", 0.01)
    return Asked(tmp_path)


def test_a_text_is_kept_byte_for_byte_with_its_hash_and_read_by_either_spelling_of_its_id(asked):
    assert asked.fetch("shard_00045_06622", "shard_00045_6622") == ["documents: 1 asked for, 0 cached before, 1 fetched, 0 gaps"]
    text = doc_command.TEXT.format("shard_00045_6622")  # the spelling of the retrieval command
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert (asked.work.folder / "docs/shard_00045_6622.txt").read_bytes() == text.encode()
    assert asked.known("shard_00045_6622") == {"docid": "shard_00045_6622", "sha256": digest, "chars": len(text)}
    for spelling in ("shard_00045_06622", "shard_00045_6622"):
        assert documents.text(asked.work, spelling) == documents.Document("shard_00045_6622", text, digest)


def test_what_is_cached_is_not_asked_for_again_and_a_gap_is(asked):
    assert asked.gaps("a", "exits-1", tries=1) and asked.told == ["documents: 2 asked for, 0 cached before, 1 fetched, 1 gap"]
    assert asked.gaps("b", "a", "exits-1", tries=1) and asked.told == ["documents: 3 asked for, 1 cached before, 1 fetched, 1 gap"]
    assert sorted(asked.events()) == ["a", "b", "exits-1", "exits-1"]
    assert asked.fetch() == ["documents: 0 asked for, 0 cached before, 0 fetched, 0 gaps"]


@pytest.mark.parametrize("docid, options, reason", [
    ("exits-1", {}, f"the command ended with exit code 3: no such document: {'x' * 182}..."),
    ("dies-1", {}, "the command was ended by SIGSEGV"),
    ("closes-1", {}, "the command ended with exit code 5"),
    ("empty-1", {}, "the answer is empty"),
    ("blank-1", {}, "the answer is blank"),
    ("latin-1", {}, "the answer is no UTF-8 (byte 3)"),
    ("nul-1", {}, "the answer holds a NUL (character 1)"),
    ("floods-1", {}, "the command printed more than 67,108,864 bytes"),
    ("hangs-1", {"timeout": 1.5, "tries": 1}, "the command timed out after 1.5 s"),
    ("leaves-1", {"timeout": 1.5, "tries": 1}, "the command timed out after 1.5 s: it has ended, but what it started still holds its output"),
])
def test_an_answer_that_is_no_whole_text_is_a_gap_with_its_reason(asked, docid, options, reason):
    options = {"tries": 2} | options
    assert asked.gaps(docid, **options) == [f"document {docid} is a gap: {reason}; mend that and run fetch again"]
    assert asked.events() == [docid] * options["tries"]
    assert asked.known(docid) == {"docid": docid, "gap": reason, "tries": options["tries"]}
    assert not asked.work.text(docid).exists()
    with pytest.raises(documents.Gap, match="is missing") as gap:
        documents.text(asked.work, docid)
    assert (gap.value.docid, gap.value.reason) == (docid, reason)
    assert not any(map(alive, asked.pids()))
    if docid == "leaves-1":
        wait_for(lambda: not alive(int(asked.log.with_name("grandchild").read_text())))


@pytest.mark.parametrize("docid", ["fails-twice-1", "hangs-once-1", "chatters-1", "long-1", "frees-1"])
def test_a_command_that_answers_in_the_end_is_heard_whole(asked, docid):
    asked.fetch(docid, timeout=2.0 if docid == "hangs-once-1" else 20.0)
    assert documents.text(asked.work, docid).text.removeprefix("y" * (3 << 20)) == doc_command.TEXT.format(docid)
    assert len(asked.events()) == {"fails-twice-1": 3, "hangs-once-1": 2}.get(docid, 1)


def test_the_last_line_of_stderr_is_shown_with_its_control_characters_escaped_and_the_environment_is_not(asked, monkeypatch):
    monkeypatch.setenv("API_KEY", "secret-of-the-reviewer")
    [line] = asked.gaps("fails-twice-1", tries=2)
    assert line == "document fails-twice-1 is a gap: the command ended with exit code 7: \\x1b[31mnot yet\\x00; mend that and run fetch again"
    assert asked.fetch("fails-twice-1")  # the third call
    assert "secret" not in line + "".join(path.read_text() for path in (asked.work.folder / "docs").iterdir())


def test_an_id_is_one_argument_whatever_it_holds_and_one_that_looks_like_an_option_is_never_asked_for(asked):
    odd = ["$(touch,pwned)", "a;b", "`x`", "a'\"b", "*", "../../up", "\u00e9\u4e2d", "e\u0301", "a" * 3000]
    asked.fetch(*odd)
    assert sorted(asked.events()) == sorted(odd)
    assert [documents.text(asked.work, docid).text for docid in odd] == [doc_command.TEXT.format(docid) for docid in odd]
    [line] = asked.gaps("-rf", "a;b")
    assert "-rf is a gap: its id begins with '-'" in line and "-rf" not in asked.events() and asked.known("-rf")["tries"] == 0
    assert asked.gaps("b" * 200_000)[0].endswith("could not be started (Argument list too long); mend that and run fetch again")


def test_an_id_reaches_the_command_as_utf_8_in_any_locale(asked, monkeypatch):
    for variable, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(variable, value)
    child = python(f"{FETCH}\nprint(sys.getfilesystemencoding())", asked.log.parent, str(asked.work.folder), asked.command, "a")
    assert child.communicate(timeout=30) == ("ascii\n", "")
    child = python(FETCH.replace("sys.argv[3:]", "['\\xe9']"), asked.log.parent, str(asked.work.folder), asked.command)
    assert child.communicate(timeout=30) == ("", "")
    assert documents.text(asked.work, "\u00e9").text == doc_command.TEXT.format("\u00e9")


def test_the_step_prints_its_counts_and_ends_with_1_on_a_gap_and_with_0_when_it_is_mended(asked):
    folder = asked.log.parent
    small_qrels.make(asked.work.folder, {"q1": {1: {"fails-twice-1": None, "d2": None}}})
    for docid in ("fails-twice-1", "d2"):
        asked.work.text(docid).unlink()
    line = [sys.executable, "-m", "lib.qrels", "fetch", "--work-dir", "work", "--tries", "2"]
    environment = {"PYTHONPATH": str(paths.ROOT), "QRELS_DOC_CMD": asked.command}

    def run(*more: str) -> subprocess.CompletedProcess:
        return subprocess.run([*line, *more], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)

    done = run("--all")
    assert (done.returncode, done.stdout) == (1, "documents: 2 asked for, 0 cached before, 1 fetched, 1 gap\n")
    assert done.stderr.splitlines()[1:] == [
        "document fails-twice-1 is a gap: the command ended with exit code 7: \\x1b[31mnot yet\\x00; mend that and run fetch again"
    ]
    done = run("--qid", "q1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "documents: 2 asked for, 1 cached before, 1 fetched, 0 gaps\n", "")
    (folder / "ids.json").write_text('["d2", "d7"]')
    assert run("--ids-file", "ids.json").stdout == "documents: 2 asked for, 1 cached before, 1 fetched, 0 gaps\n"


@pytest.mark.parametrize("line, told", [
    ("no-such-program doc", "cannot start 'no-such-program' (No such file or directory)"),
    ("/", "cannot start '/' (Permission denied)"),
    ("", "names no program"), ("  ", "names no program"), ("python 'cm.py", "cannot be split into words (No closing quotation)"),
])
def test_a_command_that_cannot_run_at_all_stops_the_step_and_makes_no_gap(asked, line, told):
    with pytest.raises(Refused) as refused:
        documents.fetch(asked.work, ["a", "b", "c"], line)
    assert told in str(refused.value) and "\n" not in str(refused.value) and not isinstance(refused.value, Unsettled)
    assert not list(asked.work.folder.glob("docs/[!.]*"))


def test_a_command_that_has_never_answered_is_not_asked_for_all_documents(asked):
    docids = [f"exits-{number:03}" for number in range(60)]
    lines = asked.gaps(*docids, tries=1)
    assert asked.told == ["documents: 60 asked for, 0 cached before, 0 fetched, 20 gaps"]
    assert lines[0].startswith("documents exits-000, exits-001, ") and lines[0].endswith("; mend that and run fetch again")
    assert lines[1].startswith("stopped before the other 40: the command answered for none of the first 20; mend it and run fetch again")
    assert sorted(set(asked.events())) == docids[:20]
    asked.fetch("d1")
    assert len(asked.gaps(*docids, tries=1)) == 1 and asked.told == ["documents: 60 asked for, 0 cached before, 0 fetched, 60 gaps"]


def test_gaps_are_told_by_their_reason_and_a_long_list_is_counted():
    gaps = {f"d{number:02}": "the answer is empty" for number in range(22)} | {"e": "no"}
    assert documents._by_reason(gaps) == [
        f"documents {', '.join(list(gaps)[:20])} and 2 more are gaps: the answer is empty; mend that and run fetch again",
        "document e is a gap: no; mend that and run fetch again",
    ]


def test_the_command_is_no_shell_line_and_its_words_may_be_quoted(tmp_path):
    assert command.words("python3 'my cm.py' doc \"a b\" $HOME | tee") == ["python3", "my cm.py", "doc", "a b", "$HOME", "|", "tee"]


def test_as_many_commands_run_at_once_as_there_are_workers_and_never_more(asked):
    asked.fetch("meets-1", "meets-2", "meets-3", *"abcdef", workers=3, tries=1)
    running, most = set(), 0
    for line in asked.log.read_text().splitlines():
        event, docid, _ = line.split()
        (running.add if event == "start" else running.discard)(docid)
        most = max(most, len(running))
    assert (most, running) == (3, set())


def test_one_worker_runs_one_command_after_the_other(asked):
    asked.fetch(*"abc", workers=1)
    assert [line.split()[0] for line in asked.log.read_text().splitlines()] == ["start", "end"] * 3


FETCH = """
import signal
import sys
from pathlib import Path
from lib.qrels import documents, work
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests are a background job, it comes in ignored
documents.fetch(work.Work(Path(sys.argv[1])), sys.argv[3:], sys.argv[2], workers=2, tries=1)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_fetch_that_is_ended_half_way_leaves_no_command_behind_and_resumes_with_the_rest(asked, number):
    docids = ["a", "b", "c", "waits-1", "waits-2", "waits-3"]
    first = python(FETCH, asked.log.parent, str(asked.work.folder), asked.command, *docids)
    wait_for(lambda: {"waits-1", "waits-2"} <= set(asked.events()))
    first.send_signal(number)
    _, told = first.communicate(timeout=20)
    assert first.returncode == -number, told
    wait_for(lambda: not any(map(alive, asked.pids())), 10)
    assert sorted(docid for docid in docids if documents._cached(asked.work, docid)) == ["a", "b", "c"]
    (asked.log.parent / "go").touch()
    assert asked.fetch(*docids) == ["documents: 6 asked for, 3 cached before, 3 fetched, 0 gaps"]
    assert asked.events().count("a") == 1 and asked.events().count("waits-1") == 2


@pytest.mark.parametrize("damage", ["text alone", "record alone", "other text", "half a record", "another's record", "no object", "no hash"])
def test_nothing_half_written_counts_and_the_next_fetch_mends_it(asked, damage):
    asked.fetch("a", "b")
    target, known = asked.work.text("a"), asked.work.text("a").with_suffix(".json")
    match damage:
        case "text alone":
            known.unlink()
        case "record alone":
            target.unlink()
        case "other text":
            target.write_text(target.read_text()[:-1])
        case "half a record":
            known.write_text(known.read_text()[:20])
        case "another's record":
            known.write_text(asked.work.text("b").with_suffix(".json").read_text())
        case "no object":
            known.write_text("[]")
        case "no hash":
            known.write_text('{"docid": "a"}')
    leftover = asked.work.folder / "docs/.a.txt.tmp-4711"
    leftover.write_text("half")
    with pytest.raises(documents.Gap, match=r"^the text of document a is missing \(.*\); run python -m lib.qrels fetch$"):
        documents.text(asked.work, "a")
    assert asked.fetch("a", "b") == ["documents: 2 asked for, 1 cached before, 1 fetched, 0 gaps"]
    assert documents.text(asked.work, "a").text == doc_command.TEXT.format("a") and not leftover.exists()


def test_a_disk_that_is_full_stops_the_fetch_and_is_no_gap(asked, monkeypatch):
    asked.work.text("a").mkdir(parents=True)  # a folder in the way of the file
    with pytest.raises(OSError, match="was not written"):
        asked.fetch("a", "b", workers=1)
    assert not asked.work.text("a").with_suffix(".json").exists()


def test_the_stop_of_a_fetch_kills_a_command_in_its_middle(asked):
    stop, ended = threading.Event(), []
    with pytest.raises(command.Stopped):
        threading.Thread(target=lambda: (wait_for(asked.events), stop.set())).start()
        ended.append(command.answer(command.words(asked.command), "hangs-1", 60, stop))
    assert ended == []
    wait_for(lambda: not any(map(alive, asked.pids())))


def test_a_second_fetch_in_the_same_folder_is_refused_while_the_first_runs(asked):
    first = python(FETCH, asked.log.parent, str(asked.work.folder), asked.command, "waits-1")
    wait_for(lambda: asked.events())
    with pytest.raises(RuntimeError, match=f"is in use by process {first.pid}"):
        asked.fetch("a")
    (asked.log.parent / "go").touch()
    assert first.communicate(timeout=20) == ("", "")


def test_a_worker_that_has_ended_takes_no_command_with_it(asked):
    # the kernel kills a child when the thread that started it ends: each thread stays until its child has ended
    (asked.log.parent / "go").touch()
    assert asked.fetch(*(f"waits-{number}" for number in range(8)), workers=8, tries=1)[0].endswith("8 fetched, 0 gaps")


@pytest.mark.parametrize("sentence, text, stands", [
    ("a b", "x a\n\t b y", True), (" a\u00a0b ", "a b", True), ("a b", "ab", False), ("A b", "a b", False), ("", "a", False), (" \n", "a  b", False),
    ("a b.", "a b", False), ("\u00e9", "e\u0301", False), ("b\r\nc", "a b c", True),
])
def test_a_sentence_stands_in_a_text_when_only_white_space_differs(sentence, text, stands):
    assert documents.occurs(sentence, text) is stands


def test_the_documents_of_all_pools_of_one_and_of_a_file(tmp_path):
    work = small_qrels.make(tmp_path)
    assert documents.ids(work) == ["d1", "d2", "d3", "d4", "shard_00045_6622"]
    assert documents.ids(work, qid="q2") == ["d3", "shard_00045_6622"]
    listed = tmp_path / "ids.json"
    listed.write_text('["shard_00045_06622", "d9", "shard_00045_6622", "007"]')
    assert documents.ids(work, ids_file=listed) == ["007", "d9", "shard_00045_6622"]
    with pytest.raises(Refused, match=r"has no question 'q3'; it holds 2: q1, q2$"):
        documents.ids(work, qid="q3")
    with pytest.raises(Refused, match=r"candidates.jsonl is not there; run python -m lib.qrels candidates$"):
        documents.ids(Work(tmp_path / "none"))


@pytest.mark.parametrize("text, told", [
    ("[7]", "id 1, 7, is a int, not text"), ('["d 1"]', r"id 1, 'd 1', holds the character U\+0020"), ('["a", ""]', "id 2, '', is empty"),
    ('{"a": 1}', "holds a dict"), ("d1\nd2\n", "is no strict JSON"), ('["a"', "is no strict JSON"),
])
def test_a_list_of_ids_that_is_none_is_refused_with_the_place(tmp_path, text, told):
    (tmp_path / "ids.json").write_text(text)
    with pytest.raises(Refused, match=rf"ids.json:? {told}.*; give a JSON list"):
        documents.ids(Work(tmp_path), ids_file=tmp_path / "ids.json")


LEGAL = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs")), min_size=1, max_size=120)
TWINS = [
    ("a", "A"), ("shard_1_2", "Shard_1_2"), ("\u00e9", "e\u0301"), ("a.", "a"), ("a..", "a."), ("a/b", "a-b"), ("..", "."), ("con", "CON"),
    ("x" * 300, "x" * 301), ("\u212b", "\u00c5"), ("stra\u00dfe", "strasse"), ("a~0", "a"), ("\u0131", "i"),
]


@given(st.tuples(LEGAL, LEGAL))
def test_two_ids_have_two_file_names_on_any_file_system(pair):
    first, second = map(names.safe, pair)
    for name in (first, second):
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-~") and name[0] not in "-~" and len(name) <= 80
        assert name not in ("con", "prn", "aux", "nul", *(f"{device}{number}" for device in ("com", "lpt") for number in range(10)))
    folded = [unicodedata.normalize("NFC", name).casefold() for name in (first, second)]
    assert (folded[0] == folded[1]) == (pair[0] == pair[1])


for twins in TWINS:
    test_two_ids_have_two_file_names_on_any_file_system = example(twins)(test_two_ids_have_two_file_names_on_any_file_system)


@pytest.mark.parametrize("an_id", ["../up", "/etc/passwd", "C:\\x", "nul", "com1", "a\u202eb", ".", "..", "-", "~", "\u4e2d", "a:b", "x" * 300])
def test_a_file_lies_in_its_folder_whatever_the_id(tmp_path, an_id):
    work = Work(tmp_path)
    small_qrels.cache(work, an_id, "text")
    assert [path.parent for path in tmp_path.rglob("*.txt")] == [tmp_path / "docs"]
    assert documents.text(work, an_id).text == "text"
    assert names.safe("shard_00045_6622") == "shard_00045_6622" and names.safe("78") == "78"
