"""The packed room works alone: copied out with `lib/__init__.py` and `lib/trace.py`, it scores a row."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

LIB = Path(__file__).resolve().parents[1] / "lib"
BLOCKED = ("pyarrow", "numba", "pandas", "sklearn", "scipy", "duckdb", "matplotlib", "aiohttp", "papermill")

SCRIPT = f"""
import sys

sys.modules.update(dict.fromkeys({BLOCKED}))  # as if they were not installed
import lib.packed.flops, lib.packed.pairs, lib.packed.rows
assert not {{"torch", "transformers", "tokenizers"}} & set(sys.modules), "pairs, rows and flops need numpy only"
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import Qwen3Config, Qwen3Model
from lib.packed import flops, forward, measure, pairs

tokenizer = Tokenizer(models.WordLevel({{str(i): i for i in range(50)}}, unk_token="0"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
texts = [pairs.ragged(one.ids for one in tokenizer.encode_batch(side)) for side in (["1 2", "3"], ["4 5 6", "", "7"])]
joined, cuts = pairs.join(*texts, [0, 0, 1], [0, 1, 2], pairs.template(tokenizer), 4)
torch.manual_seed(0)
config = dict(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=8)
single, ready = (Qwen3Model(Qwen3Config(**config)) for _ in range(2))
single.load_state_dict(ready.state_dict())
with torch.no_grad():
    found = measure.packed(forward.prepare(ready), joined, 64)
    alone = torch.cat([single(input_ids=torch.tensor([joined.list(i).tolist()])).last_hidden_state[:, -1] for i in range(3)])
print(float((found - alone).abs().max()) < 1e-5, cuts, flops.flop(config, joined.lengths).shape)
"""


def test_the_packed_room_imports_alone_and_scores_a_row(tmp_path):
    shutil.copytree(LIB / "packed", tmp_path / "lib" / "packed", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "trace.py"):
        shutil.copy(LIB / name, tmp_path / "lib")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "True Cuts(queries=0, documents=1) (3,)\n", done.stderr
