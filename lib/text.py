"""The one tokenizer of the lexical routes, word n-grams, and hashes of texts."""

import hashlib
import re

_TOKEN = re.compile(r"[a-z0-9]+", re.ASCII)


def tokens(text: str) -> list[str]:
    """The `[a-z0-9]+` runs of the lowercased text: `f(x)=2x+1` gives f, x, 2x, 1.

    Lowercasing is `str.lower`, the full mapping: U+0130 becomes i and a combining dot, which ends the run;
    U+212A (the Kelvin sign) becomes k. Nothing is folded or stripped, one-letter tokens stay.
    """
    return _TOKEN.findall(text.lower())


def grams(words: list[str], n: int = 5) -> set[tuple[str, ...]]:
    """The distinct word n-grams; a text of fewer than n words has none."""
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def sha256(text: str) -> str:
    """The hash of the UTF-8 bytes of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
