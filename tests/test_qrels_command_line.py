"""The command line of the qrels line: what `--help` says beside what each step does, and the options that its messages name."""

import argparse
import ast
import hashlib
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import small_qrels

from lib import paths, trace
from lib.qrels import options
from lib.qrels.__main__ import main
from lib.sample import qrels_set, reviewer

# what lies in the work folder, as the help names it
PLACES = ("candidates.jsonl", "overrides.json", "docs/", "standards/", "rendered/", "worksheets/", "rejections/", "verdicts/", "needs_review.jsonl",
          "expand/pending/", "expand/fetch_ids.json", "expand/decisions/", "expand/near/", "expand/exported.json")


def parsers(parser: argparse.ArgumentParser, name: str = "") -> dict[str, argparse.ArgumentParser]:
    """Every step by its words, and the command itself as ''."""
    found = {name: parser}
    for action in parser._actions:
        for word, step in (action.choices if isinstance(action, argparse._SubParsersAction) else {}).items():
            found |= parsers(step, f"{name} {word}".strip())
    return found


def said(step: argparse.ArgumentParser) -> tuple[str, str]:
    return re.fullmatch(r".+?\. Reads (.+)\. Writes (.+)\.", step.description, re.DOTALL).groups()


STEPS = parsers(options.parser())


def test_the_help_of_every_step_says_what_it_reads_and_writes(capsys):
    assert len(STEPS) == 15
    for name, step in STEPS.items():
        with pytest.raises(SystemExit, match="0"):
            main([*name.split(), "--help"])
        printed = " ".join(capsys.readouterr().out.split())
        if name:
            assert all(" ".join(part.split()) in printed for part in said(step)), name


def override(work: Path) -> dict:
    """One that keeps a vote against a document, with a quote that is looked up in its text."""
    (question,) = small_qrels.lines(work / "candidates.jsonl")
    entry = next(entry for entry in question["pool"] if entry["state"] == "bound")
    quote = (work / "docs" / f"{entry['docid']}.txt").read_text().split(".")[1]
    return {"qid": question["qid"], "hop": entry["hop"], "docid": entry["docid"], "verdict": "does not support", "reason": "It misses.", "quote": quote}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("traced")


