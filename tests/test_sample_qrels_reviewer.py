"""The planted reader: what it writes equals the truth of how the pages were made, found in their texts alone."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections import defaultdict

import pytest

from lib import files, ids
from lib.sample import qrels_set, reviewer


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def folded(each):
    return " ".join(each.split())


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qrels_set_of_12")
    qrels_set.write(folder, questions=12)
    return folder


@pytest.fixture(scope="module")
def texts(planted):
    return {row["docid"]: row["text"] for row in lines(planted / "documents.jsonl")}


@pytest.fixture(scope="module")
def truth(planted):
    return {row["qid"]: row for row in lines(planted / "truth.jsonl")}


@pytest.fixture
def work(tmp_path, planted, texts, truth):
    """A work folder as the steps leave it: all texts cached, every pool entry pending, every copy pending after a scan.

    Hop 2 of q02 is skipped.
    """
    for docid, each in texts.items():
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / f"{docid}.txt").write_bytes(each.encode())
    rows = []
    for qid, known in truth.items():
        live = {hop["hop"]: (qid, hop["hop"]) != ("q02", 2) for hop in known["hops"]}
        listed = [(hop, row["docid"]) for row in known["documents"] for hop in row["pool"]]
        pool = [{"hop": hop, "docid": docid, "state": "pending" if live[hop] else "skipped"} for hop, docid in listed]
        rows.append({"qid": qid, "hops": [{"hop": hop, "live": is_live} for hop, is_live in live.items()], "pool": pool})
        copies = [row for row in known["documents"] if not row["pool"]]
        pending = [{"docid": row["docid"], "hops": [1], "parent": row["parent"], "jaccard": 0.8} for row in copies]
        files.write_json(tmp_path / "expand" / "pending" / f"{qid}.json", {"qid": qid, "pending": pending})
    files.write_text(tmp_path / "candidates.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def run(*words):
    return subprocess.run([sys.executable, "-m", "lib.sample.reviewer", *map(str, words)], capture_output=True, text=True, timeout=60)


def test_it_writes_a_standard_for_each_live_hop_and_no_other(planted, work, truth):
    assert run("standards", planted, work).returncode == 0
    assert sorted(path.stem for path in (work / "standards").iterdir()) == sorted(truth)
    for qid, known in truth.items():
        bars = json.loads((work / "standards" / f"{qid}.json").read_text())
        live = [hop for hop in known["hops"] if (qid, hop["hop"]) != ("q02", 2)]
        assert bars == {str(hop["hop"]): {"must_state": hop["must_state"], "near_miss": hop["near_miss"]} for hop in live}
        assert all(value.strip() for bar in bars.values() for value in bar.values())


def test_it_rejects_the_pages_that_were_made_to_fail_and_quotes_their_text(planted, work, texts, truth):
    assert run("rejections", planted, work).returncode == 0
    missed = 0
    for qid, known in truth.items():
        rejected = json.loads((work / "rejections" / f"{qid}.json").read_text())
        expected = {(hop, row["docid"]) for row in known["documents"] for hop in row["pool"] if hop not in row["hops"] and (qid, hop) != ("q02", 2)}
        assert {(row["hop"], row["docid"]) for row in rejected} == expected and len(rejected) == len(expected)
        for row in rejected:
            assert set(row) == {"hop", "docid", "sentence", "contrast"}
            assert row["sentence"] in folded(texts[row["docid"]]) and row["sentence"].endswith(".")
            hop = known["hops"][row["hop"] - 1]
            assert hop["states"][0] in row["contrast"]
            missed += row["sentence"] in [miss["sentence"] for miss in hop["misses"]]
    assert missed > 40


def test_it_decides_each_copy_by_its_own_text_on_every_live_hop(planted, work, texts, truth):
    assert run("decisions", planted, work).returncode == 0
    decided = 0
    for qid, known in truth.items():
        made = json.loads((work / "expand" / "to_apply" / f"{qid}.json").read_text())
        assert {docid: one["hops"] for docid, one in made.items()} == {
            row["docid"]: [hop for hop in row["hops"] if (qid, hop) != ("q02", 2)] for row in known["documents"] if not row["pool"]
        }
        for docid, one in made.items():
            assert set(one) == {"hops", "sentence", "contrast"} and one["sentence"] in folded(texts[docid]) and one["contrast"].strip()
        decided += len(made)
    assert decided > 70


def test_the_parts_of_the_decisions_are_the_whole(planted, work):
    assert run("decisions", planted, work, "--qid", "q01", "--out", work / "whole.json").returncode == 0
    whole, parts = json.loads((work / "whole.json").read_text()), []
    for i in (1, 2, 3):
        assert run("decisions", planted, work, "--qid", "q01", "--part", f"{i}/3", "--out", work / f"{i}.json").returncode == 0
        parts.append(json.loads((work / f"{i}.json").read_text()))
    assert {docid: one for part in parts for docid, one in part.items()} == whole and sum(map(len, parts)) == len(whole) >= 3
    for part in ("0/3", "4/3", "1", "x"):
        assert run("decisions", planted, work, "--part", part).returncode == 2


def test_a_copy_of_a_pending_document_is_left_to_it_and_a_question_without_pending_has_no_file(planted, work):
    path = work / "expand" / "pending" / "q01.json"
    scanned = json.loads(path.read_text())
    first, second, *_ = scanned["pending"]
    second["copy_of"] = first["docid"]
    files.write_json(path, scanned | {"pending": [first, second]})
    reviewer.decisions(planted, work, "q01")
    target = work / "expand" / "to_apply" / "q01.json"
    assert list(json.loads(target.read_text())) == [first["docid"]]
    files.write_json(path, scanned | {"pending": []})
    assert reviewer.decisions(planted, work, "q01") == ["nothing is pending"] and not target.exists()


def test_what_is_missing_is_named_and_no_unread_document_is_decided(planted, work, tmp_path):
    docid = json.loads((work / "expand" / "pending" / "q03.json").read_text())["pending"][0]["docid"]
    (work / "docs" / f"{docid}.txt").unlink()
    done = run("decisions", planted, work, "--qid", "q03")
    assert done.returncode == 1 and docid in done.stderr and "fetch" in done.stderr and not (work / "expand" / "to_apply" / "q03.json").exists()
    for words, says in (
        (("rejections", planted, work, "--qid", "q99"), "'q99' is none of the 12 candidates"),
        (("decisions", planted, work, "--qid", "q99"), "expand scan"),
        (("decisions", planted, work, "--out", work / "x.json"), "name one with --qid"),
        (("standards", work, work), "truth.jsonl is not there"),
        (("standards", planted, planted), "candidates.jsonl is not there"),
    ):
        done = run(*words)
        assert done.returncode == 1 and says in done.stderr and done.stderr.count("\n") == 1


def test_a_sentence_inside_another_one_states_nothing():
    hop = {"states": ["The Selk flows through Orm."], "misses": []}
    assert reviewer.stating(hop, "Orm\n\nA town. The Selk flows\nthrough Orm. More.\n") == "The Selk flows through Orm."
    assert reviewer.stating(hop, "Orm (Name)\n\nThe Selk flows through Orm.") is not None
    for other in ("It is false that The Selk flows through Orm.", "The Selk flows through Orm.x", "The Selk flows through Ormham.", ""):
        assert reviewer.stating(hop, f"A town. {other}") is None


def test_it_reads_nothing_of_which_document_states_what(planted, work, tmp_path_factory):
    """A truth file whose lists of documents are gone gives the same answers."""
    blind = tmp_path_factory.mktemp("blind")
    rows = [row | {"documents": None, "hops": [hop | {"documents": None} for hop in row["hops"]]} for row in lines(planted / "truth.jsonl")]
    files.write_text(blind / "truth.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    said = []
    for folder in (planted, blind):
        shutil.rmtree(work / "rejections", ignore_errors=True)
        reviewer.rejections(folder, work)
        reviewer.decisions(folder, work)
        said.append({path: path.read_bytes() for path in sorted(work.rglob("*.json"))})
    assert said[0] == said[1]


# the whole line

def neighbours(planted):
    """Both directions, in the API spelling, with the plainest reader there is."""
    import pyarrow.parquet as pq

    found = defaultdict(set)
    for path in (planted / qrels_set.NEAR).glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            for copy in row["duplicates"] or []:
                found[ids.api(row["doc_id"])].add(ids.api(copy["doc_id"]))
                found[ids.api(copy["doc_id"])].add(ids.api(row["doc_id"]))
    return found


def expected_closure(known, start, live, texts, near):
    """All documents that are reached: equal texts unread, near ones where their own text states a live hop."""
    states = {row["docid"]: set(row["hops"]) & live for row in known["documents"]}
    found, front = set(start), set(start)
    while front:
        equal = {docid for docid in states if any(texts[docid] == texts[one] for one in front)}
        alike = {docid for one in front for docid in near[one] if states.get(docid)}
        front = (equal | alike) - found
        found |= front
    return found


def test_the_line_ends_where_the_truth_says_it_must(planted, tmp_path, texts, truth, monkeypatch, capsys):
    from lib.qrels import pools
    from lib.qrels.__main__ import main
    from lib.qrels.work import Work

    def step(*words):
        main([*map(str, words)])
        return capsys.readouterr().out

    work = Work(tmp_path)
    inputs = {"WORKBOOK": "review.xlsm", "QUESTIONS": "verified.jsonl", "NEAR_DUP_DIR": qrels_set.NEAR, "EXACT_DUPS": "duplicate_groups.jsonl"}
    for name, path in inputs.items():
        monkeypatch.setenv(f"QRELS_{name}", str(planted / path))
    monkeypatch.setenv("QRELS_WORK_DIR", str(tmp_path))
    for docid, each in texts.items():
        files.write_text(work.text(docid), each)
        known = {"docid": docid, "sha256": hashlib.sha256(each.encode()).hexdigest(), "chars": len(each)}
        files.write_json(work.text(docid).with_suffix(".json"), known)
    step("candidates")
    reviewer.standards(planted, tmp_path)
    for qid in truth:
        step("worksheet", "--qid", qid, "--max-chars", 100_000)
    reviewer.rejections(planted, tmp_path)
    step("verdicts", "--all")
    step("build")
    for rounds in range(10):
        if "closure reached" in step("expand", "scan"):
            break
        reviewer.decisions(planted, tmp_path)
        for path in sorted((work.expand / "to_apply").glob("*.json")):
            step("expand", "render", "--qid", path.stem, "--max-chars", 100_000)
            step("expand", "apply", "--qid", path.stem, "--decisions", path)
    step("expand", "export")
    assert rounds >= 3
    near, judged = neighbours(planted), pools.read(work)
    for row in lines(work.expanded):
        known, question = truth[row["qid"]], judged[row["qid"]]
        live = {hop["hop"] for hop in question["hops"] if hop["live"]}
        states = {one["docid"]: set(one["hops"]) for one in known["documents"]}
        start = {entry["docid"] for entry in question["pool"] if entry["hop"] in states[entry["docid"]] and entry["state"] != "skipped"}
        assert {one["docid"] for one in row["documents"]} == expected_closure(known, start, live, texts, near), row["qid"]
        assert all(set(one["hops"]) <= states[one["docid"]] for one in row["documents"])
    assert max(row["rounds"] for row in lines(work.expanded)) >= 3
    reviews = {(row["qid"], row["hop"]) for row in lines(tmp_path / "needs_review.jsonl")}
    assert reviews == {("q03", 2), ("q08", 1)}
