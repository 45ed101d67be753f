"""The command line of the plan runner."""

import argparse
import logging
import os
import re
import signal
import sys
from pathlib import Path

from lib import files, paths, processes
from lib.plan import check, manifest
from lib.plan.check import Job
from lib.plan.reading import PlanError


def _chosen(jobs: list[Job], given: str, option: str) -> int:
    """The place of the notebook that an option names: `03-probe`, or its number, 3 or 03."""
    for place, job in enumerate(jobs):
        number = re.match(r"\d+", job.name)
        if job.name == given or (number and given.isdecimal() and int(number[0]) == int(given)):
            return place
    raise PlanError(f"{option} {given}: the plan has no such notebook; it has {', '.join(job.name for job in jobs)}")


def _run(jobs: list[Job], run: Path) -> None:
    """Run the notebooks whose manifest does not hold, in order, one line each."""
    for job in jobs:
        known = manifest.load(run, job.name)
        reason = manifest.stale(job, run, known)
        print(f"{job.name:20} ", end="", flush=True)
        if reason is None:
            print(f"skipped, finished before in {known['seconds']:.1f} s with {known['peak_memory_mb']:,} MB", flush=True)
            continue
        from lib.plan import execute  # papermill and Jupyter only where something has to run

        try:
            known = execute.run(job, run)
        except BaseException:
            print("failed", flush=True)
            raise
        print(f"ran {known['seconds']:8.1f} s {known['peak_memory_mb']:8,} MB  ({reason})", flush=True)


def _end(run: Path) -> None:
    """Where everything lies, and the headline table where there is one."""
    for folder in (run / "tables", run / "figures", paths.figures_folder(run.name)):
        if folder.is_dir():
            print(f"{folder.name if folder.parent == run else 'paper':20} {paths.shown(folder)}")
    headline = run / "tables" / "headline.md"
    if headline.exists():
        print(f"\n{headline.read_text(encoding='utf-8').rstrip()}")


def _stop(number, frame) -> None:
    logging.disable()  # asyncio and papermill would lament the kernel that is killed now
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m lib.plan", description="Run the notebooks of a plan that are not finished.")
    parser.add_argument("plan", type=Path, help="YAML file: notebook -> parameters; its name is the name of the run")
    parser.add_argument("--check", action="store_true", help="check names, types and input files of all notebooks, then stop")
    parser.add_argument("--status", action="store_true", help="show notebooks, shards, gaps, money and time, then stop")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--from", dest="start", metavar="N", help="leave out the notebooks before N, a number or a name")
    part.add_argument("--only", metavar="N", help="leave out all notebooks but N")
    parser.add_argument("--set", action="append", default=[], metavar="NOTEBOOK.PARAMETER=VALUE", help="beat one value of the plan; may be repeated")
    given = parser.parse_args(arguments)
    try:
        run = paths.run_folder(given.plan.stem)
    except ValueError as error:
        sys.exit(str(error))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        jobs = check.jobs(given.plan, given.set)
        if given.start:
            jobs = jobs[_chosen(jobs, given.start, "--from") :]
        if given.only:
            jobs = [jobs[_chosen(jobs, given.only, "--only")]]
        if given.check:
            print(f"{paths.shown(given.plan)}: {len(jobs)} notebooks, their parameters and input files are right")
        elif given.status:
            from lib.plan import status

            print("\n".join(status.lines(jobs, run)))
        else:
            with processes.lock(run):
                for folder in (run / "tables", run / "figures", paths.figures_folder(run.name)):
                    files.remove_leftovers(folder)
                _run(jobs, run)
            _end(run)
    except KeyboardInterrupt:
        sys.exit("stopped; run it again to go on")
    except PlanError as error:
        sys.exit(str(error))
    except ModuleNotFoundError as error:
        sys.exit(f"the package {error.name} is not installed in {sys.executable}; run make, and start with .venv/bin/python")
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (RuntimeError, OSError) as error:  # a failed notebook, a held run folder, a full disk
        sys.exit(str(error))


if __name__ == "__main__":
    main()
