"""Reading the families' wordings and plain equations back out of a text."""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise

from lib.sample.families import FAMILIES
from lib.sample.families.family import SLOT, spelled

_UNITS = {spelled(n): n for n in (*range(20), *range(20, 100, 10))}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# any words may stand where a number is expected; whether they are one is for `number` to say
_NUMBER = r"-?\d+(?:/\d+)?|[a-z][a-z -]*?"


def number(text: str) -> Fraction:
    """The value of digits (`-7`, `3/7`) or of English words (`minus twenty-one`, `three over seven`).

    Words that are no number are a KeyError.
    """
    if text.lstrip("-")[0].isdigit():
        return Fraction(text)
    if " over " in text:
        above, _, below = text.partition(" over ")
        return number(above) / number(below)
    total = group = 0
    for word in re.split("[ -]", text.removeprefix("minus ")):
        if word == "hundred":
            group *= 100
        elif word in _SCALES:
            total, group = total + group * _SCALES[word], 0
        else:
            group += _UNITS[word]
    return Fraction(-(total + group) if text.startswith("minus ") else total + group)


@cache
def pattern(wording: str) -> tuple[re.Pattern, tuple[str, ...]]:
    """A wording as a regular expression, and the slot that each of its groups fills."""
    pieces = SLOT.split(wording.replace(" || ", " "))
    slots = tuple(pieces[1::2])
    literal = [r"\s+".join(map(re.escape, re.split(r"\s+", piece))) for piece in pieces[0::2]]
    middle = "".join(f"({_NUMBER}){words}" for words in literal[1:])
    # a pattern that begins with plain letters is found much faster than one that begins with a look behind
    begin = literal[0] or r"(?<![\w-])"
    return re.compile(rf"{begin}{middle}(?!\d)"), slots


def occurrences(wording: str, text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[re.Match, dict | None]]:
    """Each place where the wording stands in the text with the value of its slots; None where a slot has two values."""
    compiled, slots = pattern(wording)
    for match in compiled.finditer(text, start, len(text) if end is None else end):
        try:
            values = [number(words) for words in match.groups()]
        except KeyError:
            continue
        found = dict(zip(slots, values, strict=True))
        yield match, found if [found[slot] for slot in slots] == values else None


def questions(name: str) -> list[str]:
    """The wordings that ask the question of a family."""
    wordings = FAMILIES[name].wordings
    return [*wordings["ask"], *wordings["notation"], *wordings["plain"]]


_MULTIPLY = re.compile(r"\s*(?:\\cdot|\\times|·|×)\s*")
_SIDE = r"[(\-]*\d[\d\s+*/()\-]*"
_CHAIN = re.compile(rf"{_SIDE}(?:=\s*{_SIDE})+")
_TOKEN = re.compile(r"\d+|[-+*/()]")


def _value(expression: str) -> Fraction | None:
    """The value of an expression of integers, + - * / and parentheses; None if it is none."""
    tokens = _TOKEN.findall(expression)

    def atom() -> Fraction:
        token = tokens.pop(0)
        if token == "-":
            return -atom()
        if token == "(":
            inside = total()
            if tokens.pop(0) != ")":
                raise ValueError(expression)
            return inside
        return Fraction(int(token))

    def term() -> Fraction:
        value = atom()
        while tokens and tokens[0] in "*/":
            value = value * atom() if tokens.pop(0) == "*" else value / atom()
        return value

    def total() -> Fraction:
        value = term()
        while tokens and tokens[0] in "+-":
            value = value + term() if tokens.pop(0) == "+" else value - term()
        return value

    try:
        value = total()
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return None if tokens else value


def equalities(text: str) -> Iterator[tuple[str, str, bool]]:
    """Each equation between two expressions of numbers alone in a text, and whether it is true."""
    text = _MULTIPLY.sub("*", text.replace("−", "-"))
    for match in _CHAIN.finditer(text):
        before, after = text[:match.start()], text[match.end():]
        sides = match[0].split("=")
        operand = before.rstrip()[-1:] in tuple("+-*/^_<>≤")
        if operand or before[-1:].isalnum() or before[-1:] in tuple("'_^{}\\|."):
            sides = sides[1:]
        if after and (after[0].isalpha() or after[0] in "^{\\!_") and not match[0][-1].isspace():
            sides = sides[:-1]
        for left, right in pairwise(sides):
            values = _value(left), _value(right)
            if None not in values:
                yield left.strip(), right.strip(), values[0] == values[1]