@pytest.fixture(scope="module")
def traced(folder) -> dict[str, dict[str, set[str]]]:
    """Which places each step read and wrote, over a planted question taken to its release in `folder`."""
    qrels_set.write(folder / "review", questions=1)
    work, planted, found = folder / "work", folder / "review", defaultdict(lambda: {"read": set(), "write": set()})
    work.mkdir()
    (work / "overrides.json").write_text("[]")
    sources = ["--near-dup-dir", str(planted / qrels_set.NEAR), "--exact-dups", str(planted / "duplicate_groups.jsonl")]
    command = ["--doc-cmd", f"{sys.executable} -m lib.sample.documents doc --from {planted}"]

    def run(name: str, *words: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(paths.ROOT)
            patch.setenv(trace.VARIABLE, str(folder / "trace"))
            main([*name.split(), "--work-dir", str(work), *words])
        events = trace.events(folder / "trace")
        (folder / "trace").unlink(missing_ok=True)
        for kind, places in found[name].items():
            inside = [str(Path(path).relative_to(work)) for path in events[kind] if Path(path).is_relative_to(work)]
            places.update(place for place in PLACES for path in inside if path.startswith(place))

    given = ["--workbook", str(planted / "review.xlsm"), "--questions", str(planted / "verified.jsonl")]
    run("candidates", *given)
    run("fetch", "--all", *command)
    (work / "overrides.json").write_text(json.dumps([override(work)]))
    run("candidates", *given)
    reviewer.standards(planted, work)
    for form in ([], ["--html"]):
        run("worksheet", "--qid", "q01", "--max-chars", "0", *form)
    reviewer.rejections(planted, work)
    run("verdicts", "--all")
    run("worksheet", "--qid", "q01")
    run("worksheet", "--qid", "q01", "--html")
    run("build")
    for _ in range(9):
        run("expand scan", *sources)
        run("fetch", "--ids-file", str(work / "expand" / "fetch_ids.json"), *command)
        run("expand render", "--qid", "q01", "--max-chars", "0")
        if reviewer.decisions(planted, work) == ["nothing is pending"]:
            break
        run("expand apply", "--qid", "q01", "--decisions", str(work / "expand" / "to_apply" / "q01.json"))
    run("expand export", *sources)
    for step in ("stats", "near-dup"):
        run(step, str(work / "qrels_expanded.jsonl"), "--outdir", str(folder / "figures"))
    run("release", "--outdir", str(folder / "released"), *sources[:2])
    run("status")
    return found


@pytest.mark.parametrize("name", [name for name in STEPS if name not in ("", "expand", "stats", "near-dup")])
def test_a_step_reads_and_writes_what_its_help_says_and_nothing_else_of_the_work_folder(traced, name):
    reads, writes = ({place for place in PLACES if place in part} for part in said(STEPS[name]))
    if name == "status":  # it names the whole folder
        assert traced[name]["write"] == writes == set() and traced[name]["read"]
    else:
        assert traced[name]["write"] == writes
        assert traced[name]["read"] - writes == reads - writes  # it reads what it adds to


def test_the_hash_of_the_workbook_goes_into_every_output(traced, folder):
    sha256, work = hashlib.sha256((folder / "review" / "review.xlsm").read_bytes()).hexdigest(), folder / "work"
    outputs = [*work.glob("*.jsonl"), *work.glob("verdicts/*.json"), *work.glob("worksheets/*.html"), *folder.glob("figures/*.json"),
               folder / "released" / "manifest.json", folder / "released" / "README.md"]
    assert {path.name for path in outputs} == {"candidates.jsonl", "needs_review.jsonl", "qrels.jsonl", "qrels_expanded.jsonl", "q01.json", "q01.html",
                                               "stats.json", "near-dup.json", "manifest.json", "README.md"}
    assert [path.name for path in outputs if sha256 not in path.read_text() and path.stat().st_size] == []


def test_every_option_that_a_message_names_is_one_that_a_step_takes():
    taken = {option for step in STEPS.values() for option in step._option_string_actions}
    named = set()
    for module in (paths.ROOT / "lib" / "qrels").glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= set(re.findall(r"--[a-z][a-z-]*", node.value))
    assert len(named) > 20 and named <= taken, named - taken


def test_an_option_beats_its_variable_and_an_empty_variable_is_none(monkeypatch):
    words = {"--workbook": "QRELS_WORKBOOK", "--questions": "QRELS_QUESTIONS", "--work-dir": "QRELS_WORK_DIR"}
    for variable in words.values():
        monkeypatch.setenv(variable, "of the variable")
    given = vars(options.parser().parse_args(["candidates", "--questions", "of the option"]))
    assert (given["workbook"], given["questions"], given["work_dir"]) == ("of the variable", "of the option", "of the variable")
    for variable in words.values():
        monkeypatch.setenv(variable, "")
    given = vars(options.parser().parse_args(["candidates"]))
    assert (given["workbook"], given["questions"], given["work_dir"]) == (None, None, "work")
    with pytest.raises(SystemExit, match="lib.qrels: --workbook is not given; give it, or set QRELS_WORKBOOK"):
        main(["candidates"])


def test_the_qrels_go_into_no_file_of_another_step(tmp_path):
    work = small_qrels.make(tmp_path)
    before = work.candidates.read_bytes()
    with pytest.raises(SystemExit, match=r"candidates.jsonl is another step's file; give another name, or leave --out away for .*qrels.jsonl"):
        main(["build", "--work-dir", str(tmp_path), "--out", str(tmp_path / "docs" / ".." / "candidates.jsonl")])
    assert work.candidates.read_bytes() == before


def test_a_file_of_a_step_changed_by_hand_is_told_in_one_sentence(tmp_path):
    work = small_qrels.make(tmp_path)
    work.candidates.write_text(work.candidates.read_text().replace('"pool": [', '"pool": [3, ', 1))
    with pytest.raises(SystemExit, match=r"^lib.qrels: a file under .* is damaged \(TypeError: .*\); run the step that writes it again$"):
        main(["status", "--work-dir", str(tmp_path)])
