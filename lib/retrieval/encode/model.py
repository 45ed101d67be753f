"""The vector of a text by a transformers model: packed rows in, the last token's state or the mean of all out.

Where a model does not prove that it packs (`lib.packed.forward.prepare` prints why), its texts are forwarded one by one.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from lib.packed import forward, rows
from lib.packed.forward import Packed
from lib.packed.pairs import Ragged
from lib.retrieval import model_folder


def device_of(name: str = "auto") -> torch.device:
    """"auto" is the first CUDA device, or the CPU where there is none."""
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


def pretrained(folder: str | Path, auto: str = "AutoModel", device: str = "auto") -> torch.nn.Module:
    """A transformers folder as a model that only reads: bf16 on CUDA, float32 elsewhere (`model_folder.load`).

    One thread on the CPU, or those of OMP_NUM_THREADS: the number changes the last bits.
    """
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    place = device_of(device)
    dtype = torch.bfloat16 if place.type == "cuda" else torch.float32
    return model_folder.load(folder, dtype, auto).to(place).eval().requires_grad_(False)


def load(folder: str | Path, device: str = "auto") -> Packed:
    """The encoder of a folder, ready for `vectors`."""
    return forward.prepare(pretrained(folder, device=device))


def packed_rows(lengths: np.ndarray, row_tokens: int, packs: bool) -> list[np.ndarray]:
    """Rows of text numbers; one text a row where the model cannot read several."""
    return rows.pack(lengths, row_tokens) if packs else list(np.arange(len(lengths))[:, None])


def on(backbone: torch.nn.Module, given: Ragged) -> torch.Tensor:
    """The ids of one row on the backbone's device, int64[tokens]."""
    return torch.from_numpy(given.ids.astype(np.int64)).to(next(backbone.parameters()).device)


def pooled(ready: Packed, ids: torch.Tensor, lengths: Sequence[int], pooling: str) -> torch.Tensor:
    """float32[n, hidden] for the n texts of one row: the state of each last token, or the mean over all tokens of each."""
    if pooling == "last":
        return forward.last_hidden(ready.backbone, ids, lengths, ready.packs).float()
    if ready.packs:
        hidden = ready.backbone(input_ids=ids[None], **forward.row(lengths, ids.device)).last_hidden_state[0]
    else:
        hidden = torch.cat([ready.backbone(input_ids=one[None]).last_hidden_state[0] for one in ids.split(list(lengths))])
    return torch.segment_reduce(hidden.float(), "mean", lengths=torch.tensor(lengths, device=ids.device))


@torch.inference_mode()
def vectors(ready: Packed, given: Ragged, pooling: str, row_tokens: int) -> np.ndarray:
    """float32[n, hidden], one row a text of at least one token, in the order given; not normalised."""
    found = np.empty((len(given.lengths), ready.backbone.config.get_text_config().hidden_size), np.float32)
    for row in packed_rows(given.lengths, row_tokens, ready.packs):
        some = given.take(row)
        found[row] = pooled(ready, on(ready.backbone, some), some.lengths.tolist(), pooling).cpu().numpy()
    return found
