"""Labelling: every routed pair scored once behind the gate, resumed, shared, refused where anything differs."""

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest
import small_student
from small_corpus import wait_for

from lib import contracts, engine, paths
from lib.student import checkpoints, gate, label, opening, scores, tokens, workers
from lib.student.opening import Refused
from small_student import OPTIONS, QUERIES, edit, student_rows


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return small_student.make(tmp_path_factory.mktemp("student") / "run")


@pytest.fixture
def run(made, tmp_path) -> Path:
    """A copy of the run, nothing scored yet."""
    opening._open.cache_clear()
    return shutil.copytree(made, tmp_path / "run")


def here(run: Path, name: str = "v1", **options) -> list[dict]:
    """Label in this process, as one element of a job array does."""
    config = label.prepare(run, name, **OPTIONS | options)
    return engine.map(scores.STAGES[name], config)


def checkpoint(run: Path) -> Path:
    return checkpoints.find(run, "larger")


def scored(run: Path, name: str = "v1") -> pa.Table:
    return contracts.read("scores", run / "scores" / name)


def parts(run: Path, name: str = "v1") -> list[Path]:
    return sorted((run / "scores" / name).glob("*.parquet"))


def test_every_routed_pair_is_scored_once_as_one_by_one(run):
    from lib.student import score

    here(run)
    table = scored(run)
    expected = sorted((q, d) for q in range(QUERIES) for d in student_rows("v1", q))
    assert list(zip(table["query"].to_pylist(), table["doc"].to_pylist(), strict=True)) == expected
    student = score.load(checkpoint(run))
    given, _ = tokens.join(tokens.load(run), table["query"].to_numpy(), table["doc"].to_numpy(), student.template, student.pair_tokens)
    alone = [score.score(student, given.take([pair]), 200)[0] for pair in range(len(expected))]
    assert np.abs(table["score"].to_numpy() - alone).max() < 1e-5
    assert set(table["checkpoint"].to_pylist()) == {"larger/20"}
    (record,) = opening.records(run, "v1")
    assert set(table["gate"].to_pylist()) == {record["sha256"]}
    told = json.dumps({"facts": record["facts"], "report": record["report"]}, sort_keys=True)
    assert record["sha256"] == hashlib.sha256(told.encode()).hexdigest()
    assert record["report"]["pairs"]["n"] == 48 and record["report"]["pairs"]["pearson"] > 0.999999


def test_units_are_told_with_pairs_tokens_and_the_gate_but_without_times(run):
    lines = here(run)
    routed = contracts.parts(run / "student_pairs/v1")
    assert [line["part"] for line in lines if "00001" in line["part"]] == [f"part-00001-{unit:02d}.parquet" for unit in range(len(routed[1]["units"]))]
    assert len(lines) > 6 and sum(line["pairs"] for line in lines) == sum(line["rows"] for line in routed)
    assert sum(line["tokens"] for line in lines) == sum(line["tokens"] for line in routed)
    assert all(0 < line["tokens"] <= 500 + small_student.PAIR_TOKENS and line["timing"]["seconds"] > 0 for line in lines)
    told = json.loads((run / "scores/v1/manifest.json").read_text())["parts"]
    assert all("gate" in line and not {"timing", "seconds"} & set(line) for line in told)


def test_a_table_of_times_sums_the_units_and_dashes_what_cannot_be_counted(run):
    lines = here(run)
    found = label.timing(lines)
    assert found["unit"].tolist() == [Path(line["part"]).stem for line in lines] + ["all"]
    whole = found.iloc[-1]
    assert (whole["pairs"], whole["tokens"]) == (144, sum(line["tokens"] for line in lines)) and 0 < whole["share of peak"] < 1
    assert whole["pairs a second"] == pytest.approx(144 / sum(line["timing"]["seconds"] for line in lines))
    unknown = scores._work({"model_type": "gpt2", "n_head": 2}, np.array([5, 7]), 1.0, "cpu")
    assert unknown == {"flop": None, "share_of_peak": None}
    empty = {"part": "part-00000-00.parquet", "pairs": 0, "tokens": 0, "timing": {"seconds": 0.0} | unknown}
    assert label.timing([empty])[["pairs a second", "share of peak"]].isna().all(axis=None)
    two = [empty | {"pairs": 8, "tokens": 80, "timing": {"seconds": s, "flop": 1.0, "share_of_peak": share}} for s, share in ((4.0, 0.25), (1.0, 0.75))]
    assert label.timing([*two, empty])["share of peak"].iloc[-1] == pytest.approx((4 * 0.25 + 1 * 0.75) / 5)  # weighted by seconds


