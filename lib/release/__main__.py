"""Release the labels of a run: `python -m lib.release RUN --outdir DIR`."""

import argparse
import sys
from pathlib import Path

import duckdb

from lib import paths
from lib.processes import Locked
from lib.release import published


def main(arguments: list[str] | None = None) -> None:
    """Exit 1 with one sentence where nothing was released, 2 where the command line is wrong."""
    parser = argparse.ArgumentParser(
        "python -m lib.release", description="Release the labels of a run. Reads labels/, queries/ and documents/ of the run. "
        "Writes DIR: TREC qrels, a BEIR folder, JSONL, a data card and a manifest of hashes; an earlier release in DIR is replaced.",
    )  # fmt: skip
    parser.add_argument("run", help="the plan's name, or a run folder")
    parser.add_argument("--outdir", type=Path, required=True, metavar="DIR")
    parser.add_argument("--no-texts", dest="texts", action="store_false", help="leave corpus.jsonl out of the BEIR folder")
    given = parser.parse_args(arguments)
    try:
        run = Path(given.run) if "/" in given.run else paths.run_folder(given.run)
        for line in published.publish(run, given.outdir, given.texts):
            print(line)
    except (ValueError, OSError, Locked, duckdb.Error) as error:
        sys.exit(f"lib.release: {' '.join(str(error).split())}")
    except KeyboardInterrupt:
        sys.exit("lib.release: stopped; run it again")


if __name__ == "__main__":
    main()
