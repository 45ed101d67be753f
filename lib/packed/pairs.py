"""A pair is the concatenation of a query's and a document's token ids, cut by one rule.

The rule (spec, "The 8B relevance model"): the document is cut to its first 32,000 characters before it is tokenised, then
its tokens are cut so that the pair is at most 8,192 tokens. A query that alone leaves no room is cut to half of that.
Training, labelling, the gate and the front door cut by this function and no other.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAIR_TOKENS = 8192
DOCUMENT_CHARS = 32_000
PROBES = [  # texts that template() makes pairs of
    ("what is 1 + 1", "It is 2."), ("a", "b"), ("", "It is 2."), ("what is 1 + 1", ""), ("", ""),
    (" a ", " b "), ("\n", "\t\t"), ("Ünï∫ 数学 𝑥", "e\u0301 ﬁ ½ \u200b"), ("A", "A"), ("x" * 50, "y z " * 50),
]


class Ragged(NamedTuple):
    """Lists of token ids end to end: list i is `ids[starts[i]:starts[i + 1]]`; ids int32[total], starts int64[n + 1]."""

    ids: np.ndarray
    starts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """int64[n]"""
        return np.diff(self.starts)

    def list(self, i: int) -> np.ndarray:
        """The ids of list i, int32[length]."""
        return self.ids[self.starts[i] : self.starts[i + 1]]

    def take(self, rows: np.ndarray) -> "Ragged":
        """The lists of some rows, in the order given, repeats kept."""
        rows = np.asarray(rows, np.int64)
        first, lengths = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        starts = ends(lengths)
        return Ragged(self.ids[np.arange(starts[-1]) + np.repeat(first - starts[:-1], lengths)], starts)


class Template(NamedTuple):
    """The special token ids that stand before the query, between query and document, and after the document."""

    prefix: tuple[int, ...] = ()
    middle: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        return len(self.prefix) + len(self.middle) + len(self.suffix)


class Cuts(NamedTuple):
    """How many pairs had their query, and how many their document, cut to fit."""

    queries: int
    documents: int


def ends(lengths: np.ndarray) -> np.ndarray:
    """int64[n + 1]: 0, then the running sum of the lengths."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def ragged(lists: Iterable[Iterable[int]]) -> Ragged:
    """Lists of token ids as one `Ragged`."""
    arrays = [np.asarray(one, np.int32) for one in lists]
    return Ragged(np.concatenate([np.empty(0, np.int32), *arrays]), ends(np.array([len(one) for one in arrays], np.int64)))


def document_start(text: str, chars: int = DOCUMENT_CHARS) -> str:
    """The first characters (code points, so never half of one) of a document: what is tokenised of it."""
    return text[:chars]


def template(tokenizer: "Tokenizer") -> Template:
    """The special tokens that the tokenizer puts around a query and a document.

    ValueError where its pair is not prefix + query + middle + document + suffix for each of ten probe texts, or where it
    truncates or pads by itself.
    """
    if tokenizer.truncation or tokenizer.padding:
        raise ValueError("the tokenizer truncates or pads by itself, so a pair is no concatenation; call no_truncation() and no_padding() first")
    encoding = tokenizer.encode(*PROBES[0])
    side = [-1 if one is None else one for one in encoding.sequence_ids]  # 0 query, 1 document, -1 special
    query = [i for i, one in enumerate(side) if one == 0]
    document = [i for i, one in enumerate(side) if one == 1]
    found = Template()
    if query and document:
        parts = encoding.ids[: query[0]], encoding.ids[query[-1] + 1 : document[0]], encoding.ids[document[-1] + 1 :]
        found = Template(*map(tuple, parts))
    for pair in PROBES:
        alone = [tokenizer.encode(text, add_special_tokens=False).ids for text in pair]
        joined = [*found.prefix, *alone[0], *found.middle, *alone[1], *found.suffix]
        if tokenizer.encode(*pair).ids != joined:
            raise ValueError(f"the tokenizer's pair of {pair[0]!r} and {pair[1]!r} is no concatenation of special tokens, query and document; "
                             "take a tokenizer whose template is prefix, query, middle, document, suffix")
    return found


def cut(query_lengths: np.ndarray, document_lengths: np.ndarray, limit: int, specials: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(query, document) tokens kept of each pair, int64[n] each, so that with the special tokens a pair has at most `limit`.

    A pair that fits is whole. Else the document is cut; where the query leaves a document no token, it is cut to `limit // 2`
    and the document to what then is left. So a query of at most half the limit is always whole, and each keeps a prefix.
    """
    if limit // 2 + specials >= limit:
        raise ValueError(f"a pair of {limit} tokens has no room beside half of it and {specials} special tokens; "
                         f"take a limit of at least {2 * specials + 1}")
    query, document = np.asarray(query_lengths, np.int64), np.asarray(document_lengths, np.int64)
    room = limit - specials
    over = (query + document > room) & (query + (document > 0) > room)
    query = np.where(over, limit // 2, query)
    return query, np.minimum(document, room - query)


def kept(query_lengths: np.ndarray, document_lengths: np.ndarray, template: Template, limit: int) -> tuple[np.ndarray, np.ndarray, Cuts]:
    """`cut` with the template's special tokens: the tokens kept of each query and document, and how many were cut."""
    query, document = cut(query_lengths, document_lengths, limit, template.tokens)
    return query, document, Cuts(int((query < query_lengths).sum()), int((document < document_lengths).sum()))


def join(queries: Ragged, documents: Ragged, query: np.ndarray, doc: np.ndarray, template: Template = Template(),
         limit: int = PAIR_TOKENS) -> tuple[Ragged, Cuts]:
    """The token ids of n pairs and how many were cut.

    query and doc, int[n], are rows of `queries` and of `documents`, whose lists hold no special tokens. An empty document is
    the second text of a pair, as in a batch of transformers, whose single call takes it for no text at all.
    """
    query, doc = np.asarray(query, np.int64), np.asarray(doc, np.int64)
    asked, read, cuts = kept(queries.lengths[query], documents.lengths[doc], template, limit)
    starts = ends(asked + read + template.tokens)
    ids = np.empty(starts[-1], np.int32)
    at = starts[:-1].copy()
    for specials, lists, rows, count in ((template.prefix, queries, query, asked), (template.middle, documents, doc, read),
                                         (template.suffix, None, None, None)):
        for token in specials:
            ids[at] = token
            at += 1
        if lists is not None:
            within = np.arange(count.sum()) - np.repeat(ends(count)[:-1], count)
            ids[np.repeat(at, count) + within] = lists.ids[np.repeat(lists.starts[rows], count) + within]
            at += count
    return Ragged(ids, starts), cuts
