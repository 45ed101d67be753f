"""A pair in a packed row is what it is alone, whatever its row mates, and what would mix pairs is refused."""

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel, BloomConfig, BloomModel, Gemma2Config, Gemma2Model, GPT2Config, GPT2Model, Qwen3Config, Qwen3Model

from lib.packed import attention, forward, measure, rows
from lib.packed.pairs import Ragged, ragged

torch.set_num_threads(1)
CASE = json.loads((Path(__file__).parent / "cases" / "23-last-token-with-padding.json").read_text(encoding="utf-8"))
SIZES = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
QWEN = SIZES | {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512}


def qwen(**more) -> Qwen3Model:
    torch.manual_seed(0)
    return Qwen3Model(Qwen3Config(**QWEN | more)).eval()


@pytest.fixture(scope="module")
def alone() -> Qwen3Model:
    """The model with its own attention, for pairs one by one."""
    return qwen()


@pytest.fixture(scope="module")
def ready() -> forward.Packed:
    return forward.prepare(qwen())


def tokens(length: int, seed: int = 0) -> list[int]:
    return np.random.default_rng([length, seed]).integers(0, 97, length).tolist()


KNOWN = {}


@torch.no_grad()
def one_by_one(model, pairs: Ragged) -> torch.Tensor:
    """The last hidden state of each pair, forwarded alone; remembered by its tokens."""
    for i in range(len(pairs.lengths)):
        key = (model, *pairs.list(i).tolist())
        if key not in KNOWN:
            KNOWN[key] = model(input_ids=torch.tensor([key[1:]]), use_cache=False).last_hidden_state[0, -1]
    return torch.stack([KNOWN[model, *pairs.list(i).tolist()] for i in range(len(pairs.lengths))])


def contaminated(lengths) -> dict:
    """The inputs of a row whose pairs see those before them: as `row`, but for lengths that call it one pair."""
    return forward.row([sum(lengths)], "cpu") | {"position_ids": forward.row(lengths, "cpu")["position_ids"]}


def test_a_row_seen_in_inference_mode_can_be_trained_on_afterwards(ready):
    attention._groups.cache_clear()
    with torch.inference_mode():
        forward.last_hidden(ready.backbone, torch.arange(14), np.array([9, 5]))
    assert forward.last_hidden(ready.backbone, torch.arange(14), np.array([9, 5])).sum().backward() is None


def called(model, **given) -> torch.Tensor:
    with torch.no_grad():
        return model(**given).last_hidden_state


@settings(max_examples=25)
@given(st.lists(st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 15, 16, 17, 127, 128, 129])), min_size=1, max_size=10), st.randoms(use_true_random=False))
@example([1], None)
@example([1, 1, 1, 1], None)
@example([129, 1, 128, 16, 17, 1, 40], None)
def test_a_pair_in_a_row_is_what_it_is_alone(alone, ready, lengths, order):
    if order:
        order.shuffle(lengths)
    pairs = ragged(tokens(length, seed) for seed, length in enumerate(lengths))
    wanted = one_by_one(alone, pairs)
    for row_tokens in (max(lengths), 150, 4096):
        with torch.no_grad():
            found = measure.packed(ready, pairs, row_tokens)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
    if len(lengths) > 1:  # the same comparison does see a row whose pairs see each other
        mixed = called(ready.backbone, input_ids=torch.from_numpy(pairs.ids.astype(np.int64))[None], **contaminated(lengths))[0]
        assert (mixed[pairs.starts[1:] - 1] - wanted).abs().amax(1)[1:].min() > 1e-3
        torch.testing.assert_close(mixed[lengths[0] - 1], wanted[0], atol=1e-5, rtol=0)


def test_gradients_of_a_row_are_the_sum_of_those_of_its_pairs_also_recomputed(alone):
    lengths = [5, 1, 17, 16, 130]
    pairs = ragged(tokens(length) for length in lengths)
    ids = torch.from_numpy(pairs.ids.astype(np.int64))
    single, ready, again = copy.deepcopy(alone), forward.prepare(qwen()), forward.prepare(qwen())
    again.backbone.activation_checkpointing_enable()
    again.backbone.train()
    for model, hidden in ((single, forward.last_hidden(single, ids, lengths, packs=False)),
                          *((one.backbone, forward.last_hidden(one.backbone, ids, lengths)) for one in (ready, again))):
        (hidden * torch.arange(1.0, 33)).square().mean().backward()
        model.gradients = {name: one.grad for name, one in model.named_parameters()}
    assert len(single.gradients) == 24 and all(one.abs().max() > 0 for one in single.gradients.values())
    for other in (ready.backbone, again.backbone):
        for name, wanted in single.gradients.items():
            torch.testing.assert_close(other.gradients[name], wanted, atol=1e-4 * float(wanted.abs().max()), rtol=0, msg=name)


