"""Scores by a checkpoint: those that training wrote, whatever the rows, and those of the front door."""

import shutil

import numpy as np
import pytest
import torch
from small_training import inputs, make, train_here
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForSequenceClassification

from lib import corpus
from lib.packed import pairs
from lib.student import checkpoints, model, score, tokens


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = inputs(make(tmp_path_factory.mktemp("scored") / "run"))
    return run, train_here(run)


@pytest.fixture(scope="module")
def student(trained):
    return score.load(trained[1])


def held(run, student):
    table = checkpoints.heldout(checkpoints.find(run, "larger"))
    given, _ = tokens.join(tokens.load(run), table["query"].to_numpy(), table["doc"].to_numpy(), student.template, student.pair_tokens)
    return given, table["prediction"].to_numpy()


def test_a_loaded_checkpoint_scores_the_held_out_pairs_to_the_bit(trained, student):
    given, predictions = held(trained[0], student)
    assert np.array_equal(score.score(student, given, 96), predictions)
    assert not student.scorer.training and student.record["step"] == 6


@pytest.mark.parametrize("row_tokens", [48, 64, 500])
def test_scores_do_not_depend_on_the_rows_and_equal_one_by_one(trained, student, row_tokens):
    given, predictions = held(trained[0], student)
    np.testing.assert_allclose(score.score(student, given, row_tokens), predictions, atol=1e-5)
    with torch.no_grad():
        alone = [float(model.scores_of(student.scorer, given.take([i]))) for i in range(len(predictions))]
    np.testing.assert_allclose(alone, predictions, atol=1e-5)
    assert np.ptp(predictions) > 1e-3  # they differ, so the test could fail


def test_an_empty_row_is_run_and_scores_nothing(student):
    given = pairs.ragged([[5, 6], [7]])
    found = score.score_rows(student.scorer, given, [np.array([1]), np.empty(0, int)])
    assert np.isnan(found).tolist() == [True, False]


def test_the_front_door_scores_texts_as_training_reads_them(trained, student):
    run, folder = trained
    texts, queries = corpus.all_documents(run, ["text"])["text"].to_pylist(), corpus.all_queries(run, ["text"])["text"].to_pylist()
    table = checkpoints.heldout(folder)
    wanted = [(queries[q], texts[d]) for q, d in zip(table["query"].to_pylist(), table["doc"].to_pylist(), strict=True)]
    tokenizer = corpus.tokenizer(run)
    for by in (folder, str(folder), student):
        np.testing.assert_allclose(score.score_pairs(by, tokenizer, wanted), table["prediction"].to_numpy(), atol=1e-5)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    np.testing.assert_allclose(score.score_pairs(student.scorer, fast, wanted, row_tokens=48), table["prediction"].to_numpy(), atol=1e-5)
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding()
    np.testing.assert_allclose(score.score_pairs(student, tokenizer, wanted), table["prediction"].to_numpy(), atol=1e-5)
    assert tokenizer.truncation and score.score_pairs(student, tokenizer, []).shape == (0,)
    cut = score.score_pairs(student, tokenizer, [("q", "sum " * 100), ("q", "sum " * 100 + "cat")])
    assert cut[0] == cut[1]  # beyond pair_tokens
    narrow = score.score_pairs(student._replace(pair_chars=5), tokenizer, [("q", "on the cat"), ("q", "on the"), ("q", "on")])
    assert narrow[0] == narrow[1] != narrow[2]  # beyond pair_chars


def test_a_transformers_classifier_scores_as_it_does_alone(trained):
    run, _ = trained
    tokenizer = corpus.tokenizer(run)
    torch.manual_seed(0)
    classifier = Qwen3ForSequenceClassification(Qwen3Config(
        vocab_size=300, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=4, intermediate_size=8,
        num_labels=1, pad_token_id=0)).eval()
    texts = [("the cat", "on the mat"), ("a", "sum of the squares " * 5), ("query", "")]
    with torch.no_grad():
        alone = [float(classifier(torch.tensor([tokenizer.encode(*pair).ids])).logits) for pair in texts]
    np.testing.assert_allclose(score.score_pairs(classifier, tokenizer, texts, row_tokens=40 * 8), alone, atol=1e-5)


def test_what_is_no_model_or_tokenizer_is_refused(trained, student, tmp_path):
    tokenizer = corpus.tokenizer(trained[0])
    with pytest.raises(TypeError, match="Linear has no linear head with one output; give a checkpoint's folder"):
        score.score_pairs(torch.nn.Linear(2, 1), tokenizer, [("a", "b")])
    with pytest.raises(TypeError, match="the tokenizer is a str; give a tokenizers.Tokenizer"):
        score.score_pairs(student, "tokenizer.json", [("a", "b")])
    with pytest.raises(OSError, match="record.json"):
        score.load(tmp_path)
    assert isinstance(tokenizer, Tokenizer)


def test_a_score_that_is_not_finite_comes_back_as_it_is(student):
    weight = student.scorer.head.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight.fill_(float("nan"))
        found = score.score(student, pairs.ragged([[5, 6], [7]]), 96)
        weight.copy_(kept)
    assert np.isnan(found).all() and found.dtype == np.float32


def llama(vocabulary: int):
    return LlamaModel(LlamaConfig(vocab_size=vocabulary, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8))


def bert(vocabulary: int):
    """Reads both ways, so a row of several pairs would mix them."""
    return BertModel(BertConfig(vocab_size=vocabulary, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8), add_pooling_layer=False)


@pytest.mark.parametrize("make_model, packs", [(llama, True), (bert, False)], ids=["llama", "bert"])
def test_a_backbone_of_a_folder_is_trained_and_scores_the_same_when_loaded(tmp_path, make_model, packs, capfd):
    run = inputs(make(tmp_path / "run"))
    torch.manual_seed(0)
    make_model(model.vocabulary(corpus.tokenizer(run))).save_pretrained(tmp_path / "model")
    shutil.copy(run / "tokenizer.json", tmp_path / "model")
    folder = train_here(run, "folder", {"path": str(tmp_path / "model")}, steps=2, checkpoint_every=2)
    assert ("is run one pair at a time" in capfd.readouterr().out) is not packs
    loaded, table = score.load(folder), checkpoints.heldout(folder)
    assert loaded.scorer.packs is packs is loaded.record["packs"]
    given, _ = tokens.join(tokens.load(run), table["query"].to_numpy(), table["doc"].to_numpy(), loaded.template, loaded.pair_tokens)
    assert np.array_equal(score.score(loaded, given, 96), table["prediction"].to_numpy())
