"""The release: one row for every judged pair, and the proof that none is missing.

`labels.write` merges what the judges said, in `answers/`, with the scores of the relevance model, in `scores/`. A pair's
row is its source-page label, else the LLM's, null too, else the relevance model's, whose score is kept in any case.
"""