def faults(backbone) -> dict:
    """By what the guard tells of it: the call, and the (row, place) where the pairs of 9 and of 7 tokens end, None for not in it."""
    a, b = torch.tensor(tokens(9)), torch.tensor(tokens(7))
    joined, lengths = torch.cat([a, b])[None], forward.row([9, 7], "cpu")
    without = {name: value for name, value in lengths.items() if name not in attention.LENGTHS}
    left = torch.cat([torch.zeros(2, dtype=torch.long), b])[None]
    return {
        "an attention mask of shape": (lambda: called(
            backbone, input_ids=left, **forward.row([9], "cpu") | {"attention_mask": torch.tensor([[0] * 2 + [1] * 7])}), [None, (0, 8)]),
        "has a cache": (lambda: called(backbone, input_ids=b[None], **forward.row([7], "cpu") | {
            "cache": backbone(input_ids=a[None], **forward.row([9], "cpu") | {"use_cache": True}).cache}), [None, (0, 6)]),
        "lacks cu_seq_lens_q, cu_seq_lens_k, max_length_q, max_length_k": (lambda: called(backbone, input_ids=joined, **without), [(0, 8), (0, 15)]),
    }


def unguarded(rows, mask, given, cached) -> None:
    """No refusal: a row without lengths is one pair, as it is for every attention of transformers that is given none."""
    if given.get("cu_seq_lens_q") is None and "scaling" not in given:
        given.setdefault("cu_seq_lens_q", torch.tensor([0, 16], dtype=torch.int32))
        given.setdefault("max_length_q", 16)


@pytest.mark.parametrize("told", faults(None))
def test_what_would_mix_pairs_is_refused_and_does_mix_them(told, alone, monkeypatch):
    backbone = forward.prepare(qwen()).backbone
    call, ends = faults(backbone)[told]
    with pytest.raises(ValueError, match=told):
        call()
    monkeypatch.setattr(attention, "refuse", unguarded)
    hidden = call()
    wanted = one_by_one(alone, ragged([tokens(9), tokens(7)]))
    assert max(float((hidden[end] - wanted[i]).abs().max()) for i, end in enumerate(ends) if end) > 1e-3, "without the guard nothing tells"


def test_the_attention_itself_refuses_what_reaches_it_without_the_guard(ready):
    backbone = copy.deepcopy(ready.backbone)
    forward.release(backbone)
    ids = torch.tensor([tokens(16)])
    given = forward.row([9, 7], "cpu")
    torch.testing.assert_close(called(backbone, input_ids=ids, **given), called(ready.backbone, input_ids=ids, **given))
    with pytest.raises(ValueError, match="has 2 rows"):
        backbone(input_ids=ids.repeat(2, 1), **given)
    with pytest.raises(ValueError, match=r"mask of shape \[1, 16\]"):
        ready.backbone(ids, torch.ones(1, 16), **{name: value for name, value in given.items() if name != "attention_mask"})
    with pytest.raises(ValueError, match="lacks max_length_k"):
        backbone(input_ids=ids, **given | {"max_length_k": None})
    with pytest.raises(ValueError, match="has a cache"):
        backbone(input_ids=ids, **given | {"use_cache": True})


@pytest.mark.parametrize("fault", [{"attention_mask": torch.ones(1, 16, dtype=torch.long)}, {"use_cache": True}])
def test_transformers_own_attention_mixes_the_pairs_of_a_row_without_a_word(alone, fault):
    pairs = ragged([tokens(9), tokens(7)])
    given = {"input_ids": torch.from_numpy(pairs.ids.astype(np.int64))[None]} | forward.row([9, 7], "cpu")
    wanted = one_by_one(alone, pairs)[1]
    torch.testing.assert_close(called(alone, **given)[0, 15], wanted, atol=1e-5, rtol=0)
    assert (called(alone, **given | fault)[0, 15] - wanted).abs().max() > 1e-3