def test_a_set_in_which_most_parts_have_no_pair(run):
    lines = here(run, "v2")
    assert [(line["part"], line["rows"]) for line in lines] == [("part-00000-00.parquet", 1), ("part-00001-00.parquet", 0), ("part-00002-00.parquet", 0)]
    assert scored(run, "v2")["query"].to_pylist() == [3]


def test_a_restart_scores_only_what_is_missing(run):
    here(run)
    before = {path.name: path.stat().st_mtime_ns for path in parts(run)}
    whole = scored(run)
    parts(run)[2].unlink()
    opening._open.cache_clear()
    here(run)
    after = {path.name: path.stat().st_mtime_ns for path in parts(run)}
    assert [name for name in before if before[name] != after[name]] == [sorted(before)[2]]
    assert scored(run).equals(whole)


def test_where_all_is_done_no_model_is_needed(run):
    here(run)
    shutil.rmtree(checkpoint(run) / "model")
    assert label.label(run, "v1", workers=2, **OPTIONS) and len(scored(run)) == 144


def test_scores_without_the_record_of_their_gate_are_refused(run):
    here(run)
    (record,) = (run / "scores/v1/gates").glob("*.json")
    whole, way_out = record.read_text(), "put it back, or remove .*scores/v1 and label all again"
    record.write_text(whole.replace('"n": 48', '"n": 480'))
    with pytest.raises(Refused, match=f"is not the record of a gate as it was written; {way_out}"):
        label.label(run, "v1", **OPTIONS)
    record.write_text(whole[:50])
    with pytest.raises(Refused, match=f"is not the record of a gate as it was written; {way_out}"):
        label.label(run, "v1", **OPTIONS)
    record.unlink()
    with pytest.raises(Refused, match=f"lacks the record {record.stem} of the gate behind its scores; {way_out}"):
        label.label(run, "v1", **OPTIONS)
    record.write_text(whole)
    assert len(label.label(run, "v1", **OPTIONS)) > 6


def test_a_gate_of_another_configuration_leaves_the_record_of_the_scores_that_are_there(run):
    here(run)
    before = opening.records(run, "v1")
    opening.compare(opening.records_folder(run, "v1"), {"dtype": "bfloat16"}, "another key")
    assert opening.records(run, "v1") == before


@pytest.mark.parametrize(("fact", "value"), [
    ("weights_sha256", "0" * 64), ("tokenizer_sha256", "0" * 64), ("template", [[1], [], []]), ("pair_tokens", 8192), ("pair_chars", 32000),
    ("dtype", "bfloat16"), ("attention", "packed_fa2"), ("packs", False), ("device", "cuda"), ("torch", "2.9.0"), ("transformers", "5.0.0"),
    ("flash-attn", "2.8.3"), ("row_tokens", 65536),
])
def test_a_worker_whose_facts_differ_from_the_record_beside_the_scores_is_refused(run, fact, value):
    here(run)
    (record,) = (run / "scores/v1/gates").glob("*.json")
    now = json.loads(record.read_text())["facts"]
    edit(record, facts=now | {fact: value})
    missing = parts(run)[3]
    missing.unlink()
    opening._open.cache_clear()
    with pytest.raises(Refused, match="remove that folder and label all again") as error:
        here(run)
    assert f"made with {fact} {value}, this worker has {now.get(fact)}" in str(error.value)
    assert not missing.exists() and not (run / "scores/v1/manifest.json").exists()


