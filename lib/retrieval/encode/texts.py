"""Texts as token ids for an encoder: the tokenizer's own special tokens, the cut, and the end token that is read last."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from lib import paths
from lib.corpus import token_table
from lib.packed import pairs
from lib.packed.pairs import Ragged
from lib.retrieval import model_folder

BATCH = 64  # texts encoded at once: the encodings of long texts are large
POOLINGS = ("last", "mean")


class Reader(NamedTuple):
    """A tokenizer, and the id that is appended to what it gives; None where nothing is."""

    tokenizer: Tokenizer
    end: int | None


def reader(folder: str, pooling: str) -> Reader:
    """How the model of a folder reads a text for `pooling`, one of POOLINGS.

    For last-token pooling a text ends with a token of its own: the special token that the tokenizer itself puts there
    (Qwen3-Embedding puts <|endoftext|>, which is not its `eos_token`), or else the `eos_token` of tokenizer_config.json.
    ValueError where there is neither.
    """
    if pooling not in POOLINGS:
        raise ValueError(f"there is no pooling {pooling!r}; take one of {', '.join(POOLINGS)}")
    tokenizer = token_table.load(folder)
    if pooling == "mean" or tokenizer.encode("a").special_tokens_mask[-1]:
        return Reader(tokenizer, None)
    named = model_folder.config(folder, "tokenizer_config.json").get("eos_token")
    end = tokenizer.token_to_id(named["content"] if isinstance(named, dict) else named) if named else None
    if end is None:
        raise ValueError(f"the tokenizer of {paths.shown(paths.source(folder))} ends a text with no token of its own and names no eos_token that it knows, "
                         "so there is no last token to read; take pooling=mean, or name an eos_token in its tokenizer_config.json")
    return Reader(tokenizer, end)


def read(by: Reader, texts: Sequence[str], limit: int) -> tuple[Ragged, int]:
    """The ids of each text, at most `limit` with special and end tokens, and how many texts were cut; the end token is never cut."""
    room = limit - (by.end is not None)
    if room < 1:
        raise ValueError(f"a text may have {limit} tokens; it takes at least {limit + 1 - room}")
    by.tokenizer.enable_truncation(room)
    lists, cut = [], 0
    for first in range(0, len(texts), BATCH):
        for encoding in by.tokenizer.encode_batch_fast(list(texts[first : first + BATCH])):
            lists.append(np.array([*encoding.ids, *([] if by.end is None else [by.end])], np.int32))
            cut += bool(encoding.overflowing)
    return pairs.ragged(lists), cut
