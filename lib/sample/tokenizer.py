"""A small byte-level BPE tokenizer, trained on the planted world."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lib import files

END = "<|endoftext|>"
END_ID = 0


def train(texts: Iterable[str], path: str | Path, size: int = 4096, phrases: bool = False) -> Tokenizer:
    """Train a byte-level BPE of at most `size` entries on the texts and save it as a tokenizer.json.

    With `phrases` only numbers are kept apart, so that texts made from few templates become their phrases and numbers.

    The entry `END_ID` is the end token, the only special one; no template adds it. Same texts in the same order, same
    bytes. A text spelled `<|endoftext|>` in a page is read as the end token, as with GPT-2.
    """
    tokenizer = Tokenizer(models.BPE())
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not phrases)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), bytes_of]) if phrases else bytes_of
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if size < len(alphabet) + 1:
        raise ValueError(f"a byte-level vocabulary of {size} entries cannot hold {len(alphabet)} bytes and {END}; "
                         f"take a size of at least {len(alphabet) + 1}")
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    with files.whole(path) as temporary:
        temporary.write_text(tokenizer.to_str(), encoding="utf-8")  # not `save`, which hides why a disk refused
    return tokenizer
