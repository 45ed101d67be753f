"""Causal attention inside each segment of a row, on the kernel that the device has.

One interface: `kernel(query, key, value, segments, scale, window, dropout)` with query [tokens, heads, dim], key and value
[tokens, kv heads, dim] gives [tokens, heads, dim]. `choose` names the kernel once for a device; each is registered with
transformers' AttentionInterface under that name and reached from a model with `cu_seq_lens_q/k` and `max_length_q/k`.
"""

from collections.abc import Callable
from importlib.util import find_spec
from inspect import signature
from typing import NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa


class Segments(NamedTuple):
    """The pairs of a row: `cumulative` int32[n + 1] on the device starts at 0 and ends at the row's tokens; `longest` of them."""

    cumulative: torch.Tensor
    longest: int


def choose(device: torch.device | str) -> str:
    """The name of the kernel for a device: packed_fa2 (CUDA with flash-attn), packed_torch (CUDA without), packed_cpu."""
    if torch.device(device).type != "cuda":
        return "packed_cpu"
    return "packed_fa2" if find_spec("flash_attn") else "packed_torch"


def cpu(query, key, value, segments: Segments, scale: float | None, window: int | None, dropout: float) -> torch.Tensor:
    """One causal attention a segment, without a mask."""
    lengths = segments.cumulative.diff().tolist()
    out = []
    for q, k, v in zip(query.split(lengths), key.split(lengths), value.split(lengths), strict=True):
        q, k, v = (one.transpose(0, 1)[None] for one in (q, k, v))
        banded = None
        if window is not None and len(q[0, 0]) > window:
            at = torch.arange(q.shape[2], device=q.device)
            back = at[:, None] - at
            banded = (back >= 0) & (back < window)
        mixed = sdpa(q, k, v, attn_mask=banded, is_causal=banded is None, scale=scale, dropout_p=dropout, enable_gqa=q.shape[1] != k.shape[1])
        out.append(mixed[0].transpose(0, 1))
    return torch.cat(out)


def fa2(query, key, value, segments: Segments, scale: float | None, window: int | None, dropout: float) -> torch.Tensor:
    """FlashAttention 2 of the flash-attn package (bf16 or fp16 on CUDA)."""
    from flash_attn import flash_attn_varlen_func

    return flash_attn_varlen_func(
        query, key, value, segments.cumulative, segments.cumulative, segments.longest, segments.longest,
        dropout_p=dropout, softmax_scale=scale, causal=True, window_size=(-1 if window is None else window - 1, 0 if window else -1),
    )


def torch_varlen(query, key, value, segments: Segments, scale: float | None, window: int | None, dropout: float) -> torch.Tensor:
    """`torch.nn.attention.varlen` (bf16 or fp16 on CUDA)."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(query, key, value, segments.cumulative, segments.cumulative, segments.longest, segments.longest,
                       **options(varlen_attn, query.shape[1] // key.shape[1], scale, window, dropout))


def options(function: Callable, group: int, scale: float | None, window: int | None, dropout: float) -> dict:
    """What to pass to a release of varlen_attn besides tensors: torch 2.10 has `is_causal`, later ones `window_size`, GQA is newer."""
    if dropout:
        raise NotImplementedError(f"torch.nn.attention.varlen has no dropout and the model asks for {dropout}; set attention_dropout to 0")
    known = signature(function).parameters
    wanted = {"scale": scale}
    if "window_size" in known:
        wanted["window_size"] = (-1 if window is None else window - 1, 0)
    elif window is None:
        wanted["is_causal"] = True
    else:
        raise NotImplementedError("varlen_attn has no window")
    if group > 1:
        wanted["enable_gqa"] = True
    return wanted


KERNELS = {"packed_cpu": cpu, "packed_fa2": fa2, "packed_torch": torch_varlen}


def attend(kernel: Callable, module, query, key, value, attention_mask, *, cu_seq_lens_q=None, cu_seq_lens_k=None, max_length_q=None,
           max_length_k=None, scaling=None, sliding_window=None, dropout=0.0, is_causal=None, **_) -> tuple[torch.Tensor, None]:
    """The call of transformers' AttentionInterface: [1, heads, tokens, dim] in, [1, tokens, heads, dim] out."""
    out = kernel(*(one[0].transpose(0, 1) for one in (query, key, value)), Segments(cu_seq_lens_q, max_length_q), scaling, sliding_window, dropout)
    return out[None], None


def register() -> None:
    """Make the kernels known to transformers; a second call changes nothing."""
    from functools import partial

    from transformers import AttentionInterface

    for name, kernel in KERNELS.items():
        AttentionInterface.register(name, partial(attend, kernel))
