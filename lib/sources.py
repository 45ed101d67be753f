"""Which modules of the library a module stands on, and the hashes of their sources."""

import ast
import functools
from pathlib import Path

from lib import files, paths, trace


def file(module: str) -> Path | None:
    """The source of a module of `lib`, None where there is none."""
    base = paths.ROOT / Path(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)


def imports(tree: ast.AST) -> set[str]:
    """Every name that a source imports, also inside functions; `from lib import text` gives lib and lib.text."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@functools.lru_cache(maxsize=None)
def _direct(path: Path, mtime: int) -> frozenset[str]:
    return frozenset(name for name in imports(ast.parse(path.read_text())) if name.split(".")[0] == "lib")


def closure(module: str) -> list[str]:
    """The module and all modules of `lib` it imports, directly or not, sorted."""
    found, todo = set(), [module]
    while todo:
        name = todo.pop()
        path = file(name)
        if path is None or name in found:
            continue
        found.add(name)
        todo.extend(_direct(path, path.stat().st_mtime_ns))
        if "." in name:
            todo.append(name.rpartition(".")[0])  # importing a.b runs a/__init__.py
    return sorted(found)


def stand_on(module: str) -> None:
    """Record that this process stands on a module and its closure, also where nothing is left to do and nobody imports them."""
    for name in closure(module):
        trace.record("import", name)


def hashes(module: str) -> dict[str, str]:
    """The sha256 of the source of every module in the closure."""
    return digests(closure(module))


def digests(modules: list[str]) -> dict[str, str]:
    """The sha256 of each named module's source; a module that is gone has the hash ''."""
    return {name: files.sha256(path) if (path := file(name)) else "" for name in modules}
