"""Notebooks that build relevance judgments at scale: the library under them."""

from lib import trace

trace.start()
