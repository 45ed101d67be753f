"""The files that a test collection is released as, read back by the tools of the field: TREC qrels, BEIR folder, JSONL, card, manifest.

`export.write` writes them all, whole or not at all, from sorted rows (qid, docid, grade); it knows neither where rows come
from nor how they were judged. Both lines of work are released by it.
"""
