"""The relevance model: a causal backbone and a linear head in float32 that reads the last token of a pair."""

import json
from collections.abc import Mapping

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from lib import paths
from lib.corpus import token_table
from lib.packed import forward, pairs
from lib.packed.pairs import Ragged
from lib.retrieval import model_folder

HEAD_STD = 0.02  # of the new head's weights


class Scorer(nn.Module):
    """One number a pair. `forward` takes a packed row: ids int64[tokens] on the model's device, and the tokens of each pair."""

    def __init__(self, packed: forward.Packed, head: nn.Linear):
        super().__init__()
        self.backbone, self.head = packed.backbone, head
        self.attention, self.packs = packed.attention, packed.packs

    @property
    def device(self) -> torch.device:
        return next(self.head.parameters()).device

    def forward(self, ids: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """float32[n, 1]"""
        return self.head(forward.last_hidden(self.backbone, ids, lengths, self.packs).float())


def scores_of(scorer: Scorer, row: Ragged) -> torch.Tensor:
    """The scores of the pairs of one row, float32[n] on the model's device, with gradients where they are enabled."""
    return scorer(torch.from_numpy(row.ids.astype(np.int64)).to(scorer.device), row.lengths.tolist())[:, 0]


def build(settings: Mapping, sizes: Mapping | None, tokenizer: Tokenizer, seed: int, pair_tokens: int, device: torch.device,
          bias: float) -> Scorer:
    """The model of an arm before its first step: `sizes` of a Qwen3 from scratch, or None for the folder that `settings` name.

    `bias` is where the head starts: the mean label. On CUDA the backbone is bf16 until `shard` makes float32 masters of it.
    """
    torch.manual_seed(seed)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    backbone = _from_folder(settings["path"], tokenizer, dtype) if sizes is None else _from_scratch(sizes, tokenizer, pair_tokens)
    head = nn.Linear(backbone.config.get_text_config().hidden_size, 1)
    nn.init.normal_(head.weight, std=HEAD_STD)
    nn.init.constant_(head.bias, bias)
    return Scorer(forward.prepare(backbone.to(device, dtype)), head.to(device))


def vocabulary(tokenizer: Tokenizer) -> int:
    """The ids that a tokenizer can give lie below this."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1


def _from_scratch(sizes: Mapping[str, int], tokenizer: Tokenizer, pair_tokens: int) -> nn.Module:
    """A Qwen3 whose weights start with a deviation of 1 / sqrt(hidden): the usual 0.02 fits a width of 2,500, narrow ones hardly move from it."""
    from transformers import Qwen3Config, Qwen3Model

    return Qwen3Model(Qwen3Config(
        vocab_size=vocabulary(tokenizer), hidden_size=sizes["hidden"], num_hidden_layers=sizes["layers"], num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["kv_heads"], head_dim=sizes["head_dim"], intermediate_size=sizes["intermediate"],
        max_position_embeddings=pair_tokens, use_cache=False, initializer_range=sizes["hidden"] ** -0.5,
    ))


def _from_folder(path: str, tokenizer: Tokenizer, dtype: torch.dtype) -> nn.Module:
    """The backbone of a model's folder, without its language head; ValueError where it does not read the run's token ids."""
    folder = paths.source(path)
    own = token_table.load(folder)
    for pair in pairs.PROBES:
        if own.encode(*pair).ids != tokenizer.encode(*pair).ids:
            raise ValueError(f"the tokenizer of {path} reads {pair} as other ids than the run's tokenizer.json; "
                             "import the corpus with that tokenizer")
    backbone = model_folder.load(folder, dtype)
    rows, needed = backbone.get_input_embeddings().num_embeddings, vocabulary(tokenizer)
    if rows < needed:
        raise ValueError(f"the model of {path} has {rows:,} token vectors and the run's tokenizer gives ids up to {needed - 1:,}; "
                         "take the model's own tokenizer")
    return backbone


def sizes_of(backbone: nn.Module) -> dict:
    """The configuration as plain JSON, as `lib.packed.flops` takes it."""
    return json.loads(backbone.config.to_json_string(use_diff=False))


def parameters(scorer: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(one.numel() for one in scorer.parameters())


def shard(scorer: Scorer, device: torch.device, processes: int) -> None:
    """Spread the model over the processes (FSDP2): a group a decoder layer, one for the head, one for the rest.

    On CUDA the masters and the reduction are float32 and the layers compute in bf16; the head computes in float32. One
    process on the CPU keeps the plain module.
    """
    scorer.float()
    if device.type != "cuda" and processes == 1:
        return
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(device.type, (processes,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if device.type == "cuda" else MixedPrecisionPolicy()
    whole = set(getattr(scorer.backbone, "_no_split_modules", None) or ())
    for module in scorer.backbone.modules():
        if type(module).__name__ in whole:
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(scorer.head, mesh=mesh, mp_policy=MixedPrecisionPolicy(cast_forward_inputs=False))
    fully_shard(scorer, mesh=mesh, mp_policy=policy)
