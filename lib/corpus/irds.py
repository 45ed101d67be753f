"""A dataset of ir_datasets whose files are on disk already; nothing is ever downloaded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lib.corpus.lines import Place, Refused
from lib.corpus.trec import Judged


def documents(name: str) -> Iterator[tuple[Place, dict]]:
    """Rows for `write`: doc_id and the default text of each document."""
    for n, row in _rows(name, "docs"):
        place = Place(f"{name} docs", n)
        yield place, {"docid": row.doc_id, "text": _text(place, row)}


def queries(name: str) -> Iterator[tuple[Place, dict]]:
    """Rows for `write`: query_id and the default text of each query."""
    for n, row in _rows(name, "queries"):
        place = Place(f"{name} queries", n)
        yield place, {"qid": row.query_id, "text": _text(place, row)}


def qrels(name: str) -> Iterator[Judged]:
    """The judgments of the dataset."""
    for n, row in _rows(name, "qrels"):
        yield Judged(Place(f"{name} qrels", n), row.query_id, row.doc_id, int(row.relevance))


def has_qrels(name: str) -> bool:
    """Whether the dataset has judgments."""
    return _dataset(name).has("qrels")


def _dataset(name: str):
    import ir_datasets  # takes a second, and only this importer needs it

    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise Refused(f"{name} is no dataset of ir_datasets {ir_datasets.__version__}") from error


def _rows(name: str, kind: str) -> Iterator[tuple[int, object]]:
    dataset = _dataset(name)
    if not dataset.has(kind):
        raise Refused(f"{name} has no {kind} in ir_datasets; name a dataset that has them")
    with _offline(name):
        yield from enumerate(getattr(dataset, f"{kind}_iter")(), start=1)


def _text(place: Place, row) -> str:
    default: Callable[[], str] | None = getattr(row, "default_text", None)
    if default:
        return default()
    if not hasattr(row, "text"):
        raise Refused(f"{place} has no text, only {', '.join(row._fields)}; import it as JSONL")
    return row.text


@contextmanager
def _offline(name: str) -> Iterator[None]:
    """Every download of ir_datasets asks its `lazy_libs` for requests: there it is refused."""
    import ir_datasets

    class NotOnDisk(Exception):
        pass

    def refuse():
        raise NotOnDisk

    def missing(error: BaseException) -> bool:
        """Also where the library wrapped it with the errors of its other mirrors."""
        inner = [pair[1] for found in error.args if isinstance(found, list) for pair in found]
        return isinstance(error, (NotOnDisk, FileNotFoundError)) or any(isinstance(found, NotOnDisk) for found in inner)

    requests = ir_datasets.lazy_libs.requests
    ir_datasets.lazy_libs.requests = refuse
    try:
        yield
    except Exception as error:
        if missing(error):
            home = ir_datasets.util.home_path()
            raise Refused(f"{name} is not on disk under {home} (IR_DATASETS_HOME); fetch it with ir_datasets first, nothing is downloaded here") from error
        raise
    finally:
        ir_datasets.lazy_libs.requests = requests
