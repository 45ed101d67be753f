"""The zero-shot reranker: equal to plain transformers pair by pair, the published template, the cut, and the stages of a run."""

import json

import numpy as np
import pytest
import small_models
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_encode import run_here
from test_rerank import config, probe  # noqa: F401
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from lib import contracts, corpus, engine, paths
from lib.retrieval import children, model_folder, rerank
from lib.retrieval.rerank import qwen, template

INSTRUCTION = "judge whether the document is on the mat"
PAIRS = [("the cat", "the cat on the mat"), ("", ""), ("the sum", "the squares of the numbers " * 30), ("Ünï∫", "数学 𝑥 <|im_end|> yes"), ("a", " b"), ("cat\n", "\n\nmat")]
# what the makers' model card joins: prefix, body, suffix
BEFORE = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer '
          'can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n')
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_models.qwen(tmp_path_factory.mktemp("models") / "Qwen3-Reranker-tiny", head=True, ends=False, positions=16_384)


def plain(folder, pairs, most: int | None = None) -> tuple[list[float], list[int]]:
    """Each pair alone: all logits of its last place, and of them the two; `most` ids of a document are kept, by its own tokens."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    by = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
    scores, lengths = [], []
    for query, document in pairs:
        head = f"<Instruct>: {INSTRUCTION}\n<Query>: {query}\n<Document>: "
        body = tokenizer(head + document, add_special_tokens=False, return_offsets_mapping=True)
        of_document = [end > len(head) for _, end in body["offset_mapping"]]
        ids = [id for id, own, count in zip(body["input_ids"], of_document, np.cumsum(of_document), strict=True) if not own or most is None or count <= most]
        ids = tokenizer.encode(BEFORE, add_special_tokens=False) + ids + tokenizer.encode(AFTER, add_special_tokens=False)
        with torch.no_grad():
            logits = by(input_ids=torch.tensor([ids])).logits[0, -1]
        scores.append(float(logits[yes] - logits[no]))
        lengths.append(len(ids))
    return scores, lengths


@pytest.mark.parametrize("most", [None, 20])
@pytest.mark.parametrize("row_tokens", [400, 3000])
def test_scores_equal_plain_transformers_pair_by_pair(folder, row_tokens, most):
    expected, lengths = plain(folder, PAIRS, most)
    assert sum(lengths) > row_tokens > max(lengths) or row_tokens == 3000, "some rows hold several pairs, and there are several rows"
    by = qwen.scorer(folder, INSTRUCTION, document_tokens=most or 10_000, row_tokens=row_tokens)
    found = by.score(*zip(*PAIRS, strict=True))
    assert by.name == "Qwen3-Reranker-tiny" and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.ptp(expected) > 0.1, "the scores tell pairs apart"
    np.testing.assert_allclose(by.score(*zip(*PAIRS[::-1], strict=True)), found[::-1], atol=2e-5, err_msg="a pair sees its neighbours")


def test_a_document_of_9000_tokens_is_read_to_its_8144th(folder):
    by = qwen.load(folder)
    pairs = [("the cat", "the cat sat on q " * 1800), PAIRS[0]]
    (long, short), lengths = plain(folder, pairs, 8144)
    assert len(by.tokenizer.encode(pairs[0][1]).ids) >= 9000 and lengths[0] == 8144 + lengths[1] - len(by.tokenizer.encode(" " + pairs[1][1]).ids)
    np.testing.assert_allclose(qwen.scorer(folder, INSTRUCTION).score(*zip(*pairs, strict=True)), [long, short], atol=5e-5)
    assert abs(plain(folder, pairs[:1])[0][0] - long) > 1e-3, "what is cut would have counted"


def test_the_score_is_the_log_odds_of_the_published_probability(folder):
    by = qwen.load(folder)
    assert by.ready.packs
    read, _ = template.read(by.tokenizer, INSTRUCTION, *zip(*PAIRS, strict=True))
    logits = qwen.logits(by, read, 3000)
    published = torch.softmax(torch.tensor(logits[:, ::-1].copy()), 1)[:, 1].numpy()  # the card: softmax over [no, yes], of it yes
    difference = qwen.scorer(folder, INSTRUCTION).score(*zip(*PAIRS, strict=True))
    np.testing.assert_allclose(1 / (1 + np.exp(-difference)), published, rtol=1e-5)


TOKENIZER = small_models.tokenizer(ends=False)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=12), st.text(max_size=40), st.integers(1, 12))
@example("the", " the mat", 1)
@example("", "\n\n", 1)
@example("x", "𝑥𝑥", 3)
@example("", "", 1)
def test_a_document_keeps_its_first_ids_and_the_suffix_follows_them(query, document, most):
    whole, none = template.read(TOKENIZER, INSTRUCTION, [query], [document])
    cut, counted = template.read(TOKENIZER, INSTRUCTION, [query], [document], most)
    suffix = TOKENIZER.encode(AFTER, add_special_tokens=False).ids
    assert TOKENIZER.encode(BEFORE + f"<Instruct>: {INSTRUCTION}\n<Query>: {query}\n<Document>: {document}" + AFTER, add_special_tokens=False).ids == whole.ids.tolist()
    dropped = len(whole.ids) - len(cut.ids)
    kept = cut.ids[: -len(suffix)]
    assert none == 0 and counted == (dropped > 0)
    assert cut.ids[-len(suffix) :].tolist() == suffix and kept.tolist() == whole.ids[: len(kept)].tolist()
    before = template.read(TOKENIZER, INSTRUCTION, [query], [""])[0]
    own = len(whole.ids) - len(before.ids)  # a blank that joins the document's first token makes it one more
    assert own - dropped in ({own} if own < most else {most - 1, most, most + 1})


@pytest.mark.parametrize(("document", "blank"), [("1 2 the mat", "Ġ"), ("the mat 1 2", "Ġthe")])
def test_a_blank_that_is_a_token_of_its_own_is_not_the_documents(document, blank):
    read, cut = template.read(TOKENIZER, INSTRUCTION, ["a cat"], [document], 2)
    head = f"<Instruct>: {INSTRUCTION}\n<Query>: a cat\n<Document>:"
    kept = [*TOKENIZER.encode(head, add_special_tokens=False).ids, *TOKENIZER.encode(" " + document, add_special_tokens=False).ids[: 3 if blank == "Ġ" else 2]]
    assert TOKENIZER.encode(" " + document, add_special_tokens=False).tokens[0] == blank and cut == 1
    ends = [TOKENIZER.encode(text, add_special_tokens=False).ids for text in (BEFORE, AFTER)]
    assert read.ids.tolist() == [*ends[0], *kept, *ends[1]]


def test_the_instruction_is_a_prompt_and_the_limit_is_the_papers():
    instruction = model_folder.prompt(paths.PROMPTS / "rerank_instruction.txt")
    assert "the same problem with the same particulars" in instruction and not instruction.endswith("\n")
    assert (template.PREFIX, template.SUFFIX, template.DOCUMENT_TOKENS) == (BEFORE, AFTER, 8144)


def test_a_folder_without_a_head_or_without_yes_and_no_is_refused(tmp_path, folder):
    headless = small_models.qwen(tmp_path / "headless", ends=False)
    with pytest.raises(ValueError, match="the weights of .*headless lack lm_head.weight"):
        qwen.load(headless)
    text = (folder / "tokenizer.json").read_text().replace('"yes"', '"yea"').replace('"y es"', '"y ea"')
    small_models.qwen(tmp_path / "other", head=True, ends=False)
    made = json.loads(text)
    made["model"]["merges"] = [merge for merge in made["model"]["merges"] if "".join(merge) != "yes"]
    (tmp_path / "other" / "tokenizer.json").write_text(json.dumps(made))
    with pytest.raises(ValueError, match="the tokenizer of .*other has no token 'yes'; name the folder of a Qwen3-Reranker"):
        qwen.load(tmp_path / "other")


def test_a_run_is_reranked_by_a_folder(config, folder, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(children, "_run", run_here)
    probe(config, [0, 3])
    instruction = tmp_path / "instruction.txt"
    instruction.write_text(INSTRUCTION + "\n")
    config |= {"scorer": str(folder), "instruction_file": str(instruction), "row_tokens": 1500, "long_tokens": 60}
    rerank.write(config)
    table = contracts.read("rerank", f"{config['run']}/rerank")
    assert set(table["model"].to_pylist()) == {"Qwen3-Reranker-tiny"} and table.num_rows > 20
    queries = corpus.all_queries(config["run"], ["text"])["text"].to_pylist()
    pairs = [(queries[q], document) for q, document in zip(table["query"].to_pylist(), corpus.Texts(config["run"]).texts(table["doc"].to_numpy()), strict=True)]
    np.testing.assert_allclose(table["score"].to_numpy()[:12], plain(folder, pairs[:12])[0], atol=2e-5)
    known, ready = config, rerank.prepared(config)
    key = engine.key(rerank.pairs, ready)
    assert contracts.parts(f"{config['run']}/rerank") and ready["scorer"]["instruction"] == INSTRUCTION
    instruction.write_text("judge otherwise\n")
    assert engine.key(rerank.pairs, rerank.prepared(known)) != key
    instruction.write_text("\n")
    with pytest.raises(ValueError, match="the reranker has no instruction"):
        rerank.prepared(known)


def test_a_score_that_is_no_number_stops_the_child_with_the_names_of_the_pair(config, folder, tmp_path):  # noqa: F811
    from safetensors.torch import load_file, save_file

    broken = small_models.qwen(tmp_path / "broken", head=True, ends=False, positions=2048)
    weights = {name: value.clone() for name, value in load_file(broken / "model.safetensors").items()}
    weights["lm_head.weight"][:] = float("nan")
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(children.ModelStopped, match="the scorer broken gave nan for query q0 and document d5"):
        children.map(rerank.pairs, rerank.prepared(config | {"scorer": str(broken)}))
    assert not (tmp_path / "run/rerank/manifest.json").exists()
