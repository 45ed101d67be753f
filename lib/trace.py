"""Which library modules a process imported, and which files it read and wrote.

With `QRELBOOK_TRACE=FILE` in the environment, every process that imports `lib`,
children included, appends lines `import lib.text`, `read PATH`, `write PATH` to FILE.
The plan runner makes the manifest of a notebook from them.
"""

import os
import sys
from pathlib import Path

VARIABLE = "QRELBOOK_TRACE"


def record(event: str, what: str | Path) -> None:
    """Append one line in one write; without the variable it does nothing."""
    target = os.environ.get(VARIABLE)
    if target:
        what = what if event == "import" else Path(what).absolute()
        fd = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(fd, f"{event} {what}\n".encode())
        finally:
            os.close(fd)


class _Recorder:
    """A finder that finds nothing and writes down what was looked for."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith("lib."):
            record("import", name)
        return None


def start() -> None:
    if os.environ.get(VARIABLE):
        record("import", "lib")
        record("import", "lib.trace")  # already loaded when the recorder starts
        sys.meta_path.insert(0, _Recorder())


def events(path: Path) -> dict[str, list[str]]:
    """The traced lines by event, each value once, sorted."""
    found = {"import": set(), "read": set(), "write": set()}
    for line in Path(path).read_text().splitlines() if Path(path).exists() else []:
        event, _, what = line.partition(" ")
        found[event].add(what)
    return {event: sorted(values) for event, values in found.items()}
