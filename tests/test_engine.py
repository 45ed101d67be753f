"""A stage over its shards: done means done today, and a broken run equals an unbroken one."""

import json
import os
import signal
import subprocess
import sys

import pytest
from small_corpus import alive, contents, python, wait_for
from toy_stage import toy

from lib import contracts, engine, paths, processes, sources


@pytest.fixture
def config(tmp_path):
    """A run with a finished input folder; parts and scale are the options of the toy stage."""
    run = tmp_path / "run"
    document = {"docid": "d", "text": "x", "n_chars": 1, "n_tokens": 1, "removed": False}
    line = contracts.write("documents", contracts.table("documents", [document]), run / "documents/part-00000.parquet")
    contracts.finish(run / "documents", [line])
    return {"run": str(run), "parts": 3, "scale": 0.5}


def folder(config):
    return paths.Path(config["run"]) / "rerank/toy"


def calls(config) -> list[str]:
    """The shards that were run, since the last time this was asked."""
    found = [path for path in (paths.Path(config["run"]) / "calls").glob("part-*")]
    shards = sorted(path.name[:10] for path in found)
    for path in found:
        path.unlink()
    return shards


def result(config) -> dict[str, bytes]:
    """Parts and manifest; the lines beside the parts hold seconds."""
    return {name: data for name, data in contents(folder(config)).items() if not name.startswith("part") or name.endswith(".parquet")}


ALL = ["part-00000", "part-00001", "part-00002"]


def test_a_stage_is_run_once_and_its_folder_is_finished(config):
    lines = engine.map(toy, config)
    assert calls(config) == ALL
    assert [line["rows"] for line in lines] == [3, 3, 3] and all(line["seconds"] >= 0 for line in lines)
    table = contracts.read("rerank", folder(config))
    assert table["query"].to_pylist() == list(range(9)) and table["score"].to_pylist() == [0, 0.5, 1] * 3
    assert contracts.parts(folder(config))[0].keys() == {"part", "rows", "sha256", "seen"}
    before = result(config)
    engine.map(toy, config)
    assert calls(config) == [] and result(config) == before


def test_another_option_an_input_and_a_source_make_every_shard_again(config, monkeypatch):
    engine.map(toy, config)
    calls(config)
    engine.map(toy, config | {"scale": 2.0})
    assert calls(config) == ALL
    engine.map(toy, config | {"scale": 2.0, "not an option": 1})
    assert calls(config) == []
    documents = paths.Path(config["run"]) / "documents"
    contracts.finish(documents, [contracts.parts(documents)[0] | {"sha256": "0" * 64}])
    engine.map(toy, config | {"scale": 2.0})
    assert calls(config) == ALL
    monkeypatch.setattr(sources, "hashes", lambda module: {module: "edited"})
    engine.map(toy, config | {"scale": 2.0})
    assert calls(config) == ALL


def test_the_key_has_the_source_of_the_stage_and_of_what_it_imports(config, tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "toy_stage.py").write_text("from lib import helper")
    (tmp_path / "lib/helper.py").write_text("a = 1")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    before = engine.key(toy, config)
    assert engine.key(toy, config) == before
    (tmp_path / "lib/helper.py").write_text("a = 2")
    assert engine.key(toy, config) != before


@pytest.mark.parametrize("harm", ["cut", "empty", "gone", "line gone", "line torn", "other rows", "other bytes"])
def test_a_part_that_is_torn_is_made_again_and_no_other(config, harm):
    engine.map(toy, config)
    before, part = result(config), folder(config) / "part-00001.parquet"
    calls(config)
    line = part.with_suffix(".json")
    if harm == "cut":
        part.write_bytes(part.read_bytes()[:-1])
    elif harm == "empty":
        part.write_bytes(b"")
    elif harm == "gone":
        part.unlink()
    elif harm == "line gone":
        line.unlink()
    elif harm == "other bytes":
        part.write_bytes((folder(config) / "part-00000.parquet").read_bytes())
    elif harm == "line torn":
        line.write_text(line.read_text()[:-9])
    else:
        line.write_text(json.dumps(json.loads(line.read_text()) | {"rows": 4}))
    engine.map(toy, config)
    assert calls(config) == ["part-00001"] and result(config) == before


def test_parts_of_a_former_configuration_are_removed(config):
    engine.map(toy, config | {"parts": 5})
    engine.map(toy, config)
    assert sorted(path.name for path in folder(config).iterdir()) == sorted([f"{shard}.{end}" for shard in ALL for end in ("json", "parquet")] + ["manifest.json"])


