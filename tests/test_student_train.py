"""Training: the order of the data, the loop, and what it leaves."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import alive, contents, python, wait_for
from small_training import ARM, OPTIONS, answer, answers, inputs, make, train_here

from lib import processes
from lib.packed import pairs
from lib.student import arms, batches, checkpoints, examples, tokens, train


@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 3))
def test_every_pair_comes_once_an_epoch_and_a_step_is_a_pure_function_of_the_seed(n, batch, seed):
    steps = -(-2 * n // batch)
    seen = np.concatenate([batches.order(n, batch, seed, step) for step in range(steps)])
    assert sorted(seen[:n]) == sorted(seen[n : 2 * n]) == list(range(n))
    batches._shuffled.cache_clear()
    assert batches.order(n, batch, seed, steps - 1).tolist() == seen[(steps - 1) * batch : steps * batch].tolist()


def test_epochs_and_seeds_differ():
    first, second, other = batches.order(50, 50, 0, 0), batches.order(50, 50, 0, 1), batches.order(50, 50, 1, 0)
    assert first.tolist() != second.tolist() and first.tolist() != other.tolist()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 5), st.booleans())
def test_rows_are_dealt_once_each_and_every_process_gets_as_many(lengths, size, packs):
    lengths = np.array(lengths)
    dealt = batches.deal(batches.pack(lengths, 40, packs), lengths, size)
    assert len({len(rows) for rows in dealt}) == 1 and len(dealt) == size
    assert sorted(np.concatenate([row for rows in dealt for row in rows])) == list(range(len(lengths)))
    assert packs or max(len(row) for rows in dealt for row in rows) == 1


def test_the_rate_rises_to_its_highest_and_falls_to_a_tenth():
    rates = [batches.learning_rate(step, 10, 1.0, 4, "cosine") for step in range(11)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0] and rates[10] == pytest.approx(0.1) and sorted(rates[4:], reverse=True) == rates[4:]
    assert batches.learning_rate(9, 10, 1.0, 4, "constant") == 1.0 == batches.learning_rate(0, 10, 1.0, 0, "constant")


@pytest.mark.parametrize("options, told", [
    ({"steps": 0}, "steps is 0; it is at least 1"),
    ({"batch": 0}, "batch is 0; it is at least 1"),
    ({"learning_rate": float("nan")}, "learning_rate is nan; it is a finite number above 0"),
    ({"warmup": 7}, "warmup is 7 steps of 6; it lies between 0 and all of them"),
    ({"row_tokens": 40}, r"row_tokens is 40 and a pair may have 48 tokens \(pair_tokens\); take rows at least as long"),
    ({"schedule": "linear"}, "schedule is 'linear'; it is one of cosine, constant"),
    ({"weight_decay": -1.0}, "weight_decay is -1.0"),
])
def test_options_that_cannot_be_are_refused_in_a_sentence(options, told):
    with pytest.raises(ValueError, match=told):
        arms.checked({"a": ARM}, arms.Options(**OPTIONS | options))
    assert arms.checked({"a": ARM}, arms.Options(**OPTIONS | {"warmup": OPTIONS["steps"]})).warmup == OPTIONS["steps"]
    with pytest.raises(ValueError, match="there is no arm to train"):
        arms.checked({}, arms.Options(**OPTIONS))
    with pytest.raises(ValueError, match="'a/b' cannot name a folder"):
        arms.checked({"a/b": ARM}, arms.Options(**OPTIONS))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = inputs(make(tmp_path_factory.mktemp("trained") / "run"))
    train_here(run)
    return run


def test_training_leaves_checkpoints_with_predictions_a_record_and_a_log(trained):
    assert checkpoints.arms(trained) == ["larger"] and checkpoints.steps(trained, "larger") == [3, 6]
    last, held = checkpoints.find(trained, "larger"), examples.read(trained, True)
    found, record, log = checkpoints.heldout(last), checkpoints.record(last), checkpoints.log(trained, "larger")
    assert last.name == "step-00000006" and checkpoints.find(trained, "larger", 3).name == "step-00000003"
    assert found.select(["query", "doc", "label"]).equals(held.select(["query", "doc", "label"])) and np.isfinite(found["prediction"]).all()
    assert log["step"].tolist() == [1, 2, 3, 4, 5, 6] and (log["pairs"] == 5).all() and np.isfinite(log).all(axis=None)
    assert record["weights_sha256"] == checkpoints.weights_sha256(last)
    assert (record["step"], record["dtype"], record["attention"], record["packs"]) == (6, "float32", "packed_cpu", True)
    table, read = examples.read(trained, False), tokens.load(trained)
    longer = read.queries.lengths[table["query"].to_numpy()] + read.documents.lengths[table["doc"].to_numpy()] > OPTIONS["pair_tokens"]
    training = record["training"]
    assert (training["training pairs"], training["cut documents"], training["cut queries"]) == (36, longer.sum(), 0) and 0 < longer.sum() < 36
    assert (last / "state").is_dir() and not (checkpoints.folder(trained, "larger", 3) / "state").exists()
    assert not list(checkpoints.arm_folder(trained, "larger").glob(".step-*"))
    table = checkpoints.training_table(trained)
    assert table.loc[0, ["arm", "parameters", "training pairs", "held-out queries", "steps"]].tolist() == ["larger", record["parameters"], 36, 3, 6]
    assert table.loc[0, "final loss"] == log["loss"].iloc[-1] != log["loss"].mean()  # the last tenth of six steps is the last one


def test_a_checkpoint_that_is_not_there_is_told_with_those_that_are(trained):
    with pytest.raises(ValueError, match="has no checkpoint at step 4; it has 3, 6, and 0 is the last"):
        checkpoints.find(trained, "larger", 4)
    with pytest.raises(ValueError, match="has no checkpoint of the arm 'smaller'; it has larger"):
        checkpoints.find(trained, "smaller")


def test_a_finished_arm_is_not_trained_again_and_another_number_of_processes_changes_nothing(trained, monkeypatch):
    monkeypatch.setattr(arms, "_run_child", lambda config: pytest.fail("trained again"))
    arms.train(trained, {"larger": ARM}, **OPTIONS)
    arms.train(trained, {"larger": ARM}, **OPTIONS | {"processes": 2})


def test_an_arm_of_a_former_training_is_neither_compared_nor_found(trained, tmp_path):
    import shutil

    run = shutil.copytree(trained, tmp_path / "run")
    (run / "student/arms.json").unlink(missing_ok=True)
    shutil.copytree(run / "student/larger", run / "student/former")
    assert checkpoints.arms(run) == ["former", "larger"]
    arms.train(run, {"larger": ARM}, **OPTIONS)
    assert checkpoints.arms(run) == ["larger"] and (run / "student/former").is_dir()
    with pytest.raises(ValueError, match="has no checkpoint of the arm 'former'; it has larger"):
        checkpoints.find(run, "former")
    assert checkpoints.training_table(run)["arm"].tolist() == ["larger"]


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("file", ["step-00000003/heldout.parquet", "step-00000006/head.safetensors", "step-00000006/model/model.safetensors",
                                  "step-00000006/record.json", "step-00000006/files.json", "log.csv"])
def test_a_checkpoint_that_is_not_what_training_wrote_is_refused_and_not_trained_anew(trained, tmp_path, monkeypatch, file, gone):
    import shutil

    run = shutil.copytree(trained, tmp_path / "run")
    path = run / "student/larger" / file
    if gone:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"e", b"o", 1))
    monkeypatch.setattr(arms, "_run_child", lambda config: pytest.fail("trained again"))
    named = file if not file.endswith("files.json") else "step-00000006/.*"  # it names another file by a hash that is not its own
    with pytest.raises(ValueError, match=f"larger/{named} is (not what training wrote|missing); put it back, or remove .*larger and train the arm again from its start"):
        arms.train(run, {"larger": ARM}, **OPTIONS)


def test_a_state_that_cannot_be_read_is_told_in_a_sentence(trained, tmp_path):
    import shutil

    run = shutil.copytree(trained, tmp_path / "run")
    last = checkpoints.find(run, "larger", 6)
    for left in (*checkpoints.folder(run, "larger", 3).iterdir(), *(path for path in last.iterdir() if path.name != "state")):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    shutil.copytree(checkpoints.folder(trained, "larger", 3), checkpoints.folder(run, "larger", 3), dirs_exist_ok=True)
    shutil.move(last / "state", checkpoints.folder(run, "larger", 3))
    last.rmdir()  # as where training broke off after step 3
    for part in (run / "student/larger/step-00000003/state").glob("*.distcp"):
        part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(OSError, match="step-00000003/state cannot be read .*; remove .*larger and train the arm again from its start"):
        train_here(run)


@pytest.mark.parametrize("change", [{"steps": 5}, {"seed": 1}, {"arm": {**ARM, "hidden": 12}}, {"answers": True}])
def test_another_configuration_or_other_examples_start_the_arm_afresh(trained, tmp_path, change):
    import shutil

    run = tmp_path / "run"
    shutil.copytree(trained, run)
    if change.pop("answers", False):
        answers(run, [answer(query, doc, 1) for query in range(12) for doc in range(4)])
        examples.write(run, held_queries=3)
    settings = change.pop("arm", ARM)
    made = arms.Options(**OPTIONS | change)
    key = arms.key(run, settings, made)
    assert not arms.finished(run, "larger", key, made)
    (checkpoints.arm_folder(run, "larger") / ".step-00000009").mkdir()
    arms.begin(run, "larger", settings, key, made)
    assert [path.name for path in checkpoints.arm_folder(run, "larger").iterdir()] == ["arm.json"]


def test_a_broken_off_arm_goes_on_from_its_last_checkpoint_to_the_same_bits(trained, tmp_path):
    run = inputs(make(tmp_path / "run"))
    torn, saves = pytest.MonkeyPatch(), []
    from lib.student import state

    def save(folder, step, *rest):
        if step == 6:
            (folder / ".step-00000006/state").mkdir(parents=True)
            raise KeyboardInterrupt
        saves.append(step)
        whole(folder, step, *rest)

    whole = state.save
    torn.setattr(state, "save", save)
    with torn.context(), pytest.raises(KeyboardInterrupt):
        train_here(run)
    torn.undo()
    assert saves == [3] == checkpoints.steps(run, "larger")
    train_here(run)
    for name in ("log.csv", "step-00000003/heldout.parquet", "step-00000006/heldout.parquet", "step-00000006/model/model.safetensors"):
        name = f"larger/{name}"
        assert (run / "student" / name).read_bytes() == (trained / "student" / name).read_bytes(), name


def test_training_starts_at_the_mean_label_and_leaves_its_last_step_whatever_checkpoint_every_says(tmp_path):
    run = inputs(make(tmp_path / "run"))
    train_here(run, steps=2, checkpoint_every=5, warmup=0, learning_rate=1e-9)
    assert checkpoints.steps(run, "larger") == [2]
    labels, found = examples.read(run, False)["label"].to_numpy(), checkpoints.heldout(checkpoints.find(run, "larger"))["prediction"].to_numpy()
    assert labels.mean() > 0.5 and abs(found.mean() - labels.mean()) < 0.2


def test_a_model_can_learn_a_handful_of_pairs_by_heart(tmp_path):
    run = inputs(make(tmp_path / "run", queries=4, pairs=3), held_queries=1)
    train_here(run, settings={"layers": 2, "hidden": 16, "heads": 2}, steps=60, batch=9, learning_rate=0.02, warmup=5, checkpoint_every=60)
    loss = checkpoints.log(run, "larger")["loss"]
    assert loss.iloc[0] > 0.3 and loss.iloc[-1] < 0.01


def test_a_loss_that_is_not_finite_stops_training_with_one_sentence(tmp_path):
    run = inputs(make(tmp_path / "run"))
    with pytest.raises(FloatingPointError, match=r"the arm larger has the loss .* at step \d; take a learning_rate below 1e\+30 or a longer warmup"):
        train_here(run, learning_rate=1e30, warmup=0)
    assert checkpoints.steps(run, "larger") == []


@pytest.mark.parametrize("words, told", [
    ("lib.student.train: the arm a has the loss nan at step 3\\nE0101 torch: ChildFailedError",
     "ended with 3: the arm a has the loss nan at step 3; finished checkpoints are kept"),
    ("E01 torch: traceback : Signal 9 (SIGKILL) received by PID 77\\nlast",
     r"ended with 3: a process was killed by SIGKILL \(was memory short\?\); run again"),
    ("step 1\\nwho knows\\n", "ended with 3: who knows; run again"),
    ("", "ended with 3: it said nothing; run again"),
])
def test_a_trainer_that_fails_is_told_by_its_own_last_words(monkeypatch, capfd, words, told):
    def child(*arguments, **options):
        return subprocess.Popen([sys.executable, "-c", f"import sys; sys.stderr.write('{words}'); sys.exit(3)"], **options)

    monkeypatch.setattr(processes, "child", child)
    with pytest.raises(arms.TrainingStopped, match=told):
        arms._run_child({"options": {"processes": 1}})
    assert "ChildFailedError" not in capfd.readouterr().err


@pytest.mark.parametrize("error, told", [
    (ValueError("the thing\n is wrong"), "lib.student.train: the thing is wrong"),
    (TypeError("a fault of ours"), "lib.student.train: TypeError: a fault of ours"),
])
def test_the_trainer_ends_with_one_sentence(tmp_path, monkeypatch, error, told):
    from lib.student import loop

    def fail(config):
        raise error

    monkeypatch.setattr(loop, "run", fail)
    monkeypatch.setattr(train, "_die_with_the_notebook", lambda: None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        train.main(str(tmp_path / "config.json"))
    assert str(ended.value) == told


TRAIN = """
import json, sys
from pathlib import Path
from lib.student import arms
arms.train(Path(sys.argv[1]), json.loads(sys.argv[2]), **json.loads(sys.argv[3]))
"""


def start(run, named=None, **options):
    return python(TRAIN, run.parent, str(run), json.dumps(named or {"larger": ARM}), json.dumps(OPTIONS | options))


def trainers(parent: int) -> list[int]:
    """The processes of the loop under a notebook: those under torchrun."""
    below = {child.pid: child.cmdline() for child in psutil.Process(parent).children(recursive=True)}
    return [pid for pid, command in below.items() if arms.MODULE in command and "torch.distributed.run" not in command]


@pytest.mark.slow
def test_two_processes_with_uneven_pairs_equal_one_in_loss_and_gradient_norm(tmp_path):
    arm = {"layers": 2, "hidden": 16, "heads": 4, "kv_heads": 2}
    logs, predictions = [], []
    for size, more in ((1, {}), (2, {}), (2, {"recompute": "on"})):
        run = inputs(make(tmp_path / f"run{len(logs)}" / "run", queries=20))
        child = start(run, {"a": arm}, processes=size, steps=5, batch=7, **more)
        _, err = child.communicate(timeout=300)
        assert child.returncode == 0, err
        logs.append(checkpoints.log(run, "a"))
        predictions.append(checkpoints.heldout(checkpoints.find(run, "a"))["prediction"].to_numpy())
    read = examples.read(run, False)
    lengths, _ = tokens.pair_lengths(tokens.load(run), read["query"].to_numpy(), read["doc"].to_numpy(), pairs.Template(), 48)
    for step in range(5):
        chosen = lengths[batches.order(len(lengths), 7, 0, step)]
        pairs_of = [sum(map(len, rows)) for rows in batches.deal(batches.pack(chosen, 96, True), chosen, 2)]
        assert sum(pairs_of) == 7 and pairs_of[0] != pairs_of[1] > 0  # 7 pairs never come out even
    for log, scores in zip(logs[1:], predictions[1:], strict=True):
        for name in ("loss", "gradient norm"):
            np.testing.assert_allclose(log[name], logs[0][name], rtol=1e-4)
        np.testing.assert_allclose(scores, predictions[0], atol=1e-4)


@pytest.mark.slow
def test_a_killed_trainer_goes_on_to_bit_equal_predictions_and_log(tmp_path):
    options = {"steps": 400, "checkpoint_every": 50, "warmup": 10}
    whole, torn = (inputs(make(tmp_path / name / "run")) for name in ("whole", "torn"))
    child = start(whole, **options)
    assert child.wait(timeout=300) == 0
    child = start(torn, **options)
    wait_for(lambda: checkpoints.steps(torn, "larger"), 120)
    os.kill(trainers(child.pid)[0], signal.SIGKILL)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 1 and "a process was killed by SIGKILL (was memory short?); run again to go on" in err.splitlines()[-1]
    assert 0 < len(checkpoints.steps(torn, "larger")) < 8
    child = start(torn, **options)
    assert child.wait(timeout=300) == 0
    kept = [{name: held for name, held in contents(run / "student").items() if "/state/" not in name and "timing" not in name}
            for run in (whole, torn)]
    assert kept[0] == kept[1] and sum(name.endswith("heldout.parquet") for name in kept[0]) == 8


@pytest.mark.slow
@pytest.mark.parametrize("when", ["starting", "training"])
def test_no_trainer_survives_its_notebook(tmp_path, when):
    run = inputs(make(tmp_path / "run"))
    parent = start(run, steps=100_000, checkpoint_every=10, processes=2)
    if when == "training":
        wait_for(lambda: checkpoints.steps(run, "larger"), 120)
    pids = wait_for(lambda: trainers(parent.pid), 120)
    below = [child.pid for child in psutil.Process(parent.pid).children(recursive=True)]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not any(alive(pid) for pid in {*below, *pids}), 20)
    with processes.lock(run):  # free again
        assert not list(checkpoints.arm_folder(run, "larger").glob("step-*")) or when == "training"


def test_a_trainer_whose_torchrun_died_before_it_could_ask_to_die_with_it_ends_at_once(tmp_path):
    child = python("import sys; from lib.student import train; train._die_with_the_notebook(); print('alive')", tmp_path)
    assert child.communicate(timeout=60)[0] == "alive\n"
    code = "import os; os.environ['QRELBOOK_TRAINER_OF'] = '999999999'; from lib.student import train; train._die_with_the_notebook(); print('alive')"
    child = python(code, tmp_path)
    assert child.communicate(timeout=60) == ("", "") and child.returncode == 1
