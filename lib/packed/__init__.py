"""One packed forward: token ids of many pairs in one row, attention inside each pair, one vector a pair.

The room imports alone: numpy, torch, transformers and tokenizers, and of this library `lib` and `lib.trace` only.
`pairs`, `rows` and `flops` need numpy only. `forward.prepare` makes a backbone ready, `forward.last_hidden` reads a row, and
`measure` times both against padded batches.
"""
