"""A model's folder: the files that a stage's results depend on, their one hash, what its configuration says, and the model itself."""

import hashlib
import json
from pathlib import Path

from lib import files, paths

READ = ("config.json", "tokenizer.json", "tokenizer_config.json")  # besides the weights


def contents(folder: str | Path) -> list[Path]:
    """The files that a result depends on: weights, configuration, tokenizer; ValueError where one of them is missing."""
    folder = paths.source(folder)
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    missing = [name for name in READ[:2] if not (folder / name).is_file()] + ([] if weights else ["*.safetensors"])
    if missing:
        raise ValueError(f"{paths.shown(folder)} has no {', no '.join(missing)}; name the folder of a transformers model, its weights and tokenizer.json inside")
    return [folder / name for name in READ if (folder / name).is_file()] + weights


def sha256(folder: str | Path) -> str:
    """One hash of these files and their names; where the folder stands does not matter."""
    found = {path.name: files.sha256(path) for path in contents(folder)}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def check(folder: str | Path, wanted: str) -> None:
    """ValueError where the folder is not the one that a configuration was made for."""
    if (found := sha256(folder)) != wanted:
        raise ValueError(f"{paths.shown(paths.source(folder))} has the hash {found[:12]} and the work was prepared for {wanted[:12]}; "
                         "put the model back, or prepare the work again")


def config(folder: str | Path, name: str = "config.json") -> dict:
    """A JSON file of the folder; {} where it is none of its files."""
    path = paths.source(folder) / name
    if not path.is_file():
        return {}
    try:
        found = json.loads(files.read_bytes(path))
    except ValueError as error:
        raise ValueError(f"{paths.shown(path)} is no JSON ({error}); put the model's own file back") from error
    if not isinstance(found, dict):
        raise ValueError(f"{paths.shown(path)} is no JSON object; put the model's own file back")
    return found


def positions(folder: str | Path) -> int | None:
    """How many tokens the model can tell the places of; None where its configuration does not say."""
    known = config(folder)
    inner = known.get("text_config")
    found = known.get("max_position_embeddings") or (inner.get("max_position_embeddings") if isinstance(inner, dict) else inner)
    if not isinstance(found, int | None):
        raise ValueError(f"{paths.shown(paths.source(folder) / 'config.json')} says {found!r} for max_position_embeddings or text_config; put the model's own file back")
    return found


def pooling(folder: str | Path) -> str | None:
    """"last" or "mean" where a folder of sentence-transformers says that, None where it says another or nothing."""
    known = config(folder, "1_Pooling/config.json")
    for name, key in (("last", "pooling_mode_lasttoken"), ("mean", "pooling_mode_mean_tokens")):
        if known.get(key) is True or str(known.get("pooling_mode")).startswith(name):
            return name
    return None


def load(folder: str | Path, dtype, auto: str = "AutoModel"):
    """The transformers model of a folder, on the CPU in a dtype of torch; ValueError where it cannot be read or its weights are not whole.

    auto: the class of transformers that loads it.
    """
    import transformers
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()  # a head that is left out is no news
    folder = paths.source(folder)
    try:
        model, told = getattr(transformers, auto).from_pretrained(folder, dtype=dtype, local_files_only=True, output_loading_info=True)
    except (OSError, ValueError, KeyError) as error:
        why = f"{paths.shown(folder)} cannot be read as a transformers model ({' '.join(str(error).split())})"
        raise ValueError(f"{why}; name a folder with config.json and weights") from error
    if missing := sorted(name for name in told["missing_keys"] if not name.startswith("pooler.")):  # a pooler is not read here
        raise ValueError(f"the weights of {paths.shown(folder)} lack {missing[0]} ({len(missing)} such), which would start at random; name a folder whose weights are whole")
    return model


def prompt(path: str | Path) -> str:
    r"""The one line of a prompt's file, where `\n` is a line break; '' for no file.

    A line feed at the file's end is the editor's and left out, every other character counts, blanks at the end too.
    """
    if not str(path):
        return ""
    found = paths.source(path)
    try:
        text = files.read_bytes(found).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{paths.shown(found)} is no text that can be read ({error}); name a file of prompts/, or nothing for none") from error
    return text.removesuffix("\n").replace("\\n", "\n")
