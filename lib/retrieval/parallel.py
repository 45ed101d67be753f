"""Compiled loops side by side in threads that live on.

A new thread may wait some milliseconds for a core, which is longer than many a loop takes; one that sleeps in a pool
is woken on an idle core at once. The caller works too, so that `threads` threads are at work and one of them is its own.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise

import numpy as np


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "qrelbook")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has none of the threads


def each(work: Callable, items: Sequence, threads: int) -> list:
    """`work` of every item, in the order of the items; a thread takes the next one when it is done with one."""
    if threads < 1:
        raise ValueError(f"threads is {threads}; give at least 1")
    made, todo = [None] * len(items), deque(range(len(items)))

    def take() -> None:
        while todo:
            try:
                at = todo.popleft()
            except IndexError:  # another thread took the last one
                return
            made[at] = work(items[at])

    helpers = [_pool(threads - 1).submit(take) for _ in range(min(threads, len(items)) - 1)]
    try:
        take()
    except BaseException:
        todo.clear()
        raise
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]  # what has not begun finds nothing to do
        wait(begun)
    for helper in begun:
        helper.result()
    return made


def in_ranges(work: Callable[[int, int], None], count: int, threads: int) -> None:
    """Run `work(first, last)` over as many ranges of `count` rows as there are threads; the ranges write to different rows."""
    if threads < 1:
        raise ValueError(f"threads is {threads}; give at least 1")
    edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    each(lambda ends: work(*ends), list(pairwise(edges)), threads)
