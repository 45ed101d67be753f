"""A page in the making: its text so far, and what it establishes once how much of it was read."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from lib.sample.families import FAMILIES
from lib.sample.families.family import Family, fill, halves


class Problem(NamedTuple):
    """One instance of a family; `values` also holds the derived values of its wordings."""

    family: Family
    values: dict

    @property
    def parameters(self) -> dict[str, int]:
        return {name: self.values[name] for name in self.family.parameters}

    @property
    def key(self) -> str:
        """The text that is equal for equal problems: family, what is asked, parameters."""
        return f"{self.family.name}|ask=answer|" + ",".join(f"{k}={v}" for k, v in self.parameters.items())

    def say(self, label: str, spell: Callable = str, which: int = 0) -> str:
        """The family's wording `label` with this problem's numbers."""
        return fill(self.family.wordings[label][which], self.values, spell)


def problem(family: Family, parameters: dict) -> Problem:
    """The problem of a family with these parameters."""
    return Problem(family, family.values(parameters))


def any_problem(rng: Random, families: tuple[Family, ...] = tuple(FAMILIES.values())) -> Problem:
    """A random problem of the families given, by default of all."""
    family = rng.choice(families)
    return problem(family, family.draw(rng))


class Draft:
    """Paragraphs and relations; `needs` of a relation is the number of code points read when it holds."""

    def __init__(self):
        self.text = ""
        self.relations: list[dict] = []

    def put(self, words: str, gap: str = "\n\n") -> int:
        """Append words after a gap and return where they end."""
        if words:
            self.text += (gap if self.text else "") + words
        return len(self.text)

    def relate(self, about: str, label: int, validity: str, codes: list[str], needs: int) -> None:
        """Record that the page is worth `label` for a problem key or for `family:<name>`."""
        relation = {"problem": about, "label": label, "answer_validity": validity, "reason_codes": codes, "needs": needs}
        if relation not in self.relations:
            self.relations.append(relation)

    def state(self, p: Problem, wording: tuple[str, int], lead: str = "", spell: Callable = str) -> None:
        """State a problem; until more is said the page has no answer to it."""
        label, which = wording
        self.put(f"{lead} {p.say(label, spell, which)}".strip())
        self.relate(p.key, 0, "no_answer", ["no_answer"], 0)

    def derive(self, p: Problem, style: str, lead: str = "", spell: Callable = str, deciding: bool = True,
               codes: tuple[str, ...] = ("full_solution",)) -> None:
        """Give a derivation: partial once its work is read, full once its deciding sentence is."""
        work, conclusion = (fill(half, p.values, spell) for half in halves(p.family.wordings[style][0]))
        self.relate(p.key, 1, "partial", ["partial_derivation"], self.put(f"{lead} {work}".strip()))
        if deciding:
            self.relate(p.key, 2, "correct", list(codes), self.put(conclusion, " "))

    def help(self, p: Problem, label: str, lead: str = "") -> None:
        """Give a lemma, the method or a solved subcase of a problem."""
        validity, code = {"lemma": ("correct", "key_lemma"), "method": ("correct", "applicable_method"),
                          "subcase": ("partial", "solved_subcase")}[label]
        self.relate(p.key, 1, validity, [code], self.put(f"{lead} {p.say(label)}".strip()))