def test_scores_of_a_former_checkpoint_are_made_again_and_its_record_goes_with_the_last_of_them(run):
    here(run)
    before = scored(run)
    shutil.rmtree(checkpoint(run))
    small_student.checkpoint(run, "larger", 30, seed=1)
    opening._open.cache_clear()
    here(run)
    assert len(opening.records(run, "v1")) == 2
    label.label(run, "v1", **OPTIONS)
    assert len(opening.records(run, "v1")) == 1
    assert set(scored(run)["checkpoint"].to_pylist()) == {"larger/30"}
    assert not np.array_equal(scored(run)["score"].to_numpy(), before["score"].to_numpy())


def test_weights_that_are_not_those_of_the_record_are_refused(run):
    path = checkpoint(run) / "head.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(Refused, match="was trained with weights_sha256 .* and finds"):
        here(run)


def test_another_tokenizer_is_refused(run):
    with open(run / "tokenizer.json", "a") as file:
        file.write("\n")
    with pytest.raises(Refused, match="was trained with tokenizer_sha256"):
        here(run)


def test_tokens_cut_elsewhere_are_refused(run):
    tokens.write(run, pair_chars=100)
    with pytest.raises(Refused, match="was trained with pair_chars 150 and finds 100"):
        here(run)


def test_a_checkpoint_that_changed_since_the_labelling_was_prepared_is_refused(run):
    config = label.prepare(run, "v1", **OPTIONS)
    edit(checkpoint(run) / "record.json", note="trained again")
    with pytest.raises(Refused, match="prepare it again"):
        engine.map(scores.v1, config)


def heldout(run: Path, change) -> None:
    path = checkpoint(run) / "heldout.parquet"
    table = contracts.read_part("predictions", path)
    changed = change(table["prediction"].to_numpy()).astype(np.float32)
    contracts.write("predictions", table.set_column(3, table.schema.field("prediction"), pa.array(changed)), path)


@pytest.mark.parametrize(("fault", "said"), [
    (lambda values: 0.8 * values, "slope"),
    (lambda values: values - 0.1, "max .difference."),
    (lambda values: np.roll(values, 1), "Pearson"),
    (lambda values: np.where(np.arange(80) % 2, np.nan, values), "reference values are not finite"),
])
def test_a_failed_gate_leaves_no_score(run, fault, said):
    heldout(run, fault)
    with pytest.raises(gate.GateFailed, match=said):
        here(run)
    assert parts(run) == [] and opening.records(run, "v1") == [] and not (run / "scores/v1/manifest.json").exists()


def test_another_cut_than_in_training_is_seen_by_the_gate(run):
    edit(checkpoint(run) / "record.json", pair_tokens=20)
    with pytest.raises(gate.GateFailed, match="stays shut"):
        here(run)


def test_fewer_held_out_pairs_than_the_gate_asks_for_are_refused(run):
    with pytest.raises(ValueError, match="gate_pairs is 81 and the checkpoint has 80 held-out pairs"):
        here(run, gate_pairs=81)
    assert parts(run) == []


def test_a_score_that_is_not_finite_is_no_row(run, monkeypatch):
    from lib.student import score

    config = label.prepare(run, "v1", **OPTIONS)
    monkeypatch.setattr(score, "score", lambda student, given, row_tokens: np.where(np.arange(len(given.lengths)) == 2, np.nan, 1).astype(np.float32))
    first = student_rows("v1", 0)
    with pytest.raises(ValueError, match=f"score of query 0 and document {sorted(first)[2]} is nan .1 such pairs"):
        engine.map(scores.v1, config)
    assert parts(run) == []


def test_pairs_whose_lengths_are_not_those_that_were_listed_are_no_rows(run):
    config = label.prepare(run, "v1", **OPTIONS)
    path = run / "student_pairs/v1/part-00000.parquet"
    listed = contracts.read_part("student_pairs", path)
    lengths = listed["tokens"].to_numpy().copy()
    lengths[[0, 1]] += (1, -1)  # as many tokens in all
    contracts.write("student_pairs", listed.set_column(2, listed.schema.field("tokens"), pa.array(lengths)), path)
    with pytest.raises(ValueError, match="the pairs have other lengths than student_pairs states; label again"):
        engine.map(scores.v1, config)
    assert parts(run) == []


