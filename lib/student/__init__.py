"""The relevance model distilled from the judge: from its labels to the scores of millions of pairs.

What it reads: `tokens` (each text once), `examples` (which pairs it learns from, which are held out).
Training: `arms` is what a notebook calls; it starts `train` under torchrun, which runs `loop` on the rows of `batches`; `model`
is backbone and head, `checkpoints` what is left and found again, `state` how it is written and resumed, `progress` how it goes.
Scoring: `score` gives one float a pair, in training, gate and labelling alike; `cuts` makes labels of scores.
Labelling: `label` is what a notebook calls. The pairs are listed by `routed` and cut into `units`; `workers` starts a `worker` a
device, which opens the gate (`opening`, by the `selftest`, held to the limits of `gate`) and then writes the stage `scores`; `scored` reads them.

Only loop, model, score and state need torch when they are imported.
"""
