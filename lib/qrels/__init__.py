"""From a reviewer's workbook to qrels that are closed over duplicates; `python -m lib.qrels STEP` is the command line."""
