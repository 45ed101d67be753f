"""The attention kernels against plain softmax, those for CUDA behind fakes with the signatures of their releases."""

import sys
import types

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.packed import attention
from lib.packed.attention import Segments

torch.set_num_threads(1)


def plain(query, key, value, lengths, scale=None, window=None):
    """Softmax over the keys of the same pair at most `window - 1` back, one token and head at a time in float64."""
    query, key, value = (one.double() for one in (query, key, value))
    group, scale = query.shape[1] // key.shape[1], query.shape[2] ** -0.5 if scale is None else scale
    out, start = torch.empty_like(query), 0
    for length in lengths:
        for token in range(start, start + length):
            first = start if window is None else max(start, token - window + 1)
            for head in range(query.shape[1]):
                keys, values = key[first : token + 1, head // group], value[first : token + 1, head // group]
                out[token, head] = torch.softmax(scale * keys @ query[token, head], 0) @ values
        start += length
    return out


def row(lengths, heads=4, kv_heads=2, dim=8, seed=0):
    torch.manual_seed(seed)
    tensors = [torch.randn(sum(lengths), n, dim, requires_grad=True) for n in (heads, kv_heads, kv_heads)]
    return tensors, Segments(torch.tensor(np.concatenate([[0], np.cumsum(lengths)]), dtype=torch.int32), max(lengths))


@settings(max_examples=25)
@given(st.lists(st.one_of(st.integers(1, 20), st.sampled_from([127, 128, 129, 16, 17])), min_size=1, max_size=5), st.sampled_from([None, 1, 3, 16]),
       st.sampled_from([(4, 2), (2, 2), (3, 1)]))
@example([1], None, (4, 2))
@example([1, 1, 1], 1, (4, 2))
@example([17, 3, 129, 16, 1], 16, (4, 2))
def test_attention_by_pair_is_plain_softmax_inside_each_pair(lengths, window, heads):
    (query, key, value), segments = row(lengths, *heads)
    found = attention.by_pair(query, key, value, segments, 0.3, window, 0.0)
    torch.testing.assert_close(found.double(), plain(query, key, value, lengths, 0.3, window), atol=1e-6, rtol=1e-5)


def test_gradients_by_pair_are_those_of_plain_softmax():
    lengths = [5, 1, 16, 17, 3]
    tensors, segments = row(lengths)
    torch.manual_seed(1)
    weights = torch.randn(sum(lengths), 4, 8)
    wanted = torch.autograd.grad((plain(*tensors, lengths) * weights).sum(), tensors)
    found = torch.autograd.grad((attention.by_pair(*tensors, segments, None, None, 0.0) * weights).sum(), tensors)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_a_pair_that_is_not_finite_leaves_its_neighbours_alone():
    lengths = [5, 3, 40, 16]
    (query, key, value), segments = row(lengths)
    clean = attention.by_pair(query, key, value, segments, None, None, 0.0)
    key, value = key.clone(), value.clone()
    key[5:8], value[5:8] = torch.nan, torch.inf
    found = attention.by_pair(query, key, value, segments, None, None, 0.0)
    assert not torch.isfinite(found[5:8]).all()
    others = torch.ones(len(found), dtype=torch.bool)
    others[5:8] = False
    assert torch.equal(found[others], clean[others])


def fake_varlen(asked: list, **options):
    """`varlen_attn` as a release has it: `options` are the names it knows besides the tensors, with their defaults."""
    from inspect import Parameter, Signature

    def varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **given):
        assert set(given) <= set(options), f"this release does not know {set(given) - set(options)}"
        assert cu_seq_q is cu_seq_k and cu_seq_q.dtype == torch.int32 and max_q == max_k == int(cu_seq_q.diff().max())
        given = options | given
        asked.append(given)
        assert given.get("is_causal", False) or given.get("window_size", (-1, -1))[1] == 0, "causal"
        assert query.shape[1] == key.shape[1] or given.get("enable_gqa", "window_size" not in options), "grouped queries were not asked for"
        left = given.get("window_size", (-1, 0))[0]
        return plain(query, key, value, cu_seq_q.diff().tolist(), given.get("scale"), None if left < 0 else left + 1).to(query.dtype)

    names = ["query", "key", "value", "cu_seq_q", "cu_seq_k", "max_q", "max_k", *options]
    varlen_attn.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    return varlen_attn


