"""The published figures, to set beside our own, and the identities that they satisfy among themselves."""

import ast
import operator
from pathlib import Path
from typing import NamedTuple

import yaml

from lib import files

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


class Identity(NamedTuple):
    """Values that are equal: exactly, after rounding to `digits` decimals, or `within` a distance."""

    says: str
    values: list[float]
    digits: int | None
    within: float

    @property
    def closes(self) -> bool:
        values = self.values if self.digits is None else [round(value, self.digits) for value in self.values]
        return max(values) - min(values) <= self.within + 1e-9  # of rounding in binary


def published() -> dict:
    """The figures of `published.yaml`, by table."""
    return yaml.safe_load(files.read_bytes(Path(__file__).with_name("published.yaml")))


def identities(known: dict) -> list[Identity]:
    """The identities of the file with the values of their terms."""
    return [
        Identity(line["says"], [value(term, known) for term in line["equation"].split("=")], line.get("digits"), line.get("within", 0))
        for line in known["identities"]
    ]


def value(term: str, known: dict):
    """The value of a sum, product or quotient of figures, such as `overlap.pick + label_mix.v2["0"]`.

    A term that names no figure, or does anything else, raises ValueError.
    """
    try:
        return _value(ast.parse(term.strip(), mode="eval").body, known)
    except (KeyError, IndexError, TypeError, SyntaxError) as error:
        raise ValueError(f"{term!r} is no sum of published figures ({type(error).__name__}: {error}); name them as published.yaml does") from error


def _value(node: ast.expr, known: dict):
    match node:
        case ast.Name(id=name):
            return known[name]
        case ast.Attribute(value=inner, attr=name):
            return _value(inner, known)[name]
        case ast.Subscript(value=inner, slice=ast.Constant(value=place)):
            return _value(inner, known)[place]
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, known), _value(right, known))
    raise TypeError(f"{ast.unparse(node)} is neither")
