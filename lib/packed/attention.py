"""Causal attention inside each pair of a row, on the kernel that the device has.

A kernel is called as `kernel(query, key, value, segments, scale, window, dropout)` with query [tokens, heads, dim], key and
value [tokens, kv heads, dim], and gives [tokens, heads, dim]. `choose` decides once for a device and a dtype; each kernel is
registered with transformers' AttentionInterface, and a model reaches it with `cu_seq_lens_q/k` and `max_length_q/k`.
transformers makes no mask for a name that it doesn't know, so none of these names may be one of its own.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from inspect import signature
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

SHORT, STEP = 128, 16  # pairs up to SHORT tokens go together with those of the same length in steps of STEP
LENGTHS = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k")
OTHER_ATTENTION = ("softcap", "s_aux", "position_bias")  # options that change the scores, which no kernel here knows


class Segments(NamedTuple):
    """The pairs of a row: `cumulative`, int32[n + 1] on the device, from 0 to the row's tokens; the tokens of the longest."""

    cumulative: torch.Tensor
    longest: int


@lru_cache(maxsize=4)
def _groups(lengths: tuple[int, ...]) -> tuple[np.ndarray, list[tuple[int, int]], np.ndarray]:
    """(take, [(pairs, width)], back): the row's tokens by pairs of equal width, and where each token then stands.

    A short pair is widened by its own last token: causally no token before it sees that, so no mask is needed.
    [3, 200, 2] gives widths 16, 16, 200 and the groups (2, 16), (1, 200).
    """
    length = np.array(lengths)
    width = np.where(length <= SHORT, -(-length // STEP) * STEP, length)
    order = np.argsort(width, kind="stable")
    start, begin = np.cumsum(length) - length, np.cumsum(width[order]) - width[order]
    within = np.arange(width.sum()) - np.repeat(begin, width[order])
    take = np.repeat(start[order], width[order]) + np.minimum(within, np.repeat(length[order] - 1, width[order]))
    moved = np.empty_like(begin)
    moved[order] = begin
    back = np.repeat(moved - start, length) + np.arange(length.sum())
    sizes, counts = np.unique(width[width <= SHORT], return_counts=True)
    groups = [*zip(counts.tolist(), sizes.tolist(), strict=True), *((1, size) for size in width[order].tolist() if size > SHORT)]
    return take, groups, back


def by_pair(query, key, value, segments: Segments, scale: float | None, window: int | None, dropout: float) -> torch.Tensor:
    """One call of scaled_dot_product_attention a pair, or a group of short pairs; for the CPU, and float32 on any device."""
    take, groups, back = _groups(tuple(segments.cumulative.diff().tolist()))
    take, back = (torch.from_numpy(one).to(query.device) for one in (take, back))
    sizes = [pairs * width for pairs, width in groups]
    gqa, mixed = query.shape[1] != key.shape[1], []
    for (pairs, width), *parts in zip(groups, *(one.index_select(0, take).split(sizes) for one in (query, key, value)), strict=True):
        q, k, v = (one.unflatten(0, (pairs, width)).transpose(1, 2) for one in parts)
        band = None
        if window is not None and width > window:
            back_by = torch.arange(width, device=q.device)[:, None] - torch.arange(width, device=q.device)
            band = (back_by >= 0) & (back_by < window)
        out = scaled_dot_product_attention(q, k, v, attn_mask=band, is_causal=band is None, scale=scale, dropout_p=dropout, enable_gqa=gqa)
        mixed.append(out.transpose(1, 2).flatten(0, 1))
    return torch.cat(mixed).index_select(0, back)


def flash_attn(query, key, value, segments: Segments, scale: float | None, window: int | None, dropout: float) -> torch.Tensor:
    """FlashAttention 2 from the flash-attn package: bf16 or fp16 on CUDA."""
    from flash_attn import flash_attn_varlen_func

    return flash_attn_varlen_func(
        query, key, value, segments.cumulative, segments.cumulative, segments.longest, segments.longest,
        dropout_p=dropout, softmax_scale=scale, causal=True, window_size=(-1, -1) if window is None else (window - 1, 0),
        deterministic=torch.are_deterministic_algorithms_enabled(),
    )


def torch_varlen(query, key, value, segments: Segments, scale: float | None, window: int | None, dropout: float) -> torch.Tensor:
    """`torch.nn.attention.varlen`, bf16 or fp16 on CUDA, whose options differ between the releases of torch.

    2.10 has `is_causal` and no scale, window or grouped queries; 2.11 has `scale` and `window_size`, where causal is (-1, 0);
    2.12 adds `enable_gqa`.
    """
    from torch.nn.attention.varlen import varlen_attn

    known, options = signature(varlen_attn).parameters, {}
    if dropout:
        raise NotImplementedError(f"torch.nn.attention.varlen has no dropout and the model asks for {dropout}; set attention_dropout to 0")
    if "window_size" in known:
        options["window_size"] = (-1 if window is None else window - 1, 0)
    elif window is None:
        options["is_causal"] = True
    else:
        raise NotImplementedError(f"varlen_attn of torch {torch.__version__} has no window and the model asks for {window} tokens; take torch 2.11")
    if "scale" in known:
        options["scale"] = scale
    elif scale is not None:
        query = query * (scale * query.shape[-1] ** 0.5)
    if (group := query.shape[1] // key.shape[1]) > 1 and "enable_gqa" in known:
        options["enable_gqa"] = True
    elif group > 1:
        key, value = (one.repeat_interleave(group, 1) for one in (key, value))
    return varlen_attn(query, key, value, segments.cumulative, segments.cumulative, segments.longest, segments.longest, **options)


KERNELS = {"packed_cpu": by_pair, "packed_fa2": flash_attn, "packed_torch": torch_varlen}


def choose(device: torch.device | str, dtype: torch.dtype = torch.bfloat16) -> str:
    """The kernel's name: on CUDA in bf16 or fp16 flash-attn where it is installed, else torch's; everywhere else by pair."""
    if torch.device(device).type != "cuda" or dtype not in (torch.bfloat16, torch.float16):
        return "packed_cpu"
    try:
        from flash_attn import flash_attn_varlen_func  # noqa: F401
    except ImportError:  # not installed, or built for another torch
        return "packed_torch"
    return "packed_fa2"


def attend(kernel: Callable, module, query, key, value, attention_mask, *, scaling: float | None = None, sliding_window: int | None = None,
           dropout: float = 0.0, is_causal: bool | None = None, **given) -> tuple[torch.Tensor, None]:
    """What transformers calls: query [1, heads, tokens, dim] in, ([1, tokens, heads, dim], None) out.

    Raises ValueError for what would mix pairs, NotImplementedError for a model whose attention is of another kind.
    """
    refuse(query.shape[0], attention_mask, given, cached=key.shape[2] - query.shape[2])
    if not (getattr(module, "is_causal", True) if is_causal is None else is_causal):
        raise NotImplementedError(f"{type(module).__name__} attends in both directions, and a packed row is causal")
    if other := [name for name in OTHER_ATTENTION if given.get(name) is not None]:
        raise NotImplementedError(f"{type(module).__name__} asks for {', '.join(other)}, which the packed kernels do not know")
    segments = Segments(given["cu_seq_lens_q"], given["max_length_q"])
    return kernel(*(one[0].transpose(0, 1) for one in (query, key, value)), segments, scaling, sliding_window, dropout)[None], None


def refuse(rows: int, mask: torch.Tensor | None, given: dict, cached: int) -> None:
    """ValueError for what makes transformers mix the pairs of a row without a word: several rows, a mask, a cache, no lengths."""
    if rows != 1:
        raise ValueError(f"a packed forward has {rows} rows and takes one, whose lengths it is given; forward one row at a time")
    if mask is not None:
        raise ValueError(f"a packed forward has an attention mask of shape {list(mask.shape)} and takes none; drop the padding")
    if cached or given.get("use_cache"):
        raise ValueError("a packed forward has a cache and takes none; pass use_cache=False and no cache")
    if missing := [name for name in LENGTHS if given.get(name) is None]:
        raise ValueError(f"a packed forward lacks {', '.join(missing)} and would take the row for one pair; pass what lib.packed.forward.row gives")


def register() -> None:
    """Make the kernels known to transformers; a second call changes nothing."""
    from transformers import AttentionInterface

    for name, kernel in KERNELS.items():
        AttentionInterface.register(name, partial(attend, kernel))
