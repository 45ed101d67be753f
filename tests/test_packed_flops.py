"""Operations of a pair against torch's own counter, and the hours of the published model."""

import json
import math

import numpy as np
import pytest
import torch

from lib.packed import flops, measure, memory

QWEN3_8B = {"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
            "intermediate_size": 12_288, "vocab_size": 151_669, "tie_word_embeddings": False}
TINY = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12}


def test_the_products_are_those_that_torch_counts():
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import Qwen3Config, Qwen3Model

    torch.set_num_threads(1)
    model = Qwen3Model(Qwen3Config(vocab_size=50, attn_implementation="eager", **TINY))
    matrices = sum(one.numel() for name, one in model.named_parameters() if "proj" in name)
    assert flops.parameters(TINY) == matrices == 2 * (32 * 12 * (4 + 2 + 2 + 4) + 3 * 32 * 48)
    for tokens in (1, 7, 40):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(input_ids=torch.zeros(1, tokens, dtype=torch.long), use_cache=False)
        whole_square = 2 * (2 * 2 * tokens * tokens * 4 * 12)  # two layers, two products; not causal
        rotary = 2 * tokens * 6  # the angles, counted by torch as a product
        causal = 2 * (2 * 2 * tokens * (tokens + 1) / 2 * 4 * 12)
        assert counter.get_total_flops() - whole_square - 2 * matrices * tokens in (0, rotary)
        assert flops.flop(TINY, [tokens]) == 2 * matrices * tokens + causal
    assert flops.flop(model.config.to_dict(), [3, 5]).tolist() == flops.flop(TINY, np.array([3, 5])).tolist()


def test_the_published_model_takes_390_to_416_hours_of_a_gpu():
    weights = 36 * (4096 * 128 * (32 + 8 + 8 + 32) + 3 * 4096 * 12_288)
    assert flops.parameters(QWEN3_8B) == weights == 6_945_767_424
    equal = flops.flop(QWEN3_8B, [2000])[0]
    assert equal == 2 * weights * 2000 + 36 * 2 * 2000 * 2001 * 4096
    assert flops.pairs_a_second(QWEN3_8B, [2000], 790e12) == pytest.approx(790e12 / equal) == pytest.approx(27.28, abs=0.01)
    pairs = 28_411_189 + 9_787_008 + 240  # short ones of v1, v2, trial
    assert math.isclose(pairs, 38.2e6, rel_tol=1e-3)
    lengths = measure.lognormal(np.random.default_rng(0), 100_000, 2000, 0.8, 8192)
    for spread in ([2000], lengths):
        assert 26.5 < flops.pairs_a_second(QWEN3_8B, spread, 790e12) < 27.5
        assert 388 < flops.gpu_hours(QWEN3_8B, spread, pairs, 790e12) < 416
    assert flops.gpu_hours(QWEN3_8B, [2000], pairs, 989.4e12, 0.5) == pytest.approx(pairs * equal / (0.5 * 989.4e12) / 3600)


def test_a_configuration_is_read_from_its_file_and_an_unknown_one_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN3_8B))
    assert flops.parameters(path) == flops.parameters(QWEN3_8B) and flops.flop(path, [5]) == flops.flop(QWEN3_8B, [5])
    plain = {name: value for name, value in TINY.items() if name not in ("num_key_value_heads", "head_dim")}
    assert flops.sizes(plain) | {"num_key_value_heads": 4, "head_dim": 8} == flops.sizes(plain), "as many as heads, and hidden / heads"
    with pytest.raises(ValueError, match="the configuration of a gpt2 lacks hidden_size, .*, so its products cannot be counted; pass the weights"):
        flops.parameters({"model_type": "gpt2", "n_embd": 32})
    with pytest.raises(ValueError, match="the configuration of a qwen3_moe is a mixture of experts"):
        flops.flop(QWEN3_8B | {"model_type": "qwen3_moe", "num_experts": 8}, [5])
    assert flops.flop(QWEN3_8B | {"num_experts": 8}, [5], weights=1000) == 2 * 1000 * 5 + 36 * 2 * 5 * 6 * 4096


def test_the_peak_of_a_known_gpu_is_its_makers_and_any_other_is_measured(monkeypatch):
    flops.peak.cache_clear()
    measured = flops.peak("cpu")
    assert 1e8 < measured < 1e13 and flops.peak("cpu") == measured
    for name, wanted in (("NVIDIA H200", 989.4e12), ("NVIDIA H100 PCIe", 756e12), ("NVIDIA H100 80GB HBM3", 989.4e12), ("NVIDIA A100-SXM4-80GB", 312e12),
                         ("NVIDIA L40S", 362e12), ("NVIDIA L4", 121e12), ("NVIDIA GB200", 2250e12)):
        flops.peak.cache_clear()
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device, name=name: name)
        assert flops.peak("cuda") == wanted
    flops.peak.cache_clear()


def test_freed_memory_is_kept_where_the_c_library_can():
    import platform

    assert memory.keep_freed() == (platform.libc_ver()[0] == "glibc")
