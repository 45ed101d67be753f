"""A stage for the tests of the engine: one row a number, shards of three, that can be told to wait, also in the middle of a part, or to fail."""

import os
import time
from pathlib import Path

from lib import contracts, engine, files


def _shards(config: dict) -> list[str]:
    return [f"part-{n:05d}" for n in range(config["parts"])]


def _run(shard: str, config: dict) -> dict:
    n = int(shard[-5:])
    log = Path(config["run"]) / "calls"
    log.mkdir(exist_ok=True)
    (log / f"{shard}-{os.getpid()}-{time.monotonic_ns()}").touch()
    if n == config.get("half_at"):
        with files.whole(engine.part(config, toy, shard)) as temporary:
            temporary.write_bytes(b"half")
            (log / "waiting").write_text(str(os.getpid()))
            time.sleep(120)
    if n == config.get("wait_at"):
        (log / "waiting").write_text(str(os.getpid()))
        time.sleep(120)
    if n == config.get("fail_at"):
        raise ValueError(f"{shard} holds a bad row")
    rows = [{"query": 3 * n + i, "doc": i, "score": config["scale"] * i, "model": "toy"} for i in range(3)]
    return contracts.write("rerank", contracts.table("rerank", rows), engine.part(config, toy, shard)) | {"seen": 3}


toy = engine.Stage("toy_stage:toy", "rerank", "rerank/toy", ("documents",), ("parts", "scale"), _shards, _run)