@pytest.mark.parametrize(("options", "said"), [
    ({"name": "v3"}, "there is no set 'v3' to label; take one of v1, v2"),
    ({"row_tokens": 39}, "row_tokens is 39 and a pair of the arm larger has up to 40 tokens"),
    ({"arm": "largest"}, "no checkpoint of the arm 'largest'; it has larger"),
    ({"step": 10}, "has no checkpoint at step 10; it has 20, and 0 is the last"),
    ({"unit_tokens": 0}, "unit_tokens is 0"),
])
def test_what_cannot_be_labelled_is_told_in_a_sentence(run, options, said):
    with pytest.raises(ValueError, match=said):
        label.prepare(run, **{"name": "v1"} | OPTIONS | options)


def test_a_row_may_be_as_long_as_the_longest_pair(run):
    assert label.prepare(run, "v1", **OPTIONS | {"row_tokens": small_student.PAIR_TOKENS})["row_tokens"] == small_student.PAIR_TOKENS


def test_the_kernel_that_labels_never_imports_torch():
    code = "import sys, lib.student.label, lib.student.gate, lib.student.cuts; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT).returncode == 0


def test_two_workers_give_the_table_of_one(run, tmp_path, capfd):
    other = shutil.copytree(run, tmp_path / "other" / "run")
    here(run)
    lines = label.label(other, "v1", workers=2, **OPTIONS)
    assert scored(other).equals(scored(run))
    assert {path.name: path.read_bytes() for path in parts(other)} == {path.name: path.read_bytes() for path in parts(run)}
    said = capfd.readouterr().err
    assert said.count("the gate is open on cpu") == 2 and f"{len(lines)} of {len(lines)} units, 144 pairs" in said


@pytest.mark.slow
def test_a_killed_job_array_resumes_to_the_table_of_the_unbroken_run(run, tmp_path):
    other = shutil.copytree(run, tmp_path / "other" / "run")
    small = OPTIONS | {"unit_tokens": 60}
    here(run, **small)
    label.prepare(other, "v1", **small)
    command = [sys.executable, "-m", "lib.engine", "lib.student.scores:v1", str(other / "scores/v1/config.json"), "--shard", "0/1"]
    killed = subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.DEVNULL)
    wait_for(lambda: len(parts(other)) > 1, 60)
    killed.kill()
    killed.wait()
    # a part whose line was not written yet is made again
    there = {path.name: path.stat().st_mtime_ns for path in parts(other) if path.with_suffix(".json").exists()}
    assert len(parts(other)) < len(parts(run)), "it was to be killed in the middle"
    assert not (other / "scores/v1/manifest.json").exists()
    assert subprocess.run(command, cwd=paths.ROOT, stdout=subprocess.DEVNULL).returncode == 0
    engine.map(scores.v1, json.loads((other / "scores/v1/config.json").read_text()))
    assert scored(other).equals(scored(run))
    assert all(path.stat().st_mtime_ns == there[path.name] for path in parts(other) if path.name in there)


@pytest.mark.slow
def test_a_killed_worker_stops_the_run_and_the_next_one_goes_on(run, tmp_path):
    other = shutil.copytree(run, tmp_path / "other" / "run")
    small = OPTIONS | {"unit_tokens": 60}
    here(run, **small)

    def kill_one() -> None:
        wait_for(lambda: parts(other), 60)
        next(child for child in psutil.Process().children() if "lib.student.worker" in child.cmdline()).kill()

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(workers.LabellingStopped, match="worker was killed by SIGKILL .*; run again to go on, finished units are kept"):
        label.label(other, "v1", workers=2, **small)
    killer.join()
    assert not [child for child in psutil.Process().children() if "lib.student.worker" in child.cmdline()]
    assert 0 < len(parts(other)) < len(parts(run))
    label.label(other, "v1", workers=1, **small)
    assert scored(other).equals(scored(run))


@pytest.mark.slow
def test_a_gate_that_fails_in_a_worker_is_told_in_its_sentence(run):
    heldout(run, lambda values: 0.8 * values)
    with pytest.raises(workers.LabellingStopped, match="^the gate stays shut: .*slope is 1.25"):
        label.label(run, "v1", workers=2, **OPTIONS)
    assert parts(run) == []
