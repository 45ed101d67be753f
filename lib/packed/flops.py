"""The floating-point operations of a pair, and what they take at a share of a device's peak.

A multiplication and an addition count as two, as in the figures of the makers of GPUs. Counted are the matrix products of a
forward: every weight but the embedding once a token, and the two products of causal attention, each token with itself and
those before it.
"""

import json
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

# FLOP/s of dense bf16 products as NVIDIA's data sheets give them; the first name that the device's name holds counts
PEAKS = {"B200": 2250e12, "GH200": 989.4e12, "H200": 989.4e12, "H100 PCIe": 756e12, "H100": 989.4e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


def sizes(config: Mapping | str | Path) -> dict:
    """The sizes of a decoder with a gated feed-forward (Llama, Mistral, Qwen), from its configuration or the file `config.json`.

    ValueError where one is missing, or where the model is a mixture of experts: then give `flop` the active weights.
    """
    config = config if isinstance(config, Mapping) else json.loads(Path(config).read_text(encoding="utf-8"))
    missing = [name for name in NEEDED if not isinstance(config.get(name), int)]
    if missing or config.get("num_experts") or config.get("num_local_experts"):
        why = f"lacks {', '.join(missing)}" if missing else "is a mixture of experts"
        raise ValueError(f"the configuration of a {config.get('model_type', 'model without a type')} {why}, so its products cannot be counted; "
                         "pass the weights that a token meets as `parameters`")
    heads = config["num_attention_heads"]
    return {name: config[name] for name in NEEDED} | {
        "num_key_value_heads": config.get("num_key_value_heads") or heads,
        "head_dim": config.get("head_dim") or config["hidden_size"] // heads,
    }


def parameters(config: Mapping | str | Path) -> int:
    """The weights of the matrices that a token meets in a forward: attention and feed-forward of all layers, no embedding."""
    size = sizes(config)
    queries, keys = (size[name] * size["head_dim"] for name in ("num_attention_heads", "num_key_value_heads"))
    return size["num_hidden_layers"] * size["hidden_size"] * (2 * queries + 2 * keys + 3 * size["intermediate_size"])


def flop(config: Mapping | str | Path, lengths: Sequence[int] | np.ndarray, weights: int | None = None) -> np.ndarray:
    """The operations of one forward of each pair, float64[n]; training is three times that.

    lengths: the tokens of each pair. `weights`: what a token meets where `parameters` cannot say it.
    """
    tokens = np.asarray(lengths, np.float64)
    config = config if isinstance(config, Mapping) else json.loads(Path(config).read_text(encoding="utf-8"))
    weights = parameters(config) if weights is None else weights
    heads = config["num_attention_heads"]
    width = heads * (config.get("head_dim") or config["hidden_size"] // heads)
    return 2 * weights * tokens + config["num_hidden_layers"] * 2 * tokens * (tokens + 1) * width


def pairs_a_second(config: Mapping | str | Path, lengths: Sequence[int] | np.ndarray, rate: float, share: float = 1.0) -> float:
    """Pairs of these lengths in a second on one device that does `share` of `rate` FLOP/s."""
    return rate * share / float(flop(config, lengths).mean())


def gpu_hours(config: Mapping | str | Path, lengths: Sequence[int] | np.ndarray, pairs: int, rate: float, share: float = 1.0) -> float:
    """Hours of one device for `pairs` pairs whose lengths are spread as the given ones are."""
    return pairs / pairs_a_second(config, lengths, rate, share) / 3600


@lru_cache
def peak(device: str = "cpu") -> float:
    """FLOP/s of a device: from its maker's data sheet in bf16, else measured once by a product of two matrices.

    On the CPU in float32, on as many threads as torch uses in this process.
    """
    import torch

    device = torch.device(device)
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        for known, rate in PEAKS.items():
            if known in name:
                return rate
    size, dtype, times = (8192, torch.bfloat16, 10) if device.type == "cuda" else (768, torch.float32, 20)
    a, b = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        float((a @ b)[0, 0])  # waits for the device
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best
