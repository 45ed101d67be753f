"""Qwen3-Reranker, zero-shot: how much more likely the next token is yes than no, for packed pairs.

Only the last hidden state of a pair meets the language head, and of the head only two rows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from lib import paths
from lib.corpus import token_table
from lib.packed import forward
from lib.packed.forward import Packed
from lib.packed.pairs import Ragged
from lib.retrieval.encode import model
from lib.retrieval.rerank import Scorer, template

ANSWERS = ("yes", "no")


class Reranker(NamedTuple):
    """A backbone that is ready, the head's rows of yes and no (float32[2, hidden]) with their biases (float32[2]), the tokenizer."""

    ready: Packed
    rows: torch.Tensor
    bias: torch.Tensor
    tokenizer: Tokenizer


def load(folder: str | Path, device: str = "auto") -> Reranker:
    """The reranker of a transformers folder; ValueError where it has no language head or no token for yes or no."""
    tokenizer = token_table.load(folder)
    answers = [tokenizer.token_to_id(answer) for answer in ANSWERS]
    if None in answers:
        raise ValueError(f"the tokenizer of {paths.shown(paths.source(folder))} has no token {ANSWERS[answers.index(None)]!r}; name the folder of a Qwen3-Reranker")
    whole = model.pretrained(folder, "AutoModelForCausalLM", device)
    head = whole.get_output_embeddings()
    bias = head.weight.new_zeros(2) if getattr(head, "bias", None) is None else head.bias[answers]
    return Reranker(forward.prepare(whole.base_model), head.weight[answers].float(), bias.float(), tokenizer)


@torch.inference_mode()
def logits(by: Reranker, given: Ragged, row_tokens: int) -> np.ndarray:
    """float32[n, 2]: the logits of yes and no after each pair, in the order given."""
    found, ready = np.empty((len(given.lengths), 2), np.float32), by.ready
    for row in model.packed_rows(given.lengths, row_tokens, ready.packs):
        some = given.take(row)
        hidden = forward.last_hidden(ready.backbone, model.on(ready.backbone, some), some.lengths.tolist(), ready.packs)
        found[row] = (hidden.float() @ by.rows.T + by.bias).cpu().numpy()
    return found


def scorer(folder: str | Path, instruction: str, name: str = "", document_tokens: int = template.DOCUMENT_TOKENS,
           row_tokens: int = 65_536, device: str = "auto") -> Scorer:
    """The scorer of a folder, named after it: logit(yes) - logit(no), any finite number, higher is more relevant."""
    by = load(folder, device)

    def score(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        given, _ = template.read(by.tokenizer, instruction, queries, documents, document_tokens)
        yes, no = logits(by, given, row_tokens).T
        return yes - no

    return Scorer(name or Path(folder).name, score)
