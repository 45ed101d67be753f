"""The packed forward: one row of token ids of many pairs in, the last hidden state of each pair out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from lib.packed import attention


class Packed(NamedTuple):
    """A backbone made ready by `prepare`: which attention it runs on, and whether rows may hold more than one pair."""

    backbone: torch.nn.Module
    attention: str
    packs: bool


def row(lengths: Sequence[int], device: torch.device) -> dict:
    """What a packed row needs besides its token ids; positions restart at each pair.

    [3, 2] gives positions 0 1 2 0 1 and cumulative lengths 0 3 5.
    """
    lengths = np.asarray(lengths, np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    cumulative = torch.from_numpy(starts.astype(np.int32)).to(device)
    longest = int(lengths.max())
    return {
        "position_ids": torch.from_numpy(positions)[None].to(device),
        "attention_mask": None,
        "cu_seq_lens_q": cumulative, "cu_seq_lens_k": cumulative, "max_length_q": longest, "max_length_k": longest,
        "use_cache": False,
    }


def last_hidden(backbone: torch.nn.Module, ids: torch.Tensor, lengths: Sequence[int], packs: bool = True) -> torch.Tensor:
    """The last hidden state of the last token of each pair of one row, [n, hidden] in the backbone's dtype.

    ids is int64[tokens] on the backbone's device, `lengths` are the tokens of each pair in order. Gradients flow.
    With `packs` false each pair is a forward of its own.
    """
    if not packs:
        return torch.cat([backbone(input_ids=one[None], use_cache=False).last_hidden_state[0, -1:] for one in ids.split(list(lengths))])
    hidden = backbone(input_ids=ids[None], **row(lengths, ids.device)).last_hidden_state[0]
    return hidden[torch.from_numpy(np.cumsum(lengths) - 1).to(ids.device)]


def prepare(backbone: torch.nn.Module) -> Packed:
    """Set the attention of the backbone's device and no cache."""
    attention.register()
    name = attention.choose(next(backbone.parameters()).device)
    backbone.set_attn_implementation(name)
    backbone.config.use_cache = False
    return Packed(backbone, name, True)
