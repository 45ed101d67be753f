"""The files that a test collection is released as, read back by the tools of the field: TREC qrels, BEIR folder, JSONL, card, manifest."""