def test_a_stage_without_shards_is_finished_and_empty(config):
    assert engine.map(toy, config | {"parts": 0}) == []
    assert contracts.read("rerank", folder(config)).num_rows == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_shard_that_fails_leaves_the_folder_unfinished_and_the_others_done(config, workers):
    engine.map(toy, config | {"scale": 9.0})
    with pytest.raises(ValueError, match="part-00002 holds a bad row"):
        engine.map(toy, config | {"fail_at": 2}, workers)
    with pytest.raises(contracts.ContractError, match="is not finished"):
        contracts.read("rerank", folder(config))
    calls(config)
    engine.map(toy, config)
    assert calls(config) == ["part-00002"]


def test_two_workers_give_the_bytes_of_one(config, tmp_path):
    engine.map(toy, config)
    alone = result(config)
    for path in folder(config).iterdir():
        path.unlink()
    engine.map(toy, config, workers=2)
    assert result(config) == alone and len(alone) == 4


def test_an_unfinished_input_and_a_missing_option_are_named(config):
    with pytest.raises(ValueError, match="toy_stage:toy needs scale in its configuration"):
        engine.map(toy, {"run": config["run"], "parts": 3})
    (paths.Path(config["run"]) / "documents/manifest.json").unlink()
    with pytest.raises(contracts.ContractError, match="documents is not finished"):
        engine.map(toy, config)


@pytest.mark.parametrize("name", ["toy_stage:_run", "toy_stage:none", "toy_stage"])
def test_what_is_no_stage_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} is no stage; name one as module:attribute"):
        engine.find(name)


MAP = "import json, sys\nsys.path.insert(0, sys.argv[3])\nimport toy_stage\nfrom lib import engine\nif __name__ == '__main__': engine.map(toy_stage.toy, json.loads(sys.argv[1]), int(sys.argv[2]))"


def mapper(config, workers):
    (paths.Path(config["run"]) / "calls").mkdir(exist_ok=True)
    (paths.Path(config["run"]) / "calls/waiting").unlink(missing_ok=True)
    return python(MAP, paths.Path(config["run"]).parent, json.dumps(config), str(workers), os.path.dirname(__file__))


def waiting(config) -> int:
    text = paths.Path(config["run"]) / "calls/waiting"
    return int(wait_for(lambda: text.exists() and text.read_text()))


def children(pid: int) -> list[int]:
    return [int(child) for child in subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()]


@pytest.mark.parametrize("workers", [1, 2])
def test_after_kill_9_of_the_parent_no_child_lives_nothing_looks_finished_and_the_rest_is_done_once(config, workers):
    engine.map(toy, config)
    unbroken = result(config)
    for path in folder(config).iterdir():
        path.unlink()
    calls(config)
    parent = mapper(config | {"wait_at": 1}, workers)
    worker = waiting(config)
    others = children(parent.pid)
    if workers == 2:
        wait_for(lambda: (folder(config) / "part-00002.json").exists())
        assert worker in others and len(others) >= 2
    with pytest.raises(processes.Locked, match=f"in use by process {parent.pid}"):
        engine.map(toy, config)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    wait_for(lambda: not any(alive(pid) for pid in [worker, *others]), 10)
    with pytest.raises(contracts.ContractError, match="is not finished"):
        contracts.read("rerank", folder(config))
    calls(config)
    engine.map(toy, config)
    assert calls(config) == (["part-00001", "part-00002"] if workers == 1 else ["part-00001"])
    assert result(config) == unbroken


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_killed_worker_had_half_written_is_gone_before_the_next_shard_is_run(config, workers):
    parent = mapper(config | {"half_at": 1}, workers)
    worker = waiting(config)
    half = folder(config) / f".part-00001.parquet.tmp-{worker}"
    assert half.exists()
    with pytest.raises(processes.Locked):
        engine.map(toy, config)
    assert half.exists()  # who is refused removes nothing
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    wait_for(lambda: not alive(worker), 10)
    assert half.exists()
    with pytest.raises(ValueError, match="part-00001 holds a bad row"):
        engine.map(toy, config | {"fail_at": 1})
    assert not half.exists()
    engine.map(toy, config)
    assert not [path.name for path in folder(config).iterdir() if path.name.startswith(".part")]


def test_after_kill_9_of_a_worker_the_parent_says_so_and_ends_and_no_other_worker_lives(config):
    parent = mapper(config | {"wait_at": 1}, 2)
    worker = waiting(config)
    others = children(parent.pid)
    os.kill(worker, signal.SIGKILL)
    _, told = parent.communicate(timeout=30)
    assert parent.returncode == 1
    assert told.splitlines()[-1] == "RuntimeError: a worker of toy_stage:toy was killed (was memory short?); run again, finished shards are kept"
    wait_for(lambda: not any(map(alive, others)), 10)
    assert not (folder(config) / "manifest.json").exists() and not (folder(config) / "part-00001.parquet").exists()


