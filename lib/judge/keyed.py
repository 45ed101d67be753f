"""The keys of the pairs of a set, kept beside its attempts, so that a resumed run renders only what it still has to ask.

`attempts/<set>/keys/<part>.parquet` has a row an LLM intent of the part, in their order. It holds for one judge, the
intents, documents and queries of today, and the modules that render; for anything else the pairs are rendered again.
"""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lib import contracts, files, sources
from lib.judge import contract
from lib.judge.prompt import Judge

KIND = "S64"  # of an array of keys
_STAMP, _SHA256 = b"made_from", b"sha256"


def _file(run: str | Path, intents_set: str, part: str) -> Path:
    return Path(run) / "attempts" / intents_set / "keys" / f"{part}.parquet"


def stamp(run: str | Path, intents_set: str, part: str, by: Judge) -> bytes:
    """The hash of all that the keys of a part depend on."""
    lines = contracts.parts(Path(run) / "intents" / intents_set)
    known = {
        "intents": [line["sha256"] for line in lines if Path(line["part"]).stem == part],
        "texts": [contracts.contents(Path(run) / name) for name in ("documents", "queries")],
        "judge": [by.model, by.parameters, by.response_format, by.prompt.sha256, contract.SCHEMA_SHA256],
        "modules": sources.hashes("lib.judge.pairs"),
    }
    return hashlib.sha256(contract.canonical(known)).hexdigest().encode()


def _sha256(keys: list[str] | np.ndarray) -> bytes:
    return hashlib.sha256(keys.tobytes() if isinstance(keys, np.ndarray) else "".join(keys).encode()).hexdigest().encode()


def read(run: str | Path, intents_set: str, part: str, by: Judge) -> list[str] | None:
    """The keys of a part, a row an LLM intent; None where they are not kept, of something else, or damaged."""
    try:
        found = pq.read_table(_file(run, intents_set, part))
        told, keys = found.schema.metadata or {}, found["key"].to_pylist()
        whole = told.get(_SHA256) == _sha256(keys)
    except (OSError, KeyError, TypeError, UnicodeDecodeError, pa.ArrowException):
        return None
    return keys if whole and told.get(_STAMP) == stamp(run, intents_set, part, by) else None


def write(run: str | Path, intents_set: str, part: str, by: Judge, keys: list[str] | np.ndarray) -> None:
    """Keep the keys of a part, also of an array of KIND, in which they take a third of the memory."""
    made = contracts.table("keys", {"key": pa.array(keys).cast(pa.string())})
    made = made.replace_schema_metadata({_STAMP: stamp(run, intents_set, part, by), _SHA256: _sha256(keys)})
    with files.whole(_file(run, intents_set, part)) as temporary:
        pq.write_table(made, temporary)
