"""A tokenizer of bytes and a few merges, and ways to break off in the middle, for the tests of the foundation."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lib import paths


def tokenizer_file(folder: Path) -> Path:
    """A byte-level BPE of 300 entries, as `tokenizer.json`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(["the sum of the squares of the numbers", "the cat on the mat"] * 9, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder and its bytes, lock files left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock"
    }


def python(code: str, home: Path, *arguments: str, **options) -> subprocess.Popen:
    """Start Python on a piece of code, with `lib` from the checkout and runs under `home`."""
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT), "QRELBOOK_HOME": str(home)}
    environment.pop("QRELBOOK_LOCK", None)
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], env=environment, cwd=home, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )


def wait_for(what, seconds: float = 20):
    """The first true value of `what()`; fails after some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing came within {seconds} s")


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
