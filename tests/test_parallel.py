"""Work in threads that live on: all of it, in order, and an error is never lost."""

import os
import subprocess
import sys
import threading
import time

import pytest

from lib.retrieval import parallel


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 500])
def test_every_item_is_worked_once_and_stands_at_its_place(threads, count):
    worked = []
    made = parallel.each(lambda one: (worked.append(one), one * one)[1], range(count), threads)
    assert made == [one * one for one in range(count)] and sorted(worked) == list(range(count))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 500])
def test_ranges_cover_every_row_once(threads, count):
    rows = [0] * count

    def add(first: int, last: int) -> None:
        for row in range(first, last):
            rows[row] += 1

    parallel.in_ranges(add, count, threads)
    assert rows == [1] * count


def test_as_many_threads_work_at_once_as_are_asked_for_and_they_live_on():
    together = threading.Barrier(3, timeout=20)

    def named(_: int) -> int:
        together.wait()
        return threading.get_ident()

    first, again = (parallel.each(named, range(3), 3) for _ in range(2))
    assert len(set(first)) == 3 and set(first) == set(again) and threading.get_ident() in first


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_in_any_thread_is_raised_when_the_others_are_done(bad):
    together, done = threading.Barrier(3, timeout=20), []

    def work(one: int) -> None:
        together.wait()
        if one == bad:
            raise ValueError(f"item {one} is bad")
        time.sleep(0.05)
        done.append(one)

    with pytest.raises(ValueError, match=f"item {bad} is bad"):
        parallel.each(work, range(3), 3)
    assert sorted(done) == sorted({0, 1, 2} - {bad})


def ended(code: str) -> None:
    """A process of its own, so that one that waits for ever fails the test."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", f"from lib.retrieval import parallel as p\n{code}"], check=True, timeout=60)


def test_work_inside_work_ends():
    ended("made = p.each(lambda one: sum(p.each(lambda two: one * two, range(5), 2)), range(40), 2); assert made == [10 * one for one in range(40)]")


@pytest.mark.parametrize("threads", [0, -1])
def test_less_than_one_thread_is_refused(threads):
    for work in (parallel.each, parallel.in_ranges):
        with pytest.raises(ValueError, match=f"threads is {threads}; give at least 1"):
            work(print, [1] if work is parallel.each else 1, threads)


def test_an_interrupt_is_an_interrupt_wherever_it_comes():
    ended("""
import signal
from lib.retrieval import bm25, ngram
texts = [f"v{i % 997} w{i % 89} x{i % 7} y{i % 13} z{i % 11} " * 100 for i in range(2000)]
routes = [lambda: ngram.top(texts, texts[:400], threads=2), lambda: bm25.top(texts, texts[:5], threads=2)]
interrupts = 0
for search in routes:
    search()  # compiled
    for wait in range(1, 13):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.005 * wait)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            search()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupts += 1
assert interrupts > 3, interrupts
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_threads_of_its_own():
    ended("""
import os, threading
def work():
    together = threading.Barrier(2, timeout=20)
    p.each(lambda _: together.wait(), range(2), 2)
work()
child = os.fork()
work()
if child:
    assert os.waitpid(child, 0)[1] == 0
""")
