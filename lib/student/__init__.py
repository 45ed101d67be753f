"""The relevance model distilled from the judge: tokens, examples, training, scores, the gate, labelling."""
