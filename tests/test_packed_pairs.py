"""A pair by concatenation is the tokenizer's own pair, under one rule of truncation."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from lib.packed import pairs
from lib.packed.pairs import Template, cut, join, ragged, template
from lib.sample import tokenizer as sample_tokenizer

CASE = json.loads((Path(__file__).parent / "cases" / "22-pair-truncation-keeps-the-query.json").read_text(encoding="utf-8"))
ODD = ["", " ", "\n\n", "[CLS]", "[SEP] [SEP]", "<|endoftext|>", "</s>", "数学 \U0001d465² + 𝟙", "e\u0301\u0301", "\u200b\ufeff", "a" * 90, "ﬁ ½ Å", "\x00\x7f",
       "👩‍👩‍👧 🏳️‍🌈", "שלום عدد", "x " * 60, "\\frac{a}{b}\r\n\tend", "�"]


def words(rng, most: int) -> str:
    return " ".join(rng.choice(["the", "sum", "of", "x^2", "dx", "∫", "prove", "that", "1", "+", "Ωμ", "lemma."], rng.integers(0, most)))


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory) -> Tokenizer:
    """The run's own kind of tokenizer, trained on a few texts."""
    rng = np.random.default_rng(0)
    return sample_tokenizer.train([words(rng, 60) for _ in range(200)], tmp_path_factory.mktemp("tokenizer") / "tokenizer.json", size=400)


def bert_like(byte_level: Tokenizer) -> Tokenizer:
    """Word pieces in lower case, [CLS] query [SEP] document [SEP]."""
    marks = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    pieces = ["the", "sum", "of", "x", "##x", "##um", "s", "prove", "that", "1", "+", "d", "^", "2", "##2", "a", "##a"]
    made = Tokenizer(models.WordPiece(marks | {piece: i for i, piece in enumerate(pieces, len(marks))}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(list(marks))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return made


def bos_eos(byte_level: Tokenizer) -> Tokenizer:
    """<s> query </s></s> document </s>, byte-level as RoBERTa's, and bytes put before each text by a prefix space."""
    made = Tokenizer.from_str(byte_level.to_str())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.add_special_tokens(["<s>", "</s>"])
    bos, eos = made.token_to_id("<s>"), made.token_to_id("</s>")
    made.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), processors.RobertaProcessing(("</s>", eos), ("<s>", bos), add_prefix_space=True)])
    return made


KINDS = {"byte-level BPE": (lambda made: made, 0), "[CLS] and [SEP]": (bert_like, 3), "BOS and EOS": (bos_eos, 4)}


