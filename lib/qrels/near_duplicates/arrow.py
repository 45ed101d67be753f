"""Arrow arrays from Python and numpy, and back, without the import of pandas that pyarrow's own converters begin with.

That import takes as long as finding a thousand rows (0.25 s and 50 MB), once in every process that runs a step.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa


def numbers(values: np.ndarray) -> pa.Array:
    """Numbers as an array of their own type, not copied."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def strings(values: Iterable[str]) -> pa.Array:
    """Text as an array of `string`."""
    encoded = [value.encode("utf-8") for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def values(numbers: pa.Array) -> np.ndarray:
    """An array of numbers without nulls as numpy, not copied and not to be written."""
    return np.from_dlpack(numbers)
