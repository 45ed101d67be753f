"""The same shards on Ray Core, where requirements-cluster.lock is installed."""

import pytest

ray = pytest.importorskip("ray")

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from lib import contracts, engine  # noqa: E402


@pytest.mark.slow
def test_ray_tasks_give_the_bytes_of_one_process(tmp_path):
    from toy_stage import toy

    found = []
    for name, workers in (("one", 1), ("ray", "ray")):
        config = {"run": str(tmp_path / name), "parts": 3, "scale": 0.5}
        contracts.finish(tmp_path / name / "documents", [])
        if workers == "ray":
            paths = [str(Path(engine.__file__).parents[1]), str(Path(__file__).parent)]
            ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": ":".join([*paths, *sys.path])}})
        try:
            engine.map(toy, config, workers)
        finally:
            ray.shutdown()
        found.append([line["sha256"] for line in contracts.parts(tmp_path / name / "rerank/toy")])
    assert found[0] == found[1] and len(found[0]) == 3
