"""The configured tokenizer: the one token table, and the first n tokens of a text."""

from pathlib import Path

from tokenizers import Tokenizer

from lib import paths, trace

BATCH = 64  # texts encoded at once: the encodings of long texts are large


def file(path: str | Path) -> Path:
    """The `tokenizer.json` that a path names: itself, or the one inside a folder; ValueError where there is none."""
    path = paths.source(path)
    found = path / "tokenizer.json" if path.is_dir() else path
    if not found.is_file():
        raise ValueError(f"{paths.shown(found)} does not exist; name a tokenizer.json or the folder of a model that holds one")
    return found


def load(path: str | Path) -> Tokenizer:
    """Read a tokenizer; truncation and padding that its file may ask for are switched off."""
    path = file(path)
    trace.record("read", path)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"{paths.shown(path)} is no tokenizer file ({error}); name a tokenizer.json of the tokenizers library") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokenizer(run: str | Path) -> Tokenizer:
    """The tokenizer that the token table of a run was made with."""
    return load(Path(run).absolute() / "tokenizer.json")


def count(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    """Tokens of each text, without special tokens."""
    counts = []
    for first in range(0, len(texts), BATCH):
        encodings = tokenizer.encode_batch_fast(texts[first : first + BATCH], add_special_tokens=False)
        counts.extend(len(encoding.ids) for encoding in encodings)
    return counts


def cut_tokens(tokenizer: Tokenizer, text: str, n: int) -> str:
    """The prefix of the text that its first n tokens cover, without special tokens.

    A character whose bytes are spread over token n and the next is left out.
    """
    if n <= 0:
        return ""
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets  # in characters
    if len(offsets) <= n:
        return text
    return text[: min(offsets[n - 1][1], offsets[n][0])]
