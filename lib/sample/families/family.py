"""A problem family: parameters, exact answer, and every wording in which its pages speak."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from types import MappingProxyType

SLOT = re.compile(r"<(\w+)>")
SINGLE = ("notation", "plain", "solution", "other", "terse", "lemma", "method", "subcase", "general", "topic",
          "changed", "altered", "error")
DERIVATIONS = ("solution", "other", "terse")
CONCLUDES = "||"


def _fields(block: str) -> dict[str, list[str]]:
    """Read `label: words` entries; a line without a known label goes on with the entry above it."""
    entries: dict[str, list[str]] = {"ask": [], **{label: [] for label in SINGLE}}
    label = None
    for line in block.splitlines():
        head, colon, tail = line.strip().partition(": ")
        if colon and head in entries:
            label = head
            entries[label].append(tail)
        elif line.strip():
            entries[label][-1] += " " + line.strip()
    return entries


@dataclass(frozen=True)
class Family:
    """One family of problems.

    `ranges` are inclusive bounds of the drawn integers, `shown` turns them into the parameters that the question
    names (default: the drawn integers themselves), `allowed` and `facts` take those parameters. `facts` gives every
    derived value of the wordings; always `answer`, `wrong` (of the typical major error) and `alt` (the answer under
    the changed condition). `text` holds the wordings, slots written `<name>`; in a derivation the deciding sentence
    follows `||`.
    """

    name: str
    ranges: Mapping[str, tuple[int, int]]
    facts: Callable[..., dict]
    text: str
    allowed: Callable[..., bool] = lambda **parameters: True
    shown: Callable[..., dict] = dict
    wordings: Mapping[str, tuple[str, ...]] = field(init=False)
    parameters: tuple[str, ...] = field(init=False)

    def __post_init__(self):
        entries = _fields(self.text)
        if len(entries["ask"]) < 2 or any(len(entries[label]) != 1 for label in SINGLE):
            raise ValueError(f"family {self.name} needs two `ask` wordings and one of each of {', '.join(SINGLE)}")
        object.__setattr__(self, "wordings", MappingProxyType({k: tuple(v) for k, v in entries.items()}))
        object.__setattr__(self, "parameters", tuple(sorted(set(SLOT.findall(entries["ask"][0])))))

    def values(self, parameters: Mapping[str, int]) -> dict:
        """Parameters and derived values together, as the slots of the wordings name them."""
        return {**parameters, **self.facts(**parameters)}

    def _usable(self, parameters: Mapping[str, int]) -> bool:
        if not self.allowed(**parameters):
            return False
        facts = self.facts(**parameters)
        return facts["answer"] != facts["wrong"] and facts["answer"] != facts["alt"]

    def draw(self, rng: Random) -> dict[str, int]:
        """Parameters of one problem whose answer differs from the typical error and from the changed condition."""
        while True:
            parameters = self.shown(**{name: rng.randint(*bounds) for name, bounds in self.ranges.items()})
            if self._usable(parameters):
                return parameters

    def neighbour(self, parameters: Mapping[str, int], rng: Random) -> dict[str, int]:
        """Another problem that keeps as many numbers of this one as eight draws allow."""
        drawn = [self.draw(rng) for _ in range(8)]
        crossed = [{**parameters, name: other[name]} for other in drawn for name in self.parameters]
        for candidate in sorted(crossed, key=lambda _: rng.random()):
            if candidate != parameters and self._crossable(candidate):
                return candidate
        return next((other for other in drawn if other != parameters), drawn[0])

    def _crossable(self, parameters: Mapping[str, int]) -> bool:
        return self.shown is dict and self._usable(parameters)


_SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
          "seventeen eighteen nineteen").split()
_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))


def spelled(value: int | Fraction) -> str:
    """The value in English words: `minus twenty-one`, `three over seven`."""
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{spelled(value.numerator)} over {spelled(value.denominator)}"
    value = int(value)
    if value < 0:
        return "minus " + spelled(-value)
    if value < 20:
        return _SMALL[value]
    if value < 100:
        return _TENS[value // 10] + (f"-{_SMALL[value % 10]}" if value % 10 else "")
    scale, name = next(pair for pair in _SCALES if pair[0] <= value)
    rest = value % scale
    return f"{spelled(value // scale)} {name}" + (f" {spelled(rest)}" if rest else "")


def fill(wording: str, values: Mapping, say: Callable = str) -> str:
    """The wording with each slot replaced by its value, said by `say`; a slot without a value is a KeyError."""
    return SLOT.sub(lambda slot: say(values[slot[1]]), wording)


def halves(derivation: str) -> tuple[str, str]:
    """The work of a derivation and its deciding sentence."""
    work, _, conclusion = derivation.partition(CONCLUDES)
    return work.strip(), conclusion.strip()
