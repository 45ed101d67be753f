"""What Qwen3-Reranker reads of a pair: the chat that its makers published, in which the next token is to be yes or no.

Source: the model card of Qwen3-Reranker; the thinking block is there and empty.
"""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from lib.packed import pairs
from lib.packed.pairs import Ragged

PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
DOCUMENT_TOKENS = 8144
BATCH = 64  # pairs encoded at once


def read(tokenizer: Tokenizer, instruction: str, queries: Sequence[str], documents: Sequence[str],
         document_tokens: int = DOCUMENT_TOKENS) -> tuple[Ragged, int]:
    """The ids of each pair, and how many documents were cut: a document keeps its first `document_tokens` ids, then comes the suffix.

    Instruction, query and document are tokenised as one text, as published: the document's first id may begin with the
    blank before it, and then counts as the document's.
    """
    prefix, suffix = (tokenizer.encode(text, add_special_tokens=False).ids for text in (PREFIX, SUFFIX))
    lists, cut = [], 0
    for first in range(0, len(queries), BATCH):
        some = slice(first, first + BATCH)
        heads = [f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: " for query in queries[some]]
        bodies = [head + document for head, document in zip(heads, documents[some], strict=True)]
        for head, encoding in zip(heads, tokenizer.encode_batch(bodies, add_special_tokens=False), strict=True):
            ids = encoding.ids
            if len(ids) > document_tokens:  # else the document cannot have so many
                begins = next((i for i, (_, end) in enumerate(encoding.offsets) if end > len(head)), len(ids))
                cut += len(ids) > begins + document_tokens
                ids = ids[: begins + document_tokens]
            lists.append(np.array([*prefix, *ids, *suffix], np.int32))
    return pairs.ragged(lists), cut
