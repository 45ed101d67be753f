"""What can be said of the pairs of a part without rendering them: the bytes that are sent, and the calls that are left.

The messages of a pair are its texts between parts that are the same for all, so their bytes are sums of lengths. And a key
holds the task, the model and the prompt: where no call had all three, none has the key, whatever it is.
"""

import functools
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lib import corpus, keys
from lib.judge import answers, attacks, budget, keyed, pairs, prompt, store, turns
from lib.judge.pairs import Pairs
from lib.judge.turns import Config

_WHOLE = -1  # in the place of a cut: all of the text
_TASK = "S16"


def document_bytes(run: str | Path, cuts: Sequence[int]) -> dict[int, np.ndarray]:
    """The UTF-8 bytes of the first `cut` characters of each document (of all, where it is -1): cut -> int32[documents].

    One pass over the texts, a part at a time.
    """
    found = {cut: [np.empty(0, np.int32)] for cut in cuts}
    for part in corpus.parts(run, "documents"):
        texts = corpus.documents(run, part.shard, ["text"])["text"]
        for cut, lengths in found.items():
            told = pc.binary_length(texts if cut == _WHOLE else pc.utf8_slice_codeunits(texts, 0, cut))
            lengths.append(told.to_numpy().astype(np.int32))
    return {cut: np.concatenate(lengths) for cut, lengths in found.items()}


def cuts(rows: pa.Table) -> np.ndarray:
    """`max_chars` of each intent, -1 where nothing is cut."""
    return rows["max_chars"].fill_null(_WHOLE).to_numpy()


def worst_inputs(render: Pairs, part: str, rows: pa.Table, documents: dict[int, np.ndarray]) -> np.ndarray:
    """`budget.worst_input` of each pair, int64[rows]; documents: of `document_bytes`."""
    first, _, queries = render.ids(part)
    fixed = budget.worst_input(prompt.messages(render.by.prompt, prompt.task_id("", ""), "", ""))
    found = fixed + np.array([len(text.encode()) for text in queries], np.int64)[rows["query"].to_numpy() - first]
    doc, cut = rows["doc"].to_numpy(), cuts(rows)
    for one in np.unique(cut).tolist():
        found[cut == one] += documents[one][doc[cut == one]]
    if rows.num_rows and rows["version"][0].as_py() in {store.SETS[name] for name in attacks.SETS}:
        found += [len(attacks.attacked("", reason).encode()) for reason in rows["reason"].to_pylist()]
    return found


def calls_left(config: Config, render: Pairs, part: str, rows: pa.Table) -> np.ndarray:
    """The calls that each LLM pair of a part may still get, int64[rows]: 0 where none is owed."""
    version, left = store.SETS[config.set], np.where(turns.asked(config, rows), config.passes * config.budget, 0)
    at, known = _known(config, render, part, rows)
    calls = answers.history(config.run, part, version)
    looked = (left[at] > 0) & turns.first(known) & ~calls.answered(known)
    left[at] = 0
    for i in np.flatnonzero(looked).tolist():
        if turn := answers.due(calls.of(known[i]), version, config.passes, config.budget):
            left[at[i]] = turn.left + (config.passes - turn.in_pass) * config.budget
    return left


def _known(config: Config, render: Pairs, part: str, rows: pa.Table) -> tuple[np.ndarray, list[str]]:
    """The rows whose keys can be those of a call or of another row, ascending, and their keys; all rows where the keys are kept."""
    if (kept := keyed.read(config.run, config.set, part, render.by)) is not None:
        return np.arange(rows.num_rows), kept
    pair = keys.of(rows)
    at = np.flatnonzero(keys.inside(pair, keys.repeated(pair)) | _called(config, render, part, rows))
    found = [""] * len(at)
    for rendered in render.render(part, rows.take(at)):
        found[rendered.row] = rendered.key
    return at, found


def _called(config: Config, render: Pairs, part: str, rows: pa.Table) -> np.ndarray:
    """bool[rows]: a call that may answer was made of this task, of this model with this prompt."""
    held = [source for name in store.sets_up_to(store.SETS[config.set]) for source in store.sources(config.run, name, part)]
    stamps = [(path, path.stat().st_size, path.stat().st_mtime_ns) for source in held for path in store.files_of(source)]
    tasks = _tasks(tuple(held), tuple(stamps), render.by.model, render.by.prompt.sha256)
    return keys.inside(np.array(render.tasks(part, rows), _TASK), tasks) if len(tasks) else np.zeros(rows.num_rows, bool)


@functools.lru_cache(maxsize=1)
def _tasks(held: tuple[Path, ...], stamps: tuple, model: str, prompt_sha256: str) -> np.ndarray:
    """The tasks of the calls, ascending; read once where one list of files, as they are today, serves all parts."""
    found = [np.empty(0, _TASK)]
    for rows in chain.from_iterable(store.tables(source, ["task_id", "prompt_sha256", "model"]) for source in held):
        of_judge = pc.and_(pc.equal(rows["model"], model), pc.equal(rows["prompt_sha256"], prompt_sha256))
        found.append(rows["task_id"].filter(of_judge).cast(pa.binary()).to_numpy().astype(_TASK))
    return np.unique(np.concatenate(found))
