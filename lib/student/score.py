"""Scores of pairs by a trained model: packed rows in, one float32 a pair out.

Held-out pairs while training, the gate and the labelling run all score through `score_rows`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

from lib import paths
from lib.packed import forward
from lib.packed.pairs import DOCUMENT_CHARS, PAIR_TOKENS, Ragged, Template, document_start, join, ragged, template
from lib.retrieval import model_folder
from lib.student import batches, checkpoints
from lib.student.model import Scorer, scores_of


class Student(NamedTuple):
    """A model that scores, and how a pair is read for it; `record` is the checkpoint's, {} for a model from elsewhere."""

    scorer: Scorer
    template: Template
    pair_tokens: int
    pair_chars: int
    record: dict


def device_of(name: str = "auto") -> torch.device:
    """"auto" is the first CUDA device, or the CPU where there is none."""
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


def load(checkpoint: str | Path, device: str = "auto") -> Student:
    """The model of a checkpoint's folder, in the dtype it was trained to score in, ready to score."""
    checkpoint = Path(checkpoint)
    known = checkpoints.record(checkpoint)
    backbone = model_folder.load(checkpoint / "model", getattr(torch, known["dtype"])).to(device_of(device))
    head = nn.Linear(backbone.config.get_text_config().hidden_size, 1)
    try:
        head.load_state_dict(load_file(checkpoint / "head.safetensors"))
    except (OSError, RuntimeError) as error:
        told = f"{paths.shown(checkpoint / 'head.safetensors')} does not fit the model ({' '.join(str(error).split())})"
        raise ValueError(f"{told}; train the arm again") from error
    scorer = Scorer(forward.prepare(backbone), head.to(device_of(device))).eval()
    return Student(scorer, Template(*map(tuple, known["template"])), known["pair_tokens"], known["pair_chars"], known)


def score(student: Student, given: Ragged, row_tokens: int) -> np.ndarray:
    """float32[n], one a pair, in the order given; the pairs are packed into rows of at most `row_tokens`.

    A score that is not finite comes back as it is: `lib.student.cuts` gives it no label, the gate counts it.
    """
    return score_rows(student.scorer, given, batches.pack(given.lengths, row_tokens, student.scorer.packs))


def score_rows(scorer: Scorer, given: Ragged, rows: Sequence[np.ndarray]) -> np.ndarray:
    """float32[n] for rows of pair numbers that together name each pair once; a pair that no row names is NaN.

    A row without pairs is a forward of one token whose score nobody reads: processes that share a model go through
    as many rows each.
    """
    found = np.full(len(given.lengths), np.nan, np.float32)
    training = scorer.training
    scorer.eval()
    with torch.no_grad():
        for row in rows:
            scores = scores_of(scorer, given.take(row) if len(row) else EMPTY)
            if len(row):
                found[row] = scores.cpu().numpy()
    scorer.train(training)
    return found


EMPTY = ragged([[0]])  # stands for a row without pairs


def score_pairs(model, tokenizer, pairs: Sequence[tuple[str, str]], row_tokens: int = 65536) -> np.ndarray:
    """float32[n] for pairs of texts (query, document), in the order given, without a run.

    model: the folder of a checkpoint, a `Student`, a `Scorer`, or a transformers model for sequence classification with one
    label. tokenizer: a `tokenizers.Tokenizer`, or a fast tokenizer of transformers. A pair is cut as in training: the document
    to `pair_chars` characters, the pair to `pair_tokens` tokens; 32,000 and 8,192 (or a row) for a model from elsewhere.
    """
    student = model if isinstance(model, Student) else load(model) if isinstance(model, str | Path) else _student(model)
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"the tokenizer is a {type(tokenizer).__name__}; give a tokenizers.Tokenizer or a fast tokenizer of transformers")
    if tokenizer.truncation or tokenizer.padding:
        tokenizer = Tokenizer.from_str(tokenizer.to_str())  # the caller's stays as it is
        tokenizer.no_truncation()
        tokenizer.no_padding()
    if not student.record:
        student = student._replace(template=template(tokenizer), pair_tokens=min(student.pair_tokens, row_tokens))
    queries, documents = [query for query, _ in pairs], [document_start(document, student.pair_chars) for _, document in pairs]
    lists = [ragged(one.ids for one in tokenizer.encode_batch_fast(side, add_special_tokens=False)) for side in (queries, documents)]
    rows = np.arange(len(pairs))
    return score(student, join(*lists, rows, rows, student.template, student.pair_tokens)[0], row_tokens)


def _student(model: nn.Module) -> Student:
    """A model from elsewhere with the pair input of the spec."""
    if not isinstance(model, Scorer):
        head = next((found for name in ("score", "classifier", "head") if isinstance(found := getattr(model, name, None), nn.Linear)), None)
        backbone = getattr(model, "backbone", getattr(model, "base_model", None))
        if head is None or head.out_features != 1 or backbone is None:
            raise TypeError(f"{type(model).__name__} has no linear head with one output; give a checkpoint's folder, a Student, a Scorer, "
                            "or a transformers model for sequence classification with num_labels=1")
        own = nn.Linear(head.in_features, 1, bias=head.bias is not None).to(head.weight.device)  # in float32
        own.load_state_dict(head.state_dict())
        model = Scorer(forward.prepare(backbone), own)
    return Student(model.eval(), Template(), PAIR_TOKENS, DOCUMENT_CHARS, {})