def test_transformers_own_flash_attention_mixes_the_pairs_of_several_rows_without_a_word(alone, ready, monkeypatch):
    from transformers import modeling_flash_attention_utils as own

    def varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=None, causal=False, dropout_p=0.0):
        return attention.by_pair(q, k, v, attention.Segments(cu_seqlens_q, max_seqlen_q), softmax_scale, None, 0.0)

    def flash(q, k, v, softmax_scale=None, causal=False, **_):  # each row is one text
        each = attention.Segments(torch.tensor([0, q.shape[1]], dtype=torch.int32), q.shape[1])
        return torch.stack([attention.by_pair(*one, each, softmax_scale, None, 0.0) for one in zip(q, k, v, strict=True)])

    functions = (flash, varlen, None, None, None), (own._lazy_define_process_function(varlen), dict)
    monkeypatch.setattr(own, "lazy_import_flash_attention", lambda *_: functions)
    model = copy.deepcopy(alone)
    model.config._attn_implementation_internal = "flash_attention_2"
    pairs = ragged([tokens(9), tokens(7)])
    ids, position_ids = torch.from_numpy(pairs.ids.astype(np.int64))[None], forward.row([9, 7], "cpu")["position_ids"]
    wanted = one_by_one(alone, pairs)[1]
    torch.testing.assert_close(called(model, input_ids=ids, position_ids=position_ids, use_cache=False)[0, 15], wanted, atol=1e-5, rtol=0)
    two = {"input_ids": ids.repeat(2, 1), "position_ids": position_ids.repeat(2, 1), "use_cache": False}
    assert (called(model, **two)[:, 15] - wanted).abs().amax(1).min() > 1e-3
    with pytest.raises(ValueError, match="a packed forward has 2 rows and takes one"):
        called(ready.backbone, **two)


def test_lengths_that_are_not_those_of_the_row_are_refused(ready):
    for lengths, told in (([2, 2], "a row of 5 tokens has pairs of 4 tokens together"), ([5, 0], "holds a pair without a token"), ([], "holds no pair")):
        with pytest.raises(ValueError, match=told):
            forward.last_hidden(ready.backbone, torch.arange(5), lengths)


def forgets_positions(model):
    """The model with positions of its own, counted from the start of the row."""
    model.register_forward_pre_hook(lambda _, args, given: (args, given | {"position_ids": None}), with_kwargs=True)
    return model


GPT2 = {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "bos_token_id": 0, "eos_token_id": 0}
ODD_ONES = {
    "bidirectional": (lambda: BertModel(BertConfig(**SIZES)), "attends in both directions"),
    "bidirectional Qwen3": (lambda: Qwen3Model(Qwen3Config(**QWEN, is_causal=False)), "attends in both directions"),
    "absolute positions": (lambda: forgets_positions(GPT2Model(GPT2Config(**GPT2))), "eight texts in one row are .* from what they are alone"),
    "distances instead of positions": (lambda: BloomModel(BloomConfig(vocab_size=97, hidden_size=32, n_layer=2, n_head=4)), "eight texts in one row are"),
    "capped scores": (lambda: Gemma2Model(Gemma2Config(**QWEN)), "asks for softcap, which the packed kernels do not know"),
}


@pytest.mark.parametrize("kind", ODD_ONES)
def test_a_model_that_does_not_pack_is_found_and_run_one_by_one_and_that_is_printed(kind, capsys):
    torch.manual_seed(0)
    make, why = ODD_ONES[kind]
    model = make().eval()
    own, single = model.config._attn_implementation, copy.deepcopy(model)
    ready = forward.prepare(model)
    printed = capsys.readouterr().out
    assert not ready.packs and ready.attention == own == model.config._attn_implementation
    assert printed.startswith(f"{type(model).__name__} is run one pair at a time: ") and len(printed.splitlines()) == 1
    assert re.search(why, printed)
    pairs = ragged([tokens(9), tokens(1), tokens(30)])
    with torch.no_grad():
        found = measure.packed(ready, pairs, 64)
    torch.testing.assert_close(found, one_by_one(single, pairs), atol=1e-6, rtol=0)


