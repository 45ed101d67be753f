"""pyproject.toml, the locks, environment.yml and the Makefile say the same, and a broken install leaves no .venv."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import test_browser
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(name: str) -> dict[str, str]:
    """Package -> version of a lock file; every line is `name==version`."""
    lines = (ROOT / name).read_text().splitlines()
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][0-9A-Za-z.]*)", line) for line in lines]
    assert lines and all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    return {canonicalize_name(match[1]): match[2] for match in found}


def unmet(requirements: list[str], pinned: dict[str, str]) -> list[str]:
    wanted = [Requirement(line) for line in requirements]
    return [str(one) for one in wanted if not one.specifier.contains(pinned.get(canonicalize_name(one.name), "0"))]


def test_the_lock_pins_every_main_and_test_package_as_pyproject_asks():
    requirements = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    assert len(requirements) > 25
    assert unmet(requirements, pins("requirements.lock")) == []
    assert pins("requirements.lock")["torch"] == "2.13.0", "without the local part: on a machine with a GPU it is another build"
    assert unmet(["torch==2.12.0", "absent>=1"], pins("requirements.lock")) == ["torch==2.12.0", "absent>=1"]


@pytest.mark.parametrize("extra", ["bench", "cluster", "browser", "minilm"])
def test_the_other_locks_hold_what_an_extra_needs_besides(extra):
    beside = pins(f"requirements-{extra}.lock")
    assert not set(beside) & set(pins("requirements.lock"))
    assert unmet(PROJECT["optional-dependencies"][extra], pins("requirements.lock") | beside) == []


def test_environment_yml_is_python_pip_and_the_two_pip_lines():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, lines = environment["dependencies"]
    assert (pip, lines) == ("pip", {"pip": ["-r requirements.lock", "-e ."]})
    version = re.fullmatch(r"python=(\d+\.\d+)", python)[1]
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(version)
    assert environment["name"] == PROJECT["name"]


def test_every_folder_of_the_library_is_a_package():
    folders = {path.parent for path in (ROOT / "lib").rglob("*.py")}
    assert folders and all((folder / "__init__.py").exists() for folder in folders), "setuptools leaves the others out"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "MAKEFLAGS": "", "MAKELEVEL": ""}
    return subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def test_a_broken_install_leaves_no_venv(clone):
    (clone / "requirements.lock").write_text("no-such-package==1.0\n")
    done = make(clone, "test", f"PYTHON={sys.executable}")
    assert done.returncode != 0
    assert "the packages of requirements.lock were not installed, so there is no .venv" in done.stderr
    assert not (clone / ".venv").exists()


def test_an_old_python_is_refused_in_one_sentence(clone):
    old = clone / "python"
    old.write_text(f"#!/bin/sh\nexec {sys.executable} -c \"import sys; sys.version_info = (3, 10); $2\"\n")
    old.chmod(0o755)
    done = make(clone, "test", f"PYTHON={old}")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == f"qrelbook needs Python 3.11 or later, {old} is older; run make PYTHON=/path/to/python3.11"


def test_the_stamp_is_todays_until_pyproject_or_the_lock_changes(clone):
    def stamp() -> str:
        return re.search(r"\.venv/stamp-[0-9a-f]{16}", make(clone, "--dry-run", "test").stdout)[0]

    first = stamp()
    (clone / ".venv").mkdir()
    (clone / first).touch()
    assert "requirements.lock" not in make(clone, "--dry-run", "test").stdout, "nothing is installed again"
    for name in ("pyproject.toml", "requirements.lock"):
        with open(clone / name, "a") as handle:
            handle.write("\n")
        assert "requirements.lock" in make(clone, "--dry-run", "test").stdout


def test_only_make_test_browser_needs_a_browser(clone):
    assert '-m "not slow and not peers and not browser"' in make(clone, "--dry-run", "test").stdout
    assert '-m "(slow or peers) and not browser"' in make(clone, "--dry-run", "test-all").stdout
    shown = make(clone, "--dry-run", "test-browser").stdout
    assert "install --quiet -r requirements-browser.lock" in shown and "-m browser" in shown


def test_a_missing_browser_is_a_skip_with_its_reason_and_a_failure_where_one_is_required(monkeypatch):
    monkeypatch.setattr(test_browser.shutil, "which", lambda name: None)
    for required, outcome in (("", pytest.skip.Exception), ("required", pytest.fail.Exception)):
        monkeypatch.setenv("QRELBOOK_BROWSER", required)
        with pytest.raises(outcome, match="no chromium on the PATH; install Debian's package chromium"):
            test_browser.found()
