"""Texts that try to move a judge, appended to documents that it has judged without them."""

import functools
import json
from typing import NamedTuple

from lib import files, paths

FILE = paths.PROMPTS / "attacks.jsonl"
SETS = ("canary", "canary_v2")  # of intents whose documents are attacked
_BETWEEN = "\n\n"


class Attack(NamedTuple):
    """One line of the file; `kind` names what it tries."""

    id: str
    kind: str
    text: str


@functools.cache
def known() -> dict[str, Attack]:
    """The attacks by their ids, in the order of the file."""
    lines = files.read_bytes(FILE).decode().splitlines()
    return {attack.id: attack for attack in (Attack(**json.loads(line)) for line in lines)}


def attacked(text: str, attack: str) -> str:
    """The text, cut as it is sent, with the attack of this id behind it; ValueError where there is none."""
    if attack not in known():
        raise ValueError(f"{paths.shown(FILE)} has no attack {attack!r}, which a canary names; draw the canaries again")
    return text + _BETWEEN + known()[attack].text
