"""Compiled loops are taken from disk while the sources they were compiled from are the same, and only then."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
INNER = "from lib.retrieval.compiled import compiled\n\n\n@compiled\ndef times(x):\n    return {} * x\n"
OUTER = "from lib.retrieval import inner\nfrom lib.retrieval.compiled import compiled\n\n\n@compiled\ndef twice(x):\n    return inner.times(x) + inner.times(x)\n"
ASKED = "from lib.retrieval.outer import twice; print(twice(3), sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values()))"


def answer(folder: Path, **environment: str) -> list[int]:
    """What a process gets for twice(3), and how often it found the loop on disk and did not."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(folder)} | environment
    told = subprocess.run([sys.executable, "-P", "-c", ASKED], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [int(one) for one in told.stdout.split()]


@pytest.fixture
def folder(tmp_path):
    retrieval = tmp_path / "lib/retrieval"
    retrieval.mkdir(parents=True)
    for name in ("paths", "sources", "files", "trace", "retrieval/compiled"):
        shutil.copy(ROOT / f"lib/{name}.py", tmp_path / f"lib/{name}.py")
    (retrieval / "inner.py").write_text(INNER.format(5))
    (retrieval / "outer.py").write_text(OUTER)
    return tmp_path


def test_a_loop_is_compiled_again_when_what_it_calls_in_another_file_changes(folder):
    assert answer(folder) == [30, 0, 1]
    assert answer(folder) == [30, 1, 0]
    (folder / "lib/retrieval/inner.py").write_text(INNER.format(7))  # outer.py itself stays
    assert answer(folder) == [42, 0, 1]
    assert answer(folder) == [42, 1, 0]


def test_a_source_that_no_loop_stands_on_changes_nothing(folder):
    assert answer(folder) == [30, 0, 1]
    (folder / "lib/retrieval/other.py").write_text("other = 1\n")
    (folder / "lib/files.py").write_text((folder / "lib/files.py").read_text() + "\n# changed\n")
    assert answer(folder) == [30, 1, 0]


def test_a_checkout_that_is_reached_by_a_link_is_the_same(folder, tmp_path):
    assert answer(folder) == [30, 0, 1]
    (tmp_path / "link").symlink_to(folder)
    assert answer(folder, PYTHONPATH=str(tmp_path / "link")) == [30, 1, 0]


def test_the_cache_may_stand_in_a_folder_that_is_named(folder, tmp_path):
    assert answer(folder, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == [30, 0, 1]
    assert answer(folder, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == [30, 1, 0] and not list(folder.rglob("lib/**/*.nbc"))
