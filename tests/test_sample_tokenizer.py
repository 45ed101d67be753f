"""The byte-level BPE of the sample: deterministic, lossless, with an end token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from lib.sample import tokenizer, world


@pytest.fixture(scope="module")
def texts():
    return [row["text"] for row in world.documents(0, 300, 12_000)]


@pytest.fixture(scope="module")
def trained(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    tokenizer.train(texts, path)
    return Tokenizer.from_file(str(path))


def test_two_trainings_give_the_same_bytes(texts, tmp_path):
    for name in ("one.json", "two.json"):
        tokenizer.train(iter(texts[:3000]), tmp_path / name)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "two.json"]


def test_the_vocabulary_has_4096_entries_and_the_end_token_is_known(trained):
    assert trained.get_vocab_size() == 4096
    assert trained.token_to_id("<|endoftext|>") == tokenizer.END_ID
    assert trained.encode("<|endoftext|>").ids == [tokenizer.END_ID]
    assert tokenizer.END_ID not in trained.encode("An ordinary text.").ids


@given(st.text())
def test_any_text_comes_back(trained, text):
    if tokenizer.END not in text:
        assert trained.decode(trained.encode(text).ids) == text


def test_eight_to_ten_documents_in_a_hundred_are_longer_than_400_tokens(texts, trained):
    lengths = [len(found.ids) for found in trained.encode_batch(texts)]
    assert 0.08 <= sum(n > 400 for n in lengths) / len(lengths) <= 0.10
    assert max(lengths) <= 2500
    assert sum(40 <= n <= 350 for n in lengths) / len(lengths) > 0.85


def test_a_vocabulary_too_small_for_the_bytes_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 257"):
        tokenizer.train(["a"], tmp_path / "t.json", size=100)
