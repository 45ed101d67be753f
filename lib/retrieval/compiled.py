"""Compiled loops, kept on disk until a source they were compiled from changes.

numba watches only the file that a loop stands in: after a change of what it calls elsewhere it would take the old machine code
from its cache. Here the cache of a loop hangs on its module and on all of `lib.retrieval` that this imports.
"""

import json
from functools import cache, partial
from pathlib import Path

import numba
from numba.core import caching

from lib import paths, sources


@cache
def _stamp(path: str) -> str:
    module = ".".join(Path(path).resolve().relative_to(paths.ROOT).with_suffix("").parts)
    return json.dumps({name: digest for name, digest in sources.hashes(module).items() if name.startswith("lib.retrieval.")})


class _Sources:
    """As long as its stamp is the same, what was compiled is taken from the cache."""

    def get_source_stamp(self) -> str:
        return _stamp(self._py_file)


class Given(_Sources, caching.UserProvidedCacheLocator):
    """In the folder that NUMBA_CACHE_DIR names."""


class Beside(_Sources, caching.InTreeCacheLocator):
    """In __pycache__ beside the module."""


class Home(_Sources, caching.UserWideCacheLocator):
    """In the user's cache, where the module's folder cannot be written."""


def compiled(function=None, **options):
    """Compile a loop that holds no lock; `options` are numba's.

    One that Python calls gives numbers and fills arrays: an interrupt that waits while an array is handed out becomes a SystemError.
    """
    if function is None:
        return partial(compiled, **options)
    before = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{locator.__name__}" for locator in (Given, Beside, Home))
    try:
        return numba.njit(cache=True, nogil=True, **options)(function)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before