@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_joined_pairs_are_the_tokenizers_own(kind, byte_level):
    from transformers import PreTrainedTokenizerFast

    make, specials = KINDS[kind]
    tokenizer, limit = make(byte_level), 24
    found = template(tokenizer)
    assert found.tokens == specials
    rng = np.random.default_rng(1)
    queries = [*ODD, *(words(rng, 20) for _ in range(100 - len(ODD)))]
    documents = [*ODD, *(words(rng, 40) for _ in range(100 - len(ODD)))]
    tokenized = [ragged(one.ids for one in tokenizer.encode_batch(texts, add_special_tokens=False)) for texts in (queries, documents)]
    query, doc = np.divmod(np.arange(10_000), 100)
    joined, cuts = join(*tokenized, query, doc, found, limit)

    peer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(tokenizer.to_str()))
    lengths = tokenized[0].lengths, tokenized[1].lengths
    fits = lengths[0][query] + lengths[1][doc] + specials <= limit
    no_room = ~fits & (lengths[0][query] + specials + (lengths[1][doc] > 0) > limit)
    whole = np.flatnonzero(~no_room)
    wanted = peer([queries[q] for q in query[whole]], [documents[d] for d in doc[whole]], truncation="only_second", max_length=limit)["input_ids"]
    for i, ids in zip(whole, wanted, strict=True):
        assert joined.list(i).tolist() == ids, (queries[query[i]], documents[doc[i]])
    halves = [[tokenizer.encode(text, add_special_tokens=False) for text in texts] for texts in (queries, documents)]
    for side, most in zip(halves, (limit // 2, limit - specials - limit // 2), strict=True):
        for encoding in side:
            encoding.truncate(most)
    for i in np.flatnonzero(no_room):  # by our rule the query's first half limit, then the document
        assert joined.list(i).tolist() == tokenizer.post_process(halves[0][query[i]], halves[1][doc[i]], add_special_tokens=True).ids
    for i in np.flatnonzero(no_room & (lengths[1][doc] > 0))[::50]:
        with pytest.raises(Exception, match="Truncation error"):
            peer(queries[query[i]], documents[doc[i]], truncation="only_second", max_length=limit)
    assert (~fits & ~no_room).sum() > 1000 and no_room.sum() > 100 and fits.sum() > 1000, "all three ways are tried"
    kept = cut(lengths[0][query], lengths[1][doc], limit, specials)
    assert cuts == (no_room.sum(), (kept[1] < lengths[1][doc]).sum())
    assert joined.lengths.max() == limit


def test_an_empty_document_is_the_second_text_of_a_pair_as_in_a_batch(byte_level):
    from transformers import PreTrainedTokenizerFast

    tokenizer = bert_like(byte_level)
    peer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(tokenizer.to_str()))
    joined, _ = join(ragged([tokenizer.encode("1", add_special_tokens=False).ids]), ragged([[]]), [0], [0], template(tokenizer))
    assert joined.ids.tolist() == peer(["1"], [""])["input_ids"][0] == tokenizer.encode("1", "").ids
    assert len(joined.ids) == len(peer("1", "")["input_ids"]) + 1, "a single call of transformers takes an empty document for none"


def test_case_22_pair_truncation_keeps_the_query():
    wanted = {(10, 20, 16): (10, 6), (3, 5, 16): (3, 5), (10, 20, 8): (4, 4), (0, 20, 8): (0, 8)}
    for given_, from_case in zip(CASE["input"]["cases"], CASE["right_answer"]["document only"], strict=True):
        query, doc, limit = given_["query_words"], given_["doc_words"], given_["max"]
        kept = tuple(int(one[0]) for one in cut([query], [doc], limit))
        assert kept == wanted[query, doc, limit]
        assert list(kept) == from_case or "error" in str(from_case) and "4 query words, 4 document words" in CASE["decided"]
        texts = ragged([range(query)]), ragged([range(100, 100 + doc)])
        joined, cuts = join(*texts, [0], [0], limit=limit)
        assert joined.ids.tolist() == [*range(kept[0]), *range(100, 100 + kept[1])]
        assert cuts == (kept[0] < query, kept[1] < doc)
    asked = CASE["input"]["char_cut"]
    document = "a" * 31_999 + "\U0001d465" + "b"
    assert asked["max_chars"] == pairs.DOCUMENT_CHARS == 32_000
    assert pairs.document_start(document) == document[:-1] and pairs.document_start(document).endswith("\U0001d465")


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5), st.integers(0, 40))
@example(8, 0, 0, 7)  # a query that fills the pair, and no document to make room for
@example(8, 1, 0, 7)
@example(7, 1, 0, 7)
@example(9, 0, 0, 7)
def test_a_cut_pair_fits_keeps_prefixes_and_a_short_query_whole(query, doc, specials, more):
    limit = 2 * specials + 1 + more
    kept_query, kept_doc = (int(one[0]) for one in cut([query], [doc], limit, specials))
    room = limit - specials
    assert kept_query + kept_doc <= room and 0 <= kept_query <= query and 0 <= kept_doc <= doc
    assert kept_query == query or query > limit / 2
    if query + doc <= room:
        assert (kept_query, kept_doc) == (query, doc)
    elif query < room or (query == room and not doc):
        assert (kept_query, kept_doc) == (query, room - query)
    else:
        assert (kept_query, kept_doc) == (limit // 2, min(doc, room - limit // 2))


def test_a_limit_without_room_is_refused():
    with pytest.raises(ValueError, match="a pair of 6 tokens has no room beside half of it and 3 special tokens; take a limit of at least 7"):
        cut([1], [1], 6, 3)
    assert [one.tolist() for one in cut([9], [9], 7, 3)] == [[3], [1]]


lists = st.lists(st.lists(st.integers(0, 99), max_size=12), min_size=1, max_size=5)


@given(lists, lists, st.data())
def test_join_is_what_lists_would_give(queries, documents, data):
    rows = st.lists(st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(documents) - 1)), max_size=8)
    chosen = data.draw(rows)
    marks = Template(*(tuple(data.draw(st.lists(st.integers(900, 999), max_size=2))) for _ in range(3)))
    limit = 2 * marks.tokens + 1 + data.draw(st.integers(0, 20))
    joined, cuts = join(ragged(queries), ragged(documents), [q for q, _ in chosen], [d for _, d in chosen], marks, limit)
    wanted, cut_queries, cut_documents = [], 0, 0
    for q, d in chosen:
        query, document = queries[q], documents[d]
        a, b = (int(one[0]) for one in cut([len(query)], [len(document)], limit, marks.tokens))
        wanted.append([*marks.prefix, *query[:a], *marks.middle, *document[:b], *marks.suffix])
        cut_queries, cut_documents = cut_queries + (a < len(query)), cut_documents + (b < len(document))
    assert [joined.list(i).tolist() for i in range(len(chosen))] == wanted and cuts == (cut_queries, cut_documents)
    assert joined.ids.dtype == np.int32 and joined.starts.dtype == np.int64
    back = list(range(len(chosen)))[::-1]
    assert [joined.take(back).list(i).tolist() for i in range(len(chosen))] == wanted[::-1]


def special(made: Tokenizer, pair: str) -> Tokenizer:
    made = Tokenizer.from_str(made.to_str())
    made.add_special_tokens(["<s>"])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair=pair, special_tokens=[("<s>", made.token_to_id("<s>"))])
    return made


def test_a_tokenizer_whose_pair_is_no_concatenation_is_refused_in_a_sentence(byte_level):
    assert template(special(byte_level, "<s> $A <s> $B")).tokens == 2
    for pair in ("$B <s> $A", "$A $A $B", "$A $B $A"):
        with pytest.raises(ValueError, match="pair of .* is no concatenation of special tokens, query and document; take a tokenizer whose template is"):
            template(special(byte_level, pair))
    cutting, padding = (Tokenizer.from_str(byte_level.to_str()) for _ in range(2))
    cutting.enable_truncation(8)
    padding.enable_padding(length=8)
    for made in (cutting, padding):
        with pytest.raises(ValueError, match="truncates or pads by itself, so a pair is no concatenation; call no_truncation"):
            template(made)
