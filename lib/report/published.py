"""The published figures, to set beside our own; `published.yaml` says which identities they satisfy among themselves."""

from pathlib import Path

import yaml

from lib import files


def published() -> dict:
    """The figures of `published.yaml`, by table."""
    return yaml.safe_load(files.read_bytes(Path(__file__).with_name("published.yaml")))