RELEASES = {
    "2.10": {"is_causal": False, "return_aux": None},
    "2.11": {"return_aux": None, "scale": None, "window_size": (-1, -1)},
    "2.13": {"return_aux": None, "scale": None, "window_size": (-1, -1), "enable_gqa": False, "seqused_k": None, "block_table": None, "num_splits": None},
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("window", [None, 3])
def test_torch_varlen_is_called_as_its_release_wants(release, window, monkeypatch):
    import torch.nn.attention.varlen as module

    asked, lengths = [], [4, 1, 6]
    monkeypatch.setattr(module, "varlen_attn", fake_varlen(asked, **RELEASES[release]))
    tensors, segments = row(lengths)
    if window and release == "2.10":
        with pytest.raises(NotImplementedError, match="has no window and the model asks for 3 tokens; take torch 2.11"):
            attention.torch_varlen(*tensors, segments, 0.3, window, 0.0)
        return
    found = attention.torch_varlen(*tensors, segments, 0.3, window, 0.0)
    torch.testing.assert_close(found.double(), plain(*tensors, lengths, 0.3, window), atol=1e-5, rtol=1e-5)
    assert len(asked) == 1 and (release != "2.13" or asked[0]["enable_gqa"])
    with pytest.raises(NotImplementedError, match="has no dropout and the model asks for 0.1; set attention_dropout to 0"):
        attention.torch_varlen(*tensors, segments, 0.3, window, 0.1)


def test_the_installed_torch_has_one_of_the_known_signatures():
    from inspect import signature

    from torch.nn.attention.varlen import varlen_attn

    assert list(signature(varlen_attn).parameters)[7:] == list(RELEASES["2.13"])


@pytest.mark.parametrize("window", [None, 3])
def test_flash_attn_is_called_with_its_own_names(window, monkeypatch):
    def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False,
                               window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False, block_table=None):
        assert causal and cu_seqlens_q.dtype == torch.int32 and dropout_p == 0.25 and max_seqlen_q == max_seqlen_k == 6
        return plain(q, k, v, cu_seqlens_k.diff().tolist(), softmax_scale, None if window_size[0] < 0 else window_size[0] + 1).to(q.dtype)

    monkeypatch.setitem(sys.modules, "flash_attn", types.SimpleNamespace(flash_attn_varlen_func=flash_attn_varlen_func))
    lengths = [4, 1, 6]
    tensors, segments = row(lengths)
    found = attention.flash_attn(*tensors, segments, 0.3, window, 0.25)
    torch.testing.assert_close(found.double(), plain(*tensors, lengths, 0.3, window), atol=1e-5, rtol=1e-5)


def test_the_kernel_is_chosen_by_device_dtype_and_what_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "flash_attn", None)  # importing it raises ImportError
    assert attention.choose("cpu") == attention.choose("cuda", torch.float32) == "packed_cpu"
    assert attention.choose("cuda:1") == attention.choose("cuda", torch.float16) == "packed_torch"
    monkeypatch.setitem(sys.modules, "flash_attn", types.SimpleNamespace(flash_attn_varlen_func=None))
    assert attention.choose("cuda", torch.bfloat16) == "packed_fa2" and attention.choose("cpu", torch.bfloat16) == "packed_cpu"
    monkeypatch.setitem(sys.modules, "flash_attn", types.ModuleType("flash_attn"))  # another package of that name
    assert attention.choose("cuda") == "packed_torch"
    assert {attention.choose(device) for device in ("cpu", "cuda")} <= set(attention.KERNELS)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["packed_torch", "packed_fa2"])
@pytest.mark.parametrize("window", [None, 16])
def test_the_kernels_for_cuda_equal_attention_by_pair(name, window):
    if name == "packed_fa2":
        pytest.importorskip("flash_attn")
    lengths = [5, 1, 200, 64, 33]
    tensors, segments = row(lengths, heads=8, kv_heads=2, dim=64)
    wanted = attention.by_pair(*tensors, segments, None, window, 0.0)
    on = [one.detach().to("cuda", torch.bfloat16).requires_grad_() for one in tensors]
    found = attention.KERNELS[name](*on, Segments(segments.cumulative.cuda(), segments.longest), None, window, 0.0)
    torch.testing.assert_close(found.cpu().float(), wanted, atol=3e-2, rtol=3e-2)
    grads = torch.autograd.grad(found.float().square().sum(), on), torch.autograd.grad(wanted.square().sum(), tensors)
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a.cpu().float(), b, atol=0.1, rtol=0.1)
