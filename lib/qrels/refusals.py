"""How a step says no: nothing was written, or everything was written and something is left to settle."""

import shlex


class Refused(ValueError):
    """A step did nothing: one sentence that names the file, the cell or line, the value and the way out."""


class Unsettled(Refused):
    """A step wrote what it could, and these lines are left: each names what it is about and the way out.

    `told` are the lines that the step would have given back.
    """

    def __init__(self, lines: list[str], told: list[str] = ()):
        self.lines, self.told = list(lines), list(told)
        super().__init__("\n".join(lines))


def option(qid: str) -> str:
    """The option that names a question, the id as a shell takes it: `--qid 78`; `--qid=-q` where it would pass for an option."""
    return f"--qid{'=' if qid.startswith('-') else ' '}{shlex.quote(qid)}"


def run(step: str, qid: str, flags: str = "") -> str:
    """The way out that a message names: `run verdicts --qid 78`, the id as a shell takes it."""
    return f"run {step} {option(qid)}{flags}"
