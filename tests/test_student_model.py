"""The model of an arm: from sizes or from a folder, with the run's token ids."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_corpus import tokenizer_file
from tokenizers import Tokenizer, models
from transformers import Qwen3Config, Qwen3Model

from lib.packed import pairs
from lib.student import arms, model

CPU = torch.device("cpu")
SIZES = {"layers": 2, "hidden": 8, "heads": 2}


def tokenizer(folder) -> Tokenizer:
    return Tokenizer.from_file(str(tokenizer_file(folder)))


def built(by: Tokenizer, seed: int = 0, **sizes) -> model.Scorer:
    return model.build(SIZES, arms.shape(SIZES | sizes), by, seed, 48, CPU, 0.5)


def folder_of_a_model(folder, vocabulary: int):
    made = Qwen3Model(Qwen3Config(vocab_size=vocabulary, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                                  head_dim=4, intermediate_size=8))
    made.save_pretrained(folder)
    return folder


def test_an_arm_has_the_sizes_it_names_and_a_linear_head_in_float32(tmp_path):
    scorer = built(tokenizer(tmp_path), kv_heads=1, head_dim=6, intermediate=10)
    config = model.sizes_of(scorer.backbone)
    names = ("num_hidden_layers", "hidden_size", "num_key_value_heads", "head_dim", "intermediate_size")
    assert [config[name] for name in names] == [2, 8, 1, 6, 10]
    assert config["vocab_size"] == (rows := model.vocabulary(tokenizer(tmp_path))) == tokenizer(tmp_path).get_vocab_size()
    layer = 8 * (2 * 6 + 6 + 6) + 2 * 6 * 8 + 3 * 8 * 10 + 2 * 6 + 2 * 8  # q k v, o, gate up down, two head norms, two norms
    assert model.parameters(scorer) == rows * 8 + 2 * layer + 8 + (8 + 1)
    assert scorer.head.weight.dtype == torch.float32 and scorer.head.bias.tolist() == [0.5]


def test_the_seed_alone_makes_the_weights(tmp_path):
    torch.manual_seed(9)
    first, again, other = (built(tokenizer(tmp_path), seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])
    assert not torch.equal(first["backbone.embed_tokens.weight"], other["backbone.embed_tokens.weight"])


def test_a_row_gives_a_number_a_pair_and_gradients_reach_every_weight(tmp_path):
    scorer = built(tokenizer(tmp_path))
    scores = model.scores_of(scorer, pairs.ragged([[1, 2, 3], [4], [5, 6]]))
    assert scores.shape == (3,) and scores.dtype == torch.float32
    scores.sum().backward()
    assert [name for name, one in scorer.named_parameters() if one.grad is None] == []


def test_a_backbone_of_a_folder_keeps_its_weights_and_gets_a_new_head(tmp_path):
    by = tokenizer(tmp_path / "model")
    saved = Qwen3Model.from_pretrained(folder_of_a_model(tmp_path / "model", 310))
    scorer = model.build({"path": str(tmp_path / "model")}, None, by, 0, 48, CPU, 0.25)
    assert torch.equal(scorer.backbone.embed_tokens.weight, saved.embed_tokens.weight)
    assert scorer.head.weight.abs().max() > 0 and scorer.head.bias.tolist() == [0.25]


def test_a_folder_that_reads_other_ids_or_has_too_few_is_refused(tmp_path):
    by, folder = tokenizer(tmp_path / "model"), tmp_path / "model"
    folder_of_a_model(folder, model.vocabulary(by) - 1)
    with pytest.raises(ValueError, match="has 281 token vectors and the run's tokenizer gives ids up to 281; take the model's own"):
        model.build({"path": str(folder)}, None, by, 0, 48, CPU, 0.0)
    Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")).save(str(folder / "tokenizer.json"))
    with pytest.raises(ValueError, match="reads .* as other ids than the run's tokenizer.json; import the corpus with that tokenizer"):
        model.build({"path": str(folder)}, None, by, 0, 48, CPU, 0.0)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="tokenizer.json does not exist"):
        model.build({"path": str(folder)}, None, by, 0, 48, CPU, 0.0)
    tokenizer(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match="cannot be read as a transformers model .*; name a folder with config.json and weights"):
        model.build({"path": str(folder)}, None, by, 0, 48, CPU, 0.0)


def test_a_backbone_whose_weights_are_not_whole_is_refused_and_not_trained_from_random_ones(tmp_path):
    by, folder = tokenizer(tmp_path / "model"), folder_of_a_model(tmp_path / "model", 310)
    weights = load_file(folder / "model.safetensors")
    del weights["layers.0.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"the weights of .*model lack layers.0.mlp.up_proj.weight \(1 such\), which would start at random"):
        model.build({"path": str(folder)}, None, by, 0, 48, CPU, 0.0)


@pytest.mark.parametrize("arm, told", [
    ({"layers": 1, "hidden": 8}, "the arm a lacks heads"),
    ({"layers": 1, "hidden": 8, "heads": 2, "width": 3}, "the arm a has no size 'width'; it takes layers, hidden, heads"),
    ({"layers": 0, "hidden": 8, "heads": 2}, "the arm a has layers 0; it is a whole number of at least 1"),
    ({"layers": 1, "hidden": 8.0, "heads": 2}, "the arm a has hidden 8.0"),
    ({"layers": 1, "hidden": 9, "heads": 3}, "a head_dim of 3; .* is even"),
    ({"layers": 1, "hidden": 8, "heads": 4, "kv_heads": 3}, "4 heads, 3 kv_heads"),
    ({"path": "nowhere/at/all"}, "the arm a names nowhere/at/all, where there is no config.json"),
    ({"layers": 1, "hidden": 2, "heads": 4}, "a head_dim of 0; .* is even and not 0"),
    (3, "the arm a is 3; it takes a mapping of layers, hidden, heads"),
    ({"path": 3}, "the arm a names 3, where there is no config.json"),
    ({"path": "x", "layers": 1}, "names a folder and layers; a model of a folder has its sizes already"),
])
def test_an_arm_that_cannot_be_is_refused_in_a_sentence(arm, told):
    with pytest.raises(ValueError, match=told):
        arms.checked({"a": arm}, arms.Options(1, 1, 0.1))
