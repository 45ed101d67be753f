"""Which modules a module stands on."""

import ast

import pytest

from lib import files, paths, sources


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A `lib` of its own: a -> b -> room.c, and d alone."""
    (tmp_path / "lib/room").mkdir(parents=True)
    for name, source in {
        "__init__": "", "a": "from lib import b\nimport os", "b": "def late():\n    from lib.room import c", "d": "import lib.gone",
        "room/__init__": "from lib import e", "room/c": "import lib.a as first", "e": "",
    }.items():
        (tmp_path / f"lib/{name}.py").write_text(source)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


def test_the_closure_has_late_imports_circles_and_the_rooms_on_the_way(house):
    assert sources.closure("lib.a") == ["lib", "lib.a", "lib.b", "lib.e", "lib.room", "lib.room.c"]


def test_a_module_that_is_gone_is_not_in_the_closure_and_has_an_empty_hash(house):
    assert sources.closure("lib.d") == ["lib", "lib.d"]
    assert sources.digests(["lib.gone", "lib.d"]) == {"lib.gone": "", "lib.d": files.sha256(house / "lib/d.py")}


def test_an_edit_changes_the_hashes_and_a_new_import_the_closure(house):
    before = sources.hashes("lib.a")
    (house / "lib/b.py").write_text("import lib.d  # and no longer the room")
    after = sources.hashes("lib.a")
    assert before["lib.a"] == after["lib.a"] and before["lib.b"] != after["lib.b"]
    assert set(after) == {"lib", "lib.a", "lib.b", "lib.d"}


def test_every_form_of_import_is_seen():
    source = "import lib.a, os\nfrom lib import b as c\nfrom lib.room.d import f\nif x:\n    import lib.e as g"
    assert {"lib.a", "lib", "lib.b", "lib.room.d", "lib.e"} <= sources.imports(ast.parse(source))


def test_the_library_imports_by_whole_names_only():
    """A relative import would be missing from the closure."""
    for path in (paths.ROOT / "lib").rglob("*.py"):
        relative = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom) and node.level]
        assert not relative, f"{path}:{relative[0]} imports relatively"


def test_the_engine_stands_on_the_foundation():
    assert {"lib", "lib.contracts", "lib.files", "lib.paths", "lib.processes", "lib.sources", "lib.trace"} <= set(sources.closure("lib.engine"))
    assert "lib.corpus" not in sources.closure("lib.engine")