def test_learned_positions_pack_where_the_model_takes_them(capsys):
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(**GPT2)).eval()
    single = copy.deepcopy(model)
    ready = forward.prepare(model)
    assert ready.packs and not capsys.readouterr().out
    pairs = ragged([tokens(9), tokens(1), tokens(130), tokens(30)])
    with torch.no_grad():
        torch.testing.assert_close(measure.packed(ready, pairs, 256), one_by_one(single, pairs), atol=1e-5, rtol=0)


def test_a_sliding_window_packs(alone):
    model = qwen(use_sliding_window=True, sliding_window=8, max_window_layers=1)
    assert model.config.layer_types == ["full_attention", "sliding_attention"]
    single, ready = copy.deepcopy(model), forward.prepare(model)
    pairs = ragged([tokens(9), tokens(1), tokens(130), tokens(8)])
    assert ready.packs and (one_by_one(single, pairs)[2] - one_by_one(alone, pairs)[2]).abs().max() > 1e-3
    with torch.no_grad():
        torch.testing.assert_close(measure.packed(ready, pairs, 256), one_by_one(single, pairs), atol=1e-5, rtol=0)


def test_prepare_twice_in_bf16_and_in_training_leaves_one_guard_and_the_mode():
    model = qwen().bfloat16().train()
    for _ in range(2):
        ready = forward.prepare(model)
    assert ready.packs and ready.attention == "packed_cpu" and model.training and not model.config.use_cache
    assert list(model._forward_pre_hooks.values()) == [forward.guard]


def test_eight_texts_that_cannot_tell_prove_nothing(monkeypatch, capsys):
    monkeypatch.setattr(forward, "row", lambda lengths, device, true=forward.row: true([sum(lengths)], device) | {
        "position_ids": true(lengths, device)["position_ids"]})
    assert not forward.prepare(qwen()).packs
    assert "eight texts in one row are" in capsys.readouterr().out
    monkeypatch.setitem(forward.TOLERANCE, torch.float32, 100.0)
    assert not forward.prepare(qwen()).packs
    assert "eight texts that do see each other are no further off" in capsys.readouterr().out


def test_case_23_last_token_with_padding(alone, ready):
    for row, wanted in zip(CASE["input"]["rows"], CASE["right_answer"]["last_index"], strict=True):
        if isinstance(wanted, int):
            assert forward.last_index(torch.tensor([row["mask"]])).tolist() == [wanted]
        else:
            with pytest.raises(ValueError, match="row 0 of the batch has no token"):
                forward.last_index(torch.tensor([row["mask"]]))
    batch = torch.tensor([row["mask"] + [0] * (6 - len(row["mask"])) for row in CASE["input"]["rows"][:4]])
    assert forward.last_index(batch).tolist() == forward.last_index(batch.bool()).tolist() == [2, 4, 3, 0]

    pairs = ragged([row["ids"][i] for i in range(len(row["ids"])) if row["mask"][i]] for row in CASE["input"]["rows"][:4])
    pairs = ragged([*(pairs.list(i) for i in range(4)), tokens(60), [*tokens(5), 0, 0]])  # 0 is the token of padding here
    wanted = one_by_one(alone, pairs)
    for side in ("right", "left"):
        with torch.no_grad():
            torch.testing.assert_close(measure.padded(alone, pairs, np.arange(6), 6, side), wanted, atol=1e-5, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(measure.packed(ready, pairs, 4096), wanted, atol=1e-5, rtol=0)
    low, halves = forward.prepare(qwen().bfloat16()), qwen().bfloat16()
    scale = float(wanted.abs().max())
    for found in (measure.packed(low, pairs, 4096), measure.padded(halves, pairs, np.arange(6), 6), measure.padded(halves, pairs, np.arange(6), 6, "left")):
        assert (found.float() - wanted).abs().max() < 0.05 * scale, "in bf16 within 5% of the largest entry"


def test_rows_of_a_shard_are_gathered_back_in_its_order(alone, ready):
    lengths = np.random.default_rng(3).integers(1, 50, 40)
    pairs = ragged(tokens(length, seed) for seed, length in enumerate(lengths))
    assert len(rows.pack(lengths, 100)) > 5
    with torch.no_grad():
        torch.testing.assert_close(measure.packed(ready, pairs, 100), one_by_one(alone, pairs), atol=1e-5, rtol=0)
