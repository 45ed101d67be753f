"""The packed forward: one row of token ids of many pairs in, the last hidden state of each pair out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from lib.packed import attention, memory

PROBE = (5, 1, 17, 2, 33, 3, 8, 64)  # tokens of the eight texts on which a model must prove that it packs
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}  # of the largest entry, or of 1 where that is more


class Packed(NamedTuple):
    """A backbone made ready by `prepare`: which attention it runs on, and whether a row may hold more than one pair."""

    backbone: torch.nn.Module
    attention: str
    packs: bool


def row(lengths: Sequence[int], device: torch.device | str) -> dict:
    """What a packed row needs besides its token ids; [3, 2] gives the positions 0 1 2 0 1 and the cumulative lengths 0 3 5."""
    lengths = np.asarray(lengths, np.int64)
    if not len(lengths) or lengths.min() < 1:
        what = "a pair without a token" if len(lengths) else "no pair"
        raise ValueError(f"a packed row holds {what}, so there is no last token to read; leave empty pairs and empty rows out")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    cumulative, longest = torch.from_numpy(starts.astype(np.int32)).to(device), int(lengths.max())
    return {
        "position_ids": torch.from_numpy(positions)[None].to(device), "attention_mask": None, "use_cache": False,
        "cu_seq_lens_q": cumulative, "cu_seq_lens_k": cumulative, "max_length_q": longest, "max_length_k": longest,
    }


def last_hidden(backbone: torch.nn.Module, ids: torch.Tensor, lengths: Sequence[int], packs: bool = True) -> torch.Tensor:
    """The last hidden state of the last token of each pair of one row, [n, hidden] in the backbone's dtype.

    ids: int64[tokens] on the backbone's device; lengths: the tokens of each pair in order, at least 1. Gradients flow.
    With `packs` false every pair is a forward of its own, for a model that does not pack.
    """
    lengths = [int(length) for length in lengths]
    inputs = row(lengths, ids.device)
    if sum(lengths) != len(ids):
        raise ValueError(f"a row of {len(ids)} tokens has pairs of {sum(lengths)} tokens together; pass the lengths of this row")
    if not packs:
        return torch.cat([backbone(input_ids=one[None], use_cache=False).last_hidden_state[:, -1] for one in ids.split(lengths)])
    hidden = backbone(input_ids=ids[None], **inputs).last_hidden_state[0]
    return hidden[inputs["cu_seq_lens_q"][1:].long() - 1]


def last_index(mask: torch.Tensor) -> torch.Tensor:
    """The place of the last token of each row of a padded batch, int64[rows], from its mask [rows, width] of 0 and 1.

    Padding may stand on either side and its token may also stand in the text. ValueError for a row without a token.
    """
    if len(empty := (mask.sum(1) == 0).nonzero()):
        raise ValueError(f"row {int(empty[0])} of the batch has no token, so no last one; leave empty pairs out")
    return (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).argmax(1)


def guard(backbone: torch.nn.Module, args: tuple, given: dict) -> None:
    """The forward pre-hook of a packing backbone: ValueError for a call that would mix pairs (see `attention.refuse`).

    transformers drops a 2-D mask before an attention of ours could see it, and a first forward fills a cache unseen.
    """
    given = given | dict(zip(("input_ids", "attention_mask"), args, strict=False))
    ids = given["inputs_embeds"] if given.get("input_ids") is None else given["input_ids"]
    use = getattr(backbone.config, "use_cache", False) if given.get("use_cache") is None else given["use_cache"]
    cached = given.get("cache") is not None or given.get("past_key_values") is not None
    attention.refuse(ids.shape[0], given.get("attention_mask"), given | {"use_cache": use}, cached)


def prepare(backbone: torch.nn.Module) -> Packed:
    """Set the attention for the backbone's device and dtype, no cache, and the guard; prove on eight texts that it packs.

    A model that doesn't (bidirectional, positions of its own, another attention) gets its own attention back and `packs`
    False, which is printed with the reason. Do this on the whole model in the dtype of its forwards, before it is sharded or
    its parameters become float32 masters.
    """
    attention.register()
    memory.keep_freed()
    own, first = backbone.config._attn_implementation, next(backbone.parameters())
    own, name = "sdpa" if own in attention.KERNELS else own, attention.choose(first.device, first.dtype)
    backbone.config.use_cache = False
    training = backbone.training
    backbone.eval()
    backbone.set_attn_implementation(own)
    release(backbone)
    try:
        ids = (torch.arange(sum(PROBE), device=first.device) * 7919 + 11) % backbone.get_input_embeddings().num_embeddings
        with torch.no_grad():
            alone = last_hidden(backbone, ids, PROBE, packs=False).float()
            backbone.set_attn_implementation(name)
            why = _differs(backbone, ids, alone, TOLERANCE.get(first.dtype, 1e-5))
    finally:
        backbone.train(training)
    if why:
        backbone.set_attn_implementation(own)
        print(f"{type(backbone).__name__} is run one pair at a time: {why}", flush=True)
        return Packed(backbone, own, False)
    backbone.register_forward_pre_hook(guard, with_kwargs=True)
    return Packed(backbone, name, True)


def release(backbone: torch.nn.Module) -> None:
    """Take the guard of an earlier `prepare` off."""
    hooks = backbone._forward_pre_hooks
    for key in [key for key, hook in hooks.items() if hook is guard]:
        del hooks[key]
        backbone._forward_pre_hooks_with_kwargs.pop(key, None)


def _differs(backbone: torch.nn.Module, ids: torch.Tensor, alone: torch.Tensor, tolerance: float) -> str | None:
    """Why the eight texts in one row are not what they are alone, or None.

    A row whose lengths are wrong is the control: where it does as well as the right one, the texts prove nothing.
    """
    try:
        packed = last_hidden(backbone, ids, PROBE).float()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # a model may refuse what it doesn't know in any way
        return f"it does not take a packed row ({type(error).__name__}: {error})"
    scale = max(1.0, float(alone.abs().max()))
    found = float((packed - alone).abs().max()) / scale
    if not found <= tolerance:
        return f"eight texts in one row are {found:.2g} from what they are alone, and {tolerance:g} is allowed"
    mixed = row([len(ids)], ids.device) | {"position_ids": row(PROBE, ids.device)["position_ids"]}
    hidden = backbone(input_ids=ids[None], **mixed).last_hidden_state[0]
    control = float((hidden[np.cumsum(PROBE) - 1].float() - alone).abs().max()) / scale
    if not control > 4 * found:
        return f"eight texts that do see each other are no further off ({control:.2g}) than those that must not ({found:.2g})"
    return None
