"""`python -m lib.student.worker JOB PIPE`: open the gate, then score the units of a job, telling each through the pipe.

Started by `lib.student.workers`. An error ends in one sentence on stderr, which begins with the module's name.
"""

import json
import os
import sys
from pathlib import Path

from lib import engine, processes
from lib.student import opening

MODULE = "lib.student.worker"


def run(job: dict, pipe: int) -> None:
    """Units of the job: stage, config, key, units, and the tokens of them all."""
    stage, config = engine.find(job["stage"]), job["config"]
    if job["tokens"]:
        opened = opening.open_gate(config, job["key"])
        _tell(pipe, {"gate": opened.sha256, "device": opened.device})
    for unit in job["units"]:
        with processes.lock(engine.part(config, stage, unit)):
            line = engine.run_shard(stage.name, unit, config, job["key"])
        _tell(pipe, {"unit": unit} | {name: line[name] for name in ("pairs", "tokens", "timing")})


def _tell(pipe: int, said: dict) -> None:
    os.write(pipe, (json.dumps(said) + "\n").encode())  # shorter than PIPE_BUF, so lines of workers do not mix


def main(job: str, pipe: str) -> None:
    """Exit 1 with one sentence where the gate stays shut or a unit cannot be scored."""
    with processes.one_sentence(MODULE):
        run(json.loads(Path(job).read_text()), int(pipe))


if __name__ == "__main__":
    main(*sys.argv[1:])
