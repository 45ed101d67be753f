"""What exact dense search takes beside faiss and beside the process's own matrix product, in a fresh process.

`python -m lib.retrieval.dense_measure OPTIONS` draws vectors, races the ways that the JSON options name and prints its JSON.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lib import paths, processes
from lib.retrieval import dense, hits
from lib.retrieval.hits import Hits

WAYS = ("ours, fp32", "ours, bf16", "ours, int8", "ours, two threads", "sgemm", "bf16 product", "int8 product", *(("ours, faiss", "IndexFlatIP", "IDSelectorBitmap") if find_spec("faiss") else ()))


class Options(NamedTuple):
    """What is drawn and raced."""

    ways: list[str]
    documents: int
    dimensions: int
    queries: int
    few: int  # queries of IDSelectorBitmap, which takes them one by one, and of the check by float64
    removed: float  # share of the documents
    k: int
    rounds: int
    seed: int


class Measured(NamedTuple):
    """Of one child: least processor seconds of a query by each way, wall seconds by one thread and by two, and by how many MiB the peak rose over the vectors."""

    seconds: dict[str, float]
    wall: dict[str, float]
    same: dict[str, bool]  # whether a way's lists are those of `ours, fp32`; its own are those of the float64 loop
    places: dict[str, int]  # in which the order differs
    mib: float
    blas: list[str]


def draw(documents: int, dimensions: int, seed: list[int]) -> np.ndarray:
    """float32[documents, dimensions] of length 1 around one centre for every 200 vectors."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(seed[0]).standard_normal((200, dimensions), dtype=np.float32)
    made = np.empty((documents, dimensions), np.float32)
    for at in range(0, documents, 4096):
        some = made[at : at + 4096]
        some[:] = rng.standard_normal(some.shape, dtype=np.float32) + centres[rng.integers(0, 200, len(some))]
        some /= np.linalg.norm(some, axis=1, keepdims=True)
    return made


def by_loop(vectors: np.ndarray, rows: np.ndarray, query: np.ndarray, k: int) -> Hits:
    """The definition: sums of float64 over ascending dimensions, rounded to float32, every document in order."""
    found = hits.none(len(query), k)
    for q, x in enumerate(query.astype(np.float64)):
        total = np.zeros(len(vectors))
        for j, value in enumerate(x):
            total += value * vectors[:, j]
        key = total.astype(np.float32)
        order = np.lexsort((rows, -key))[:k]
        found.doc[q, : len(order)], found.score[q, : len(order)] = rows[order], key[order]
    return found


def _ways(options: Options, vectors: np.ndarray, rows: np.ndarray, query: np.ndarray) -> dict[str, Callable]:
    """Each gives doc int32[queries, k], or nothing."""

    def ours(backend: str, threads: int = 1) -> Callable:
        known = dense.documents(vectors, rows, backend=backend)  # made ready before the clock, as an index of faiss is

        def search():
            best = hits.heap(len(query), options.k)
            dense.add(best, query, known, threads)
            return hits.ranked(best).doc

        return search

    def sgemm():
        product = np.empty((min(dense.QUERIES, len(query)), dense.BLOCK), np.float32)
        for first in range(0, len(query), dense.QUERIES):
            some = query[first : first + dense.QUERIES]
            for at in range(0, len(vectors), dense.BLOCK):
                block = vectors[at : at + dense.BLOCK]
                np.matmul(some, block.T, out=product[: len(some), : len(block)])

    made = {f"ours, {name}": ours(name) for name in dense.BACKENDS if f"ours, {name}" in options.ways} | {"ours, two threads": ours("fp32", 2), "sgemm": sgemm}
    for name in {"bf16", "int8"} & {way.removesuffix(" product") for way in options.ways}:
        made[f"{name} product"] = importlib.import_module(f"lib.retrieval.dense_{name}").product(query, vectors)
    if {"IndexFlatIP", "IDSelectorBitmap"} & set(options.ways):
        import faiss

        faiss.omp_set_num_threads(1)
        index = faiss.IndexFlatIP(options.dimensions)
        index.add(vectors)
        made["IndexFlatIP"] = lambda: rows[index.search(query, options.k)[1]]
        if "IDSelectorBitmap" in options.ways:
            every, bits = faiss.IndexFlatIP(options.dimensions), np.zeros(options.documents, bool)
            bits[rows] = True
            blank, at = np.zeros((1, options.dimensions), np.float32), 0
            for row in range(0, options.documents, 4096):  # a removed row counts as much as a kept one
                some = bits[row : row + 4096]
                whole = np.repeat(blank, len(some), axis=0)
                whole[some], at = vectors[at : at + some.sum()], at + int(some.sum())
                every.add(whole)
            packed = np.packbits(bits, bitorder="little")
            selector = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(packed))
            made["IDSelectorBitmap"] = lambda: every.search(query[: options.few], options.k, params=selector)[1].astype(np.int32)
    return {name: made[name] for name in options.ways}


def measured(options: Options) -> Measured:
    """Draw, check, race: once to warm up, then in turn, so that a busy spell hits all ways."""
    from threadpoolctl import threadpool_info, threadpool_limits

    rng = np.random.default_rng([options.seed, 2])
    rows = np.flatnonzero(rng.random(options.documents) >= options.removed).astype(np.int32)
    vectors, query = draw(len(rows), options.dimensions, [options.seed, 0]), draw(options.queries, options.dimensions, [options.seed, 1])
    before = processes.memory(most=False)
    with threadpool_limits(1):
        ways = _ways(options, vectors, rows, query)
        if {"ours, bf16", "ours, int8", "ours, faiss"} & set(ways):
            importlib.import_module("lib.retrieval.dense_bf16")  # torch, and one thread of it
            importlib.import_module("torch").set_num_threads(1)
        first = {name: way() for name, way in ways.items()}
        peak = processes.memory()
        true = by_loop(vectors, rows, query[: options.few], options.k)
        if (first["ours, fp32"][: options.few] != true.doc).any():
            raise ArithmeticError("the lists are not those of float64 sums in order")
        seconds, wall = dict.fromkeys(ways, float("inf")), dict.fromkeys(ways, float("inf"))
        for name in [name for _ in range(options.rounds) for name in ways]:
            begun, clock = time.process_time(), time.perf_counter()
            ways[name]()
            asked = options.few if name == "IDSelectorBitmap" else options.queries
            seconds[name], wall[name] = min(seconds[name], (time.process_time() - begun) / asked), min(wall[name], (time.perf_counter() - clock) / asked)
    ours = first["ours, fp32"]
    differing = {name: int((found != ours[: len(found)]).sum()) for name, found in first.items() if found is not None}
    blas = [f"{Path(pool['filepath']).parent.name}: {pool['internal_api']} {pool.get('architecture', '')}" for pool in threadpool_info() if pool["user_api"] == "blas"]
    return Measured(seconds, wall, {name: count == 0 for name, count in differing.items()}, differing, peak - before, blas)


def child(options: Options, core: str = "") -> Measured:
    """In a fresh process, with OpenBLAS told its kernels where `core` names them; RuntimeError with the last line that it printed where it fails."""
    env = os.environ | {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")} | ({"OPENBLAS_CORETYPE": core} if core else {})
    given = json.dumps(options._asdict())
    return Measured(**json.loads(processes.answer("the dense search", "lib.retrieval.dense_measure", given, env=env, cwd=paths.ROOT)))


if __name__ == "__main__":
    with processes.one_sentence("lib.retrieval.dense_measure"):
        print(json.dumps(measured(Options(**json.loads(sys.argv[1])))._asdict()))
