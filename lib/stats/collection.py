"""What a collection holds, and how its lengths spread."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib import corpus


def contents(run: str | Path, long_tokens: int) -> pd.DataFrame:
    """One row a fact: documents, removed and long ones, tokens; queries, those with a source page, those kept."""
    documents = corpus.all_documents(run, ["n_tokens", "removed"])
    tokens, removed = documents["n_tokens"].to_numpy(), documents["removed"].to_numpy()
    queries = corpus.all_queries(run, ["source_doc", "keep"])
    facts = {
        "documents": len(tokens), "documents removed as near-duplicates": int(removed.sum()),
        "documents that can be hits": int((~removed).sum()),
        f"long documents (over {long_tokens:,} tokens)": int((tokens > long_tokens).sum()),
        "tokens": int(tokens.sum(dtype=np.int64)), "median tokens of a document": int(np.median(tokens)) if len(tokens) else None,
        "queries": queries.num_rows, "queries with a source page": queries.num_rows - queries["source_doc"].null_count,
        "queries kept for retrieval": int(queries["keep"].to_numpy().sum()),
    }
    return pd.DataFrame({"fact": list(facts), "count": pd.array(list(facts.values()), dtype="Int64")})
