"""Check every notebook of a plan before the first one starts: names, types and input files.

Every notebook has a parameter `run`, the name of the run folder, which the plan sets to its own name.
A parameter whose name ends in `_file` or `_folder` holds the path of an input that is there before
the plan starts, absolute or relative to the root; empty text means none.

A comment that begins with `one of a, b, c:` names all values that the parameter takes, one that
begins with `at least 1:` the smallest.

The key `everywhere` of a plan holds parameters that go to each notebook that takes them, so that a
threshold that several notebooks know is written once; what stands under a notebook beats it.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from lib import paths
from lib.plan import reading
from lib.plan.reading import PlanError


class Job(NamedTuple):
    """A notebook that is ready to run."""

    name: str  # "03-probe"
    path: Path
    parameters: dict  # every parameter, the defaults too
    cells: str  # the sha256 of its cells
    inputs: list[Path]  # the files that its `_file` and `_folder` parameters name


def jobs(plan: Path, sets: list[str] = ()) -> list[Job]:
    """The jobs of a plan in running order. `sets` are lines NOTEBOOK.PARAMETER=VALUE that beat the plan.

    PlanError names every problem of the whole plan, one a line.
    """
    steps = reading.plan(plan)
    common = steps.pop("everywhere", {})
    problems, found, notebooks = [], [], {}
    for name in steps:
        try:
            notebooks[name] = reading.notebook(paths.NOTEBOOKS / f"{name}.ipynb")
        except PlanError as error:
            problems.append(str(error))
    problems += _spread(common, steps, notebooks)
    for line in sets:
        try:
            _set(steps, notebooks, line)
        except PlanError as error:
            problems.append(str(error))
    for name, notebook in notebooks.items():
        values, faults = _values(notebook, steps[name], plan.stem)
        inputs, missing = _inputs(notebook, values)
        problems += faults + missing
        cells = hashlib.sha256(json.dumps(notebook.cells).encode()).hexdigest()
        found.append(Job(name, notebook.path, values, cells, inputs))
    if problems:
        raise PlanError("\n".join(dict.fromkeys(problems)))  # what several notebooks share is said once
    return found


def _spread(common: dict, steps: dict[str, dict], notebooks: dict[str, reading.Notebook]) -> list[str]:
    """Give each notebook the common parameters that it takes; the problems are those that no notebook takes."""
    for name, notebook in notebooks.items():
        steps[name] = {key: value for key, value in common.items() if key in notebook.parameters} | steps[name]
    taken = {key for notebook in notebooks.values() for key in notebook.parameters}
    return [f"everywhere: no notebook of the plan has a parameter '{key}'" for key in common if key not in taken]


def _set(steps: dict[str, dict], notebooks: dict[str, reading.Notebook], line: str) -> None:
    target, equals, text = line.partition("=")
    name, dot, parameter = target.rpartition(".")
    if not equals or not dot:
        raise PlanError(f"--set {line} is not NOTEBOOK.PARAMETER=VALUE, such as 01-corpus.queries=40")
    if name not in steps:
        raise PlanError(f"--set {line}: the plan has no notebook '{name}'; it has {', '.join(steps)}")
    if name in notebooks:
        known = notebooks[name].parameters.get(parameter)
        try:  # text stays as it was typed: 007 is "007"
            steps[name][parameter] = text if known and known.kind == "str" else reading.strict_yaml(text)
        except PlanError as error:
            raise PlanError(f"--set {line}: {error}") from error


def _values(notebook: reading.Notebook, given: dict, run: str) -> tuple[dict, list[str]]:
    shown, takes = paths.shown(notebook.path), notebook.parameters
    values, problems = {name: parameter.default for name, parameter in takes.items()}, []
    if "run" not in takes or takes["run"].kind != "str":
        problems.append(f"{shown} has no parameter `run: str`; it needs one for the name of the run folder")
    values["run"] = run
    for name, value in given.items():
        if name == "run":
            problems.append(f"{shown}: run is set to the plan's name, {run}; leave it out, or copy the plan to another name")
        elif name not in takes:
            problems.append(f"{shown} has no parameter '{name}'; it takes {', '.join(n for n in takes if n != 'run') or 'none'}")
        else:
            try:
                values[name] = reading.fitted(value, takes[name].kind)
            except TypeError as error:
                problems.append(f"{shown}: {name} = {error}")
    for name, value in values.items():
        choices = reading.choices(takes[name]) if name in takes else []
        if choices and value not in choices:
            problems.append(f"{shown}: {name} = {value!r} is none of {', '.join(choices)}")
        least = reading.least(takes[name]) if name in takes else None
        if least is not None and value < least:
            problems.append(f"{shown}: {name} = {value!r} is less than {least}")
    if values.get("judge") == "env" and not os.environ.get("QRELBOOK_JUDGE_URL"):
        problems.append("judge is env and QRELBOOK_JUDGE_URL is not set; set it to the url of the judge's server")
    return values, problems


def _inputs(notebook: reading.Notebook, values: dict) -> tuple[list[Path], list[str]]:
    found, problems = [], []
    for name, value in values.items():
        wants = "file" if name.endswith("_file") else "folder" if name.endswith("_folder") else None
        if wants is None or not isinstance(value, str) or value == "":
            continue
        path = paths.source(value)
        if not (path.is_file() if wants == "file" else path.is_dir()):
            way_out = f"give an absolute path, or one relative to {paths.ROOT}"
            problems.append(f"{paths.shown(notebook.path)}: {name} = {value!r} is no {wants} ({path}); {way_out}")
        elif wants == "file":
            found.append(path)
        else:
            found += sorted(p for p in path.rglob("*") if p.is_file())
    return found, problems
