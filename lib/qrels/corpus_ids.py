"""Which documents are in the corpus: by its near-duplicate files, which have a row for each, or by a list of ids."""

from collections.abc import Collection, Iterator
from pathlib import Path

from lib import ids, paths
from lib.qrels.refusals import Refused

_NAMED = 10


def check(docids: Collection[str], near_dups: Path | None, corpus: Path | None) -> dict[str, Path]:
    """Refuse ids (API spelling) that are not in the corpus, the first ten by name; give the files that were asked, by name.

    corpus: a text file, an id a line in either spelling; it counts alone where both are given. Columns of ids stay in Arrow.
    """
    if corpus is None and near_dups is None:
        raise Refused("nothing says which documents the corpus has; give --near-dup-dir (QRELS_NEAR_DUP_DIR), or --corpus with an id a line")
    missing, asked = set(docids), {}
    for path, found in _lines(corpus, missing) if corpus is not None else _rows(near_dups, missing):
        asked[path.name] = path
        missing -= found
    if missing:
        named = ", ".join(map(ascii, sorted(missing)[:_NAMED])) + (f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else "")
        raise Refused(
            f"{len(missing)} of {len(docids)} documents are not in {paths.shown(corpus or near_dups)}: {named}; "
            "check that the qrels and the corpus are of one version, and build again"
        )
    return asked


def _lines(corpus: Path, docids: set[str]) -> Iterator[tuple[Path, set[str]]]:
    try:
        with open(corpus, encoding="utf-8", newline="\n") as lines:
            yield Path(corpus), docids.intersection(ids.api(line.rstrip("\r\n")) for line in lines)
    except OSError as error:
        raise Refused(f"{paths.shown(corpus)} cannot be read ({error.strerror}); give a file with the ids of the corpus, one a line") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{paths.shown(corpus)} is not UTF-8 at byte {error.start}; give a file with the ids of the corpus, one a line") from error


def _rows(near_dups: Path, docids: set[str]) -> Iterator[tuple[Path, set[str]]]:
    import pyarrow as pa  # only here, and a list of ids does without
    import pyarrow.compute as pc

    from lib.qrels.near_duplicates import near_schema

    spellings = pa.array(sorted({spelling(docid) for docid in docids for spelling in (ids.api, ids.analysis)}), pa.string())
    for path in near_schema.near_files(near_dups):
        near, found = near_schema.opened(path), set()
        for first, batch in near_schema.batches(near, [near.docid]):
            rows = near_schema.docids(near, batch, first)
            found.update(map(ids.api, rows.filter(pc.is_in(rows, value_set=spellings)).to_pylist()))
        yield path, found
