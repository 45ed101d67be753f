"""Read a plan, and the parameters and cells of a notebook, as they stand in the files."""

import ast
import io
import json
import re
import tokenize
from pathlib import Path
from typing import NamedTuple

import yaml

from lib import paths

KINDS = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict}


class PlanError(ValueError):
    """A plan cannot be run as it is written; the message has one line for each problem."""


class Parameter(NamedTuple):
    """One line `name: kind = default  # comment` of a parameters cell."""

    name: str
    kind: str  # the annotation: "int", "list[str]", "str | None"
    default: object
    comment: str


class Notebook(NamedTuple):
    path: Path
    parameters: dict[str, Parameter]
    cells: list  # [type, tags, source] of every cell


class _Strict(yaml.SafeLoader):
    """YAML where a key stands once, and no word or number is read as something that it does not look like."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise PlanError(f"line {key.start_mark.line + 1} has a key that is no plain name")
            if key.value in seen:
                raise PlanError(f"line {key.start_mark.line + 1} repeats '{key.value}'; keep one of the two")
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def plain_int(self, node):
        if not re.fullmatch(r"[-+]?(0|[1-9][0-9_]*)", node.value):  # 010 is 8, 1:30 is 90
            raise PlanError(f"line {node.start_mark.line + 1}: YAML reads {node.value} as another number; write decimal digits, or put it in quotes")
        return int(node.value)

    def plain_bool(self, node):
        if node.value.lower() not in ("true", "false"):  # on, off, yes, no
            raise PlanError(f"line {node.start_mark.line + 1}: YAML reads {node.value} as a truth value; write true or false, or put it in quotes")
        return node.value.lower() == "true"


_Strict.add_constructor("tag:yaml.org,2002:int", _Strict.plain_int)
_Strict.add_constructor("tag:yaml.org,2002:bool", _Strict.plain_bool)


def strict_yaml(text: str):
    """Parse YAML; PlanError with the line where it is broken, repeats a key or is ambiguous."""
    try:
        return yaml.load(text, _Strict)
    except yaml.YAMLError as error:
        raise PlanError(f"is no YAML: {' '.join(str(error).split())}") from error


def plan(path: Path) -> dict[str, dict]:
    """Notebook name -> parameters, in the order of running; a notebook without parameters may stand alone."""
    if not path.is_file():
        raise PlanError(f"there is no plan {paths.shown(path)}; name a YAML file such as runs/sample.yaml")
    try:
        steps = strict_yaml(path.read_text(encoding="utf-8"))
    except PlanError as error:
        raise PlanError(f"{paths.shown(path)} {error}") from error
    if not isinstance(steps, dict) or not steps:
        raise PlanError(f"{paths.shown(path)} is no mapping of notebooks to parameters, such as `01-corpus: {{queries: 40}}`")
    for name, given in steps.items():
        if not isinstance(name, str) or not isinstance(given, dict | None) or not all(isinstance(key, str) for key in given or {}):
            raise PlanError(f"{paths.shown(path)}: {name!r} needs a mapping of parameter names to values, such as `01-corpus: {{queries: 40}}`")
    return {name: given or {} for name, given in steps.items()}


def notebook(path: Path) -> Notebook:
    """Read a notebook's cells, and its parameters from the one cell tagged `parameters`, without running anything."""
    shown = paths.shown(path)
    if not path.is_file():
        there = ", ".join(sorted(other.stem for other in path.parent.glob("*.ipynb")))
        raise PlanError(f"there is no notebook {shown}; {paths.shown(path.parent)} has {there or 'none'}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["cells"]
        cells = [[cell["cell_type"], cell["metadata"].get("tags", []), "".join(cell["source"])] for cell in found]
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"{shown} cannot be read as a notebook ({type(error).__name__}: {error}); save it again from JupyterLab") from error
    tagged = [source for kind, tags, source in cells if kind == "code" and "parameters" in tags]
    if len(tagged) != 1:
        raise PlanError(f"{shown} has {len(tagged)} code cells tagged `parameters`; it takes one")
    if len(tagged[0].splitlines()) == 1:
        raise PlanError(f"{shown}: IPython reads a cell of the one line `run: ...` as its magic %run; put a comment line above it")
    try:
        return Notebook(path, _parameters(tagged[0]), cells)
    except (SyntaxError, ValueError) as error:
        raise PlanError(f"{shown}: the parameters cell is no list of `name: type = literal  # comment` ({error})") from error


def choices(parameter: Parameter) -> list[str]:
    """The values that the parameter's comment allows: `one of a, b: ...` gives a and b, any other comment nothing."""
    match = re.match(r"one of ([^:]+):", parameter.comment)
    return [choice.strip() for choice in match[1].split(",")] if match else []


def least(parameter: Parameter) -> int | None:
    """The smallest value that the parameter's comment allows: `at least 1: ...`."""
    match = re.match(r"at least (-?\d+):", parameter.comment)
    return int(match[1]) if match and parameter.kind in ("int", "float") else None


def _parameters(source: str) -> dict[str, Parameter]:
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for line in ast.parse(source).body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
            raise ValueError(f"line {line.lineno}")
        name, kind, default = line.target.id, ast.unparse(line.annotation), ast.literal_eval(line.value)
        if name in found:
            raise ValueError(f"{name} stands twice")
        try:
            default = fitted(default, kind)
        except TypeError as error:
            raise ValueError(f"{name}: {error}") from error
        found[name] = Parameter(name, kind, default, comments.get(line.end_lineno, ""))
    return found


def fitted(value, kind: str):
    """The value as the annotation takes it: an int becomes a float where a float is asked, a bool is never a number.

    TypeError says what the value is and what is taken, with the way out where YAML is the reason.
    """
    try:
        return _fitted(value, ast.parse(kind, mode="eval").body)
    except TypeError:
        way_out = ""
        if kind == "str":
            way_out = "; put it in quotes"
        elif isinstance(value, str) and kind in ("int", "float") and re.match(r"[-+.]?\d", value):
            way_out = "; write it without quotes, an exponent with point and sign, 1.0e-3"
        raise TypeError(f"{value!r} is {type(value).__name__}, it takes {kind}{way_out}") from None


def _fitted(value, kind: ast.expr):
    match kind:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            try:
                return _fitted(value, left)
            except TypeError:
                return _fitted(value, right)
        case ast.Subscript(value=ast.Name(id="list"), slice=item) if type(value) is list:
            return [_fitted(each, item) for each in value]
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, item])) if type(value) is dict:
            return {_fitted(k, key): _fitted(v, item) for k, v in value.items()}
        case ast.Constant(value=None) if value is None:
            return None
        case ast.Name(id="float") if type(value) is int:
            return float(value)
        case ast.Name(id=name) if type(value) is KINDS.get(name) and value == value and value not in (float("inf"), float("-inf")):
            return value
    raise TypeError
