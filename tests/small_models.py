"""Tiny random transformers folders, for the tests of encoding and reranking: causal ones of the Qwen3 kind, and one of the BERT kind."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

END, CHAT = "<|endoftext|>", ("<|im_start|>", "<|im_end|>", "<think>", "</think>")
TEXTS = ["the sum of the squares of the numbers is even", "the cat sat on the mat, and then on the other mat", "yes", "no", "Instruct: Query: Document:"]


def tokenizer(ends: bool = True) -> Tokenizer:
    """A byte-level BPE with the special tokens of Qwen3, that ends a text by itself where `ends`."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=360, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator(TEXTS * 9, trainer)
    made.add_special_tokens([AddedToken(token, special=True) for token in (END, *CHAT[:2])])
    made.add_tokens(list(CHAT[2:]))
    if ends:
        made.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, made.token_to_id(END))])
    return made


def word_pieces() -> Tokenizer:
    """Words and letters between [CLS] and [SEP], as BERT reads them."""
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *"the sum of squares numbers cat mat sat on".split(), *"abcdefghijklmnopqrstuvwxyz0123456789.,"]
    made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)} | {f"##{c}": len(words) + i for i, c in enumerate("abcdefgnopstu")}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return made


def save(model, made: Tokenizer, folder: Path, **tokenizer_config) -> Path:
    model.save_pretrained(folder)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return folder


def sizes(made: Tokenizer) -> dict:
    return {"vocab_size": made.get_vocab_size(), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def qwen(folder: Path, head: bool = False, ends: bool = True, seed: int = 0, positions: int = 512, **tokenizer_config) -> Path:
    """A Qwen3 of two layers, 32 wide; with the language head where `head`."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3Model

    torch.manual_seed(seed)
    made = tokenizer(ends)
    config = Qwen3Config(**sizes(made), num_key_value_heads=2, head_dim=8, max_position_embeddings=positions, initializer_range=0.3, tie_word_embeddings=False)
    return save((Qwen3ForCausalLM if head else Qwen3Model)(config), made, folder, **tokenizer_config)


def bert(folder: Path) -> Path:
    """A BERT of two layers, 32 wide, that reads 64 tokens."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    made = word_pieces()
    return save(BertModel(BertConfig(**sizes(made), max_position_embeddings=64, initializer_range=0.3)), made, folder)
