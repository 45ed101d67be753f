"""`torchrun -m lib.student.train CONFIG`: train the arms that a configuration names, one after the other.

CONFIG is JSON: `{"run": FOLDER, "arms": {NAME: SETTINGS}, "options": {...}}`, settings and options as `lib.student.arms` takes
them; `tokens/` and `examples/` are there. So the trainer runs on many nodes too, under a torchrun that a scheduler starts.

Each process dies with the torchrun that started it, and where `lib.student.arms` started that, with the notebook: it is
asked for before torch is imported. Errors end in one sentence on stderr, which begins with the module's name.
"""

import json
import os
import sys
from pathlib import Path

from lib import processes
from lib.student.arms import MODULE, STARTED_BY


def _die_with_the_notebook() -> None:
    """The kernel is asked to kill this process with torchrun; one whose torchrun is gone already ends here."""
    processes.die_with_parent()
    starter = os.environ.get(STARTED_BY)
    if starter and Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1] != starter:
        os._exit(1)  # adopted by another process in between


def main(path: str) -> None:
    """Exit 1 with one sentence where training cannot start or go on."""
    _die_with_the_notebook()
    from lib.student import loop

    with processes.one_sentence(MODULE):
        loop.run(json.loads(Path(path).read_text()))


if __name__ == "__main__":
    main(sys.argv[1])
