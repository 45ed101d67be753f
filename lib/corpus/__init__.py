"""Documents and queries: their tables, the token table, and what imports them.

`write` fills the tables of a run from rows; `parts`, `shards`, `part_of`, `documents`, `queries`, `all_documents`,
`all_queries` and `Texts` read them; `tokenizer` is the one they were counted with and
`cut_tokens` the first n tokens of a text. The importers stand beside, one a format:
`python -m lib.corpus import --help`.
"""

from lib.corpus.tables import Part, Texts, all_documents, all_queries, documents, part_of, parts, queries, shards
from lib.corpus.token_table import cut_tokens, tokenizer
from lib.corpus.writer import write

__all__ = [
    "Part", "Texts", "all_documents", "all_queries", "cut_tokens", "documents", "part_of", "parts", "queries", "shards",
    "tokenizer", "write",
]