def test_a_full_disk_is_one_sentence_and_leaves_no_part(config):
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\nimport sys\nsys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom lib import engine\nengine.main(sys.argv[1:])"
    file = paths.Path(config["run"]).parent / "config.json"
    file.write_text(json.dumps(config))
    child = python(code, file.parent, "toy_stage:toy", str(file))
    _, told = child.communicate(timeout=30)
    assert child.returncode == 1
    assert told == "lib.engine: run/rerank/toy/part-00000.parquet was not written (File too large); make room or choose another QRELBOOK_HOME and run again\n"
    assert [path.name for path in folder(config).iterdir() if path.suffix != ".lock"] == []


def array(config, shard: str):
    file = paths.Path(config["run"]).parent / "config.json"
    file.write_text(json.dumps(config))
    environment = os.environ | {"PYTHONPATH": f"{paths.ROOT}:{os.path.dirname(__file__)}", "QRELBOOK_HOME": str(file.parent)}
    command = [sys.executable, "-m", "lib.engine", "toy_stage:toy", str(file), "--shard", shard]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_a_job_array_fills_the_shards_and_the_notebook_afterwards_only_finishes(config):
    first = array(config, "0/2")
    assert first.returncode == 0, first.stderr
    assert [line.partition(":")[0] for line in first.stdout.splitlines()] == ["run/rerank/toy/part-00000.parquet", "run/rerank/toy/part-00002.parquet"]
    assert not (folder(config) / "manifest.json").exists()
    assert array(config, "1/2").returncode == 0
    assert calls(config) == ALL
    array(config, "1/2")
    engine.map(toy, config)
    assert calls(config) == []
    assert contracts.read("rerank", folder(config)).num_rows == 9


@pytest.mark.parametrize("shard", ["2/2", "-1/2", "1", "a/b", "0/0"])
def test_an_element_outside_the_job_array_is_refused(config, shard):
    with pytest.raises(SystemExit, match=f"--shard {shard} is no element of a job array; write i/n"):
        engine.main(["toy_stage:toy", "config.json", f"--shard={shard}"])


def test_a_job_that_cannot_run_is_one_sentence(config, tmp_path):
    with pytest.raises(SystemExit, match="lib.engine: toy_stage:gone is no stage"):
        engine.main(["toy_stage:gone", str(tmp_path / "config.json")])
    with pytest.raises(SystemExit, match="lib.engine: .*No such file"):
        engine.main(["toy_stage:toy", str(tmp_path / "gone.json")])
    (tmp_path / "config.json").write_text(json.dumps(config | {"fail_at": 0}))
    with pytest.raises(SystemExit, match="lib.engine: part-00000 holds a bad row"):
        engine.main(["toy_stage:toy", str(tmp_path / "config.json")])


def test_a_part_that_another_job_holds_is_refused_in_one_sentence(config, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config | {"wait_at": 0}))
    try:
        holder = python(
            f"import sys\nsys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom lib import engine\nengine.main(sys.argv[1:])",
            tmp_path, "toy_stage:toy", str(tmp_path / "config.json"),
        )
        wait_for(lambda: (folder(config) / ".part-00000.parquet.lock").exists() and (folder(config) / ".part-00000.parquet.lock").read_text())
        with pytest.raises(SystemExit, match=f"part-00000.parquet is in use by process {holder.pid}"):
            engine.main(["toy_stage:toy", str(tmp_path / "config.json")])
    finally:
        holder.kill()
        holder.communicate()


def test_a_job_array_does_not_work_beside_a_run_that_holds_the_folder(config, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    parent = mapper(config | {"wait_at": 0}, 1)
    waiting(config)
    try:
        with pytest.raises(SystemExit, match=f"is in use by process {parent.pid}"):
            engine.main(["toy_stage:toy", str(tmp_path / "config.json")])
    finally:
        parent.kill()
        parent.communicate()


def test_a_shard_made_by_a_job_array_unfinishes_the_folder_until_the_next_map(config, tmp_path):
    engine.map(toy, config)
    (tmp_path / "config.json").write_text(json.dumps(config | {"scale": 7.0}))
    engine.main(["toy_stage:toy", str(tmp_path / "config.json"), "--shard", "0/2"])
    with pytest.raises(contracts.ContractError, match="is not finished"):
        contracts.read("rerank", folder(config))


@pytest.mark.parametrize(("text", "said"), [("{}", "needs run"), ("[]", "is no JSON object"), ("{bad", "config.json is no JSON")])
def test_a_configuration_that_is_none_is_refused_in_one_sentence(tmp_path, text, said):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(SystemExit, match=said):
        engine.main(["toy_stage:toy", str(tmp_path / "config.json")])


def test_the_shards_of_a_stage_are_traced_also_when_nothing_is_left_to_do(config, monkeypatch, tmp_path):
    from lib import trace

    engine.map(toy, config)
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "trace"))
    engine.map(toy, config)
    found = trace.events(tmp_path / "trace")
    assert {str(folder(config) / f"{shard}.parquet") for shard in ALL} <= set(found["write"])
    assert str(paths.Path(config["run"]) / "documents/manifest.json") in found["read"]
