"""The rules of the house: imports go one way, files are small, notebooks are thin and stripped, cases are tested."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest
from nbstripout import strip_output

from lib import sources

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "lib").rglob("*.py"))
NOTEBOOKS = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "notebooks" / "bench").glob("*.ipynb")])

# a room may import itself and the rooms before it
ORDER = "paths trace files processes sources contracts ids text draw keys buckets exports corpus engine packed retrieval routing judge student release stats report".split()
APART = {"judge": {"student"}, "student": {"judge"}}  # side by side
FOUNDATION = {"paths", "trace", "files", "processes", "sources"}
# rooms outside the line: what they need; nobody imports sample and plan
NEEDS = {
    "qrels": FOUNDATION | {"contracts", "ids", "text", "buckets", "exports", "engine", "report"},
    "sample": FOUNDATION | {"contracts", "ids", "text", "corpus"},
    "plan": FOUNDATION | {"contracts", "engine"},
}
TORCH = re.compile(r"(packed|student)/.*|retrieval/(encode|rerank)(/.*|\.py)|retrieval/.*(bf16|int8).*\.py")


def room(path: Path) -> str:
    return path.relative_to(ROOT / "lib").parts[0].removesuffix(".py")


def allowed(name: str) -> set[str]:
    if name in NEEDS:
        return NEEDS[name] | {name}
    return set(ORDER[: ORDER.index(name) + 1]) - APART.get(name, set())


def imported(path: Path) -> set[str]:
    """The rooms that a module imports, also inside functions."""
    found = {name.split(".")[1] for name in sources.imports(ast.parse(path.read_text())) if name.startswith("lib.")}
    return found & ({room(module) for module in MODULES} | set(ORDER) | set(NEEDS))


@pytest.mark.parametrize("path", [path for path in MODULES if path != ROOT / "lib" / "__init__.py"], ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    assert room(path) in ORDER or room(path) in NEEDS, f"{room(path)} is no room of the house"
    assert imported(path) - allowed(room(path)) == set()


def test_the_import_rule_sees_what_it_should(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from lib import stats\n    import lib.report.tables\n    from lib.judge.store import read\n")
    assert imported(bad) == {"stats", "report", "judge"}
    assert "judge" not in allowed("routing") | allowed("student") | allowed("sample") and "sample" not in allowed("report")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_opens_with_a_sentence_and_stays_small(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(source))


def test_torch_is_imported_in_its_rooms_only():
    found = []
    for path in MODULES:
        names = {name.split(".")[0] for name in sources.imports(ast.parse(path.read_text()))}
        if "torch" in names and not TORCH.fullmatch(path.relative_to(ROOT / "lib").as_posix()):
            found.append(path.relative_to(ROOT).as_posix())
    assert found == []
    assert TORCH.fullmatch("student/score.py") and not TORCH.fullmatch("stats/packed.py")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_defines_nothing(path):
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_stripped(path):
    keys = ["metadata.papermill", "metadata.widgets", "cell.metadata.papermill", "cell.metadata.execution"]
    notebook = nbformat.read(path, as_version=4)
    stripped = strip_output(nbformat.read(path, as_version=4), keep_output=False, keep_count=False, keep_id=True, extra_keys=keys)
    assert notebook == stripped
    nbformat.validate(notebook)


def test_every_copied_case_has_a_test():
    tested = set()
    for path in (ROOT / "tests").glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                tested |= set(re.findall(r"case_(\d\d)", node.name))
    copied = {path.name[:2] for path in (ROOT / "tests" / "cases").iterdir()}
    assert "38" in copied
    assert copied - tested == set()
