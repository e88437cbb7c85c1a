"""Positions against their formulas."""

import math

import pytest
import torch

from common.attention import Attention
from common.positions import RelativeBias, RelativeBias2d, rotate, sinusoidal


def test_sinusoidal_formula():
    got = sinusoidal(torch.tensor([0.0, 3.0]), 6)
    for place, p in enumerate([0.0, 3.0]):
        for i in range(3):
            angle = p / 10000 ** (2 * i / 6)
            assert math.isclose(got[place, 2 * i], math.sin(angle), abs_tol=1e-6)
            assert math.isclose(got[place, 2 * i + 1], math.cos(angle), abs_tol=1e-6)


def test_rotary_products_depend_on_elapsed_time_alone():
    torch.manual_seed(0)
    query, key = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    times = torch.tensor([0.0, 1.0, 2.5, 9.0, 9.25])
    here = rotate(query, times) @ rotate(key, times).transpose(-2, -1)
    later = rotate(query, times + 1e6) @ rotate(key, times + 1e6).transpose(-2, -1)
    torch.testing.assert_close(here, later, atol=1e-5, rtol=1e-5)
    pair = torch.view_as_complex(query.unflatten(-1, (4, 2))), torch.view_as_complex(key.unflatten(-1, (4, 2)))
    frequency = 10000 ** (-torch.arange(0, 8, 2) / 8)
    turn = torch.exp(1j * (times[:, None, None] - times[None, :, None]) * frequency)
    want = torch.einsum("bhld,bhsd,lsd->bhls", pair[0], pair[1].conj(), turn).real
    torch.testing.assert_close(here, want, atol=1e-5, rtol=1e-5)


def test_rotary_attention_on_regular_times_is_by_index():
    torch.manual_seed(0)
    attention = Attention(16, 2, position="rotary")
    tokens = torch.randn(2, 7, 16)
    by_time = attention(tokens, positions=torch.arange(7.0).expand(2, -1) + 400)
    torch.testing.assert_close(attention(tokens), by_time, atol=1e-5, rtol=1e-5)


def test_relative_biases_depend_on_the_offset():
    bias = RelativeBias(2, reach=2)
    with torch.no_grad():
        bias.table[:, 0] = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
    want = torch.tensor([[0.0, 1, 2, 2], [-1, 0, 1, 2], [-2, -1, 0, 1], [-2, -2, -1, 0]])
    assert torch.equal(bias(4, 4)[0], want)
    assert torch.equal(bias(1, 4)[0], want[3:])
    window = RelativeBias2d(1, 3)()[0].reshape(3, 3, 3, 3)
    assert window[0, 0, 1, 2] == window[1, 0, 2, 2]
    assert window[0, 0, 1, 2] != window[0, 0, 2, 1]


def test_the_base_sets_the_longest_wavelength():
    torch.manual_seed(0)
    tensor = torch.randn(1, 1, 4, 6)
    times = torch.tensor([0.0, 1.0, 5.0, 40.0])
    turn = torch.exp(1j * times[:, None].double() * 50 ** (-torch.arange(0, 6, 2).double() / 6))
    want = torch.view_as_real(torch.view_as_complex(tensor.double().unflatten(-1, (3, 2))) * turn).flatten(-2)
    torch.testing.assert_close(rotate(tensor, times, base=50.0), want.float(), atol=1e-6, rtol=1e-6)


def test_long_times_keep_their_differences():
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    products = [
        (
            rotate(query, torch.tensor([start + 3.0], dtype=torch.float64)) * rotate(key, torch.tensor([float(start)]))
        ).sum()
        for start in (0, 10_000_000)
    ]
    torch.testing.assert_close(*products, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rotation_in_half_precision_rounds_once(dtype):
    torch.manual_seed(0)
    tensor = torch.randn(2, 2, 50, 16).to(dtype)
    times = torch.arange(50.0)
    assert torch.equal(rotate(tensor, times), rotate(tensor.float(), times).to(dtype))


def test_the_bias_of_a_window_survives_an_empty_start():
    with torch.device("meta"):
        bias = RelativeBias2d(2, 3)
    bias = bias.to_empty(device="cpu")
    bias.load_state_dict(RelativeBias2d(2, 3).state_dict())
    assert bias().shape == (2, 9, 9)
