"""Token ids are those of the tokenizer, and pairs of them are those of its pair."""

import numpy as np
import pytest
from small_corpus import tokenizer_file
from small_training import make

from lib import corpus, engine
from lib.packed import pairs
from lib.student import tokens

TEXTS = ["", "a", "the sum of the squares", "𝑥" * 40 + "b", "Ünï ∫ 数学\n\n", "the cat " * 60]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = tmp_path_factory.mktemp("run") / "run"
    rows = [{"docid": f"d{i}", "text": text} for i, text in enumerate(TEXTS * 3)]
    corpus.write(run, rows, [{"qid": f"q{i}", "text": text} for i, text in enumerate(TEXTS)], tokenizer_file(run.parent / "t"), 4, 4)
    return run


def test_tokens_are_those_of_the_tokenizer_in_corpus_order(run):
    counts = tokens.write(run, pair_chars=41)
    tokenizer, found = corpus.tokenizer(run), tokens.load(run)
    for lists, texts in ((found.documents, [text[:41] for text in TEXTS * 3]), (found.queries, TEXTS)):
        expected = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        assert lists.lengths.tolist() == [len(ids) for ids in expected]
        rows = np.array([5, 0, 3, 3, len(texts) - 1])
        taken = lists.take(rows)
        assert [taken.list(i).tolist() for i in range(len(rows))] == [expected[row] for row in rows]
    assert counts == {"documents": 18, "cut documents": 3, "queries": 6, "tokens": int(found.documents.lengths.sum() + found.queries.lengths.sum())}
    assert tokens.pair_chars(run) == 41


def test_a_joined_pair_is_the_rule_s_pair_of_the_texts(run):
    tokens.write(run, pair_chars=41)
    found, tokenizer, template = tokens.load(run), corpus.tokenizer(run), pairs.Template((1,), (2, 3), (4,))
    query, doc = np.array([0, 5, 2, 5, 1]), np.array([17, 5, 0, 5, 8])
    joined, cuts = tokens.join(found, query, doc, template, limit=20)
    lengths, counted = tokens.pair_lengths(found, query, doc, template, limit=20)
    for i, (q, d) in enumerate(zip(query, doc, strict=True)):
        asked, read = (pairs.ragged([tokenizer.encode(text, add_special_tokens=False).ids]) for text in (TEXTS[q], (TEXTS * 3)[d][:41]))
        assert joined.list(i).tolist() == pairs.join(asked, read, [0], [0], template, 20)[0].ids.tolist()
    assert lengths.tolist() == joined.lengths.tolist() and max(lengths) == 20
    assert cuts == counted and cuts.documents > 0 and cuts.queries == 2


def test_another_cut_makes_other_tokens_and_the_flat_copies_follow(run):
    tokens.write(run, pair_chars=41)
    before = tokens.load(run).documents
    tokens.write(run, pair_chars=3)
    after = tokens.load(run).documents
    assert after.lengths.max() <= 3 * 4 < before.lengths.max()
    assert before.take([5]).lengths[0] == before.lengths[5]  # who still maps the old copy keeps it
    assert len(list((run / "tokens/documents").glob(".part-*.npy"))) == 2 * 5


def test_a_flat_copy_of_which_a_piece_is_missing_is_made_again(run):
    tokens.write(run, pair_chars=41)
    before = tokens.load(run).documents.take(np.arange(18))
    for kind in ("ids", "starts"):
        for bytes_left in (200, 30, 0):
            for path in (run / "tokens/documents").glob(f".part-*.{kind}.npy"):
                path.write_bytes(path.read_bytes()[:bytes_left])
            after = tokens.load(run).documents.take(np.arange(18))
            assert all(map(np.array_equal, before, after))


def test_tokens_are_not_made_twice(run, monkeypatch):
    tokens.write(run)
    monkeypatch.setattr(engine, "run_shard", lambda *_: pytest.fail("tokenised again"))
    tokens.write(run)
    with pytest.raises(IndexError, match="row 18 has no tokens; there are 18 rows"):
        tokens.load(run).documents.take([2, 18])
    with pytest.raises(ValueError, match="pair_chars is 0; a document keeps at least 1"):
        tokens.write(run, pair_chars=0)


def test_a_run_without_tokens_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="tokens/queries is not finished"):
        tokens.load(make(tmp_path / "run"))
