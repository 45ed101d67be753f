"""The same shards on Ray Core; `make test-all` installs requirements-cluster.lock for it."""

import os
from pathlib import Path

import pytest
from toy_stage import toy

from lib import contracts, engine, paths


@pytest.mark.slow
def test_ray_tasks_give_the_bytes_of_one_process(tmp_path, monkeypatch):
    import ray  # here, so that the fast tests need no Ray

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # else a token is left in the home of the user
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    found = []
    for workers in (1, "ray"):
        config = {"run": str(tmp_path / str(workers)), "parts": 3, "scale": 0.5}
        contracts.finish(tmp_path / str(workers) / "documents", [])
        if workers == "ray":
            importable = os.pathsep.join([str(paths.ROOT), str(Path(__file__).parent)])
            ray.init(
                num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", object_store_memory=100_000_000,
                runtime_env={"env_vars": {"PYTHONPATH": importable}},
            )
        try:
            engine.map(toy, config, workers)
        finally:
            ray.shutdown()
        found.append([line["sha256"] for line in contracts.parts(tmp_path / str(workers) / "rerank/toy")])
    assert found[0] == found[1] and len(found[0]) == 3
