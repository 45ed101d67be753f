"""The command line of the qrels line: `python -m lib.qrels STEP`."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from lib import paths
from lib.processes import Locked
from lib.qrels import options, taken
from lib.qrels.refusals import Refused, Unsettled
from lib.qrels.work import Work


def _given(value: str | None, option: str, variable: str) -> str:
    if not value:
        raise Refused(f"{option} is not given; give it, or set {variable}")
    return value


def _out(work: Work, given: Path | None, usual: Path) -> Path:
    """Where a step writes its qrels; Refused where that is a file which another step of the work folder reads or writes."""
    others = {path.resolve() for path in (work.candidates, work.overrides, work.qrels, work.expanded)} - {usual.resolve()}
    if given and given.resolve() in others:
        raise Refused(f"--out {paths.shown(given)} is another step's file; give another name, or leave --out away for {paths.shown(usual)}")
    return given or usual


def _run(given: argparse.Namespace) -> Iterable[str]:
    """The lines of one step; modules are imported by the step that needs them, so that each starts fast."""
    work = Work(Path(given.work_dir))
    match given.step:
        case "candidates":
            from lib.qrels import candidates

            workbook = Path(_given(given.workbook, "--workbook", "QRELS_WORKBOOK"))
            return candidates.write(work, workbook, Path(_given(given.questions, "--questions", "QRELS_QUESTIONS")), given.columns)
        case "fetch":
            from lib.qrels import documents

            ids = documents.ids(work, qid=given.qid, ids_file=given.ids_file)
            return documents.fetch(work, ids, _given(given.doc_cmd, "--doc-cmd", "QRELS_DOC_CMD"), given.workers, given.timeout, given.tries)
        case "worksheet" if given.html:
            from lib.qrels import page

            return page.write(work, given.qid)
        case "worksheet":
            from lib.qrels import worksheet

            return worksheet.render(work, given.qid, given.max_chars)
        case "verdicts":
            from lib.qrels import verdicts

            return verdicts.record_all(work) if given.all else verdicts.record(work, given.qid)
        case "build":
            from lib.qrels import build

            return build.build(work, _out(work, given.out, work.qrels))
        case "expand":
            return _expand(work, given)
        case "stats":
            from lib.qrels import stats

            return stats.write(given.file, given.outdir, given.figwidth, given.png)
        case "near-dup":
            from lib.qrels import near_stats

            return near_stats.write(given.file, given.outdir, given.figwidth, given.png)
        case "release":
            from lib.qrels import release

            near_dups = Path(given.near_dup_dir) if given.near_dup_dir else None
            return release.release(work, given.file or work.expanded, given.outdir, near_dups, given.corpus, given.texts)
    from lib.qrels import status

    return status.lines(work)


def _expand(work: Work, given: argparse.Namespace) -> Iterable[str]:
    from lib.qrels import expansion

    qrels = given.qrels if "qrels" in given and given.qrels else work.qrels
    if given.inner in ("scan", "export"):
        near_dups = Path(_given(given.near_dup_dir, "--near-dup-dir", "QRELS_NEAR_DUP_DIR"))
        exact_dups = Path(_given(given.exact_dups, "--exact-dups", "QRELS_EXACT_DUPS"))
    match given.inner:
        case "scan":
            return expansion.scan(work, qrels, near_dups, exact_dups)
        case "render":
            return expansion.render(work, given.qid, qrels, given.max_chars)
        case "apply":
            return expansion.apply(work, given.qid, given.decisions)
    return expansion.export(work, qrels, _out(work, given.out, work.expanded), near_dups, exact_dups)


def main(arguments: list[str] | None = None) -> None:
    """Exit 1 with what was refused or is left to settle, 2 where the command line is wrong."""
    sys.stdout.reconfigure(encoding="utf-8")  # a text is shown as it is, whatever the locale
    given = options.parser().parse_args(arguments)
    try:
        for line in (lines := _run(given)):
            print(line, flush=True)
            if isinstance(lines, Iterator):  # a worksheet, which counts as shown once its last line was taken
                taken.wait(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; what was not printed was not shown
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit("stopped; run it again to go on")
    except Unsettled as left:
        for line in left.told:
            print(line)
        sys.stdout.flush()
        sys.exit(f"lib.qrels: left to settle:\n{left}")
    except (ValueError, OSError, Locked) as error:
        sys.stdout.flush()
        where, why = getattr(error, "filename", None), getattr(error, "strerror", None)
        way_out = "make room, or allow it to be read and written, and run again"
        sys.exit(f"lib.qrels: {f'{paths.shown(where)} cannot be used ({why}); {way_out}' if where and why else error}")
    except (LookupError, TypeError, AttributeError) as error:  # a file of the steps was changed by hand
        sys.stdout.flush()
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        sys.exit(f"lib.qrels: a file under {paths.shown(given.work_dir)} is damaged ({what}); run the step that writes it again")


if __name__ == "__main__":
    main()
