"""From a reviewer's workbook to qrels that are closed over duplicates; `python -m lib.qrels STEP` is the command line.

In the order of the steps:
`workbook` (sheets/), `notes`, `questions`, `overrides`, `candidates` make the pools, which `pools` reads;
`documents` (command) caches the texts;
`standards`, `worksheet` or `page` show them (`printed` says how, `rendered` remembers what was shown whole, `taken` that a reader took it);
`rejections` and `verdicts` record the answers (`recorded` says which still stand), `settlement` and `build` make qrels of them;
`duplicates` expands one question, `exact` and near_duplicates/ find its copies, `closure` does it over the files,
`expansion` scans, shows and exports, `apply` takes `decisions` on what is `pending`, `current` tells what was overtaken;
`stats`, `near_stats` and `charts` draw what `expanded` reads, `release` (corpus_ids) writes what is given away, `status` looks at all.
"""
