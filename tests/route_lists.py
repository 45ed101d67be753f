"""The hits of one query as pairs, for the tests of the routes."""

from lib.retrieval.hits import Hits


def listed(found: Hits, query: int = 0) -> list[tuple[int, float]]:
    """(document, score) of one query, best first; checks that nothing but -1 and 0 comes after the last."""
    doc, score = found.doc[query], found.score[query]
    size = int((doc >= 0).sum())
    assert (doc[size:] == -1).all() and (score[size:] == 0).all()
    return list(zip(doc[:size].tolist(), score[:size].tolist(), strict=True))
