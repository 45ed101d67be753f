"""The `vectors` table: one row a document or a query, float32, all of one length."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from lib import contracts


def write(found: np.ndarray, path: str | Path) -> dict:
    """Write one part, float32[rows, d], and give its manifest line."""
    offsets = np.arange(len(found) + 1, dtype=np.int32) * found.shape[1]
    column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(found.ravel()), type=contracts.TABLES["vectors"].field("vector").type)
    return contracts.write("vectors", contracts.table("vectors", {"vector": column}), path)
