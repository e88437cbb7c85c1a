from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

from common.errors import ShapeError
from common.report.significance import compare_all, holm, paired_test


def autocorrelated(generator: np.random.Generator, length: int, coefficient: float) -> np.ndarray:
    noise = generator.standard_normal(length + 200)
    return signal.lfilter([1.0], [1.0, -coefficient], noise)[200:]


def rejections(block: int, shift: float = 0.0) -> float:
    generator = np.random.default_rng(7)
    found = [
        paired_test(autocorrelated(generator, 600, 0.7) + shift, np.zeros(600), block=block, seed=i, resamples=400)[3]
        for i in range(300)
    ]
    return float(np.mean(np.array(found) < 0.05))


def test_size_under_the_null_with_dependence_and_what_ignoring_it_would_cost():
    assert 0.02 <= rejections(block=25) <= 0.10
    assert rejections(block=1) > 0.25  # the plain paired test finds what is not there


def test_power():
    # The mean of 600 values of this process has standard error 1 / (1 - 0.7) / sqrt(600) = 0.136.
    assert rejections(block=25, shift=4 * 0.136) > 0.9


def test_interval_and_p_agree_with_the_t_test_for_independent_differences():
    generator = np.random.default_rng(3)
    losses, reference = generator.gamma(2.0, size=400) + 0.1, generator.gamma(2.0, size=400)
    difference, low, high, p, blocks = paired_test(losses, reference, block=1, seed=0, resamples=20_000)
    expected = stats.ttest_rel(losses, reference)
    interval = expected.confidence_interval(0.95)
    assert difference == pytest.approx(losses.mean() - reference.mean())
    assert (low, high) == pytest.approx((interval.low, interval.high), abs=0.01)
    assert p == pytest.approx(expected.pvalue, abs=0.02)
    assert blocks == 400


def test_few_blocks_widen_the_interval_as_student_does():
    losses = np.random.default_rng(5).standard_normal((300, 8))
    widths = []
    for i, row in enumerate(losses):
        _, low, high, _, _ = paired_test(row, np.zeros(8), block=1, seed=i, resamples=500)
        widths.append((high - low) / 2 / (row.std(ddof=1) / np.sqrt(8)))
    # A normal interval would be 1.96 standard errors wide and too narrow; Student's is 2.36.
    assert 2.2 < np.median(widths) < 3.2


def test_against_a_plain_loop_over_the_same_draws():
    values = autocorrelated(np.random.default_rng(2), 47, 0.5) + 0.4
    size, block, blocks, resamples = 47, 6, 7, 300
    mean = values.mean()
    circle = [np.mean([values[(start + i) % size] for i in range(block)]) for start in range(size)]
    # The spread of block means about the grand mean is short by the factor (1 - 1 / blocks): the usual n - 1.
    error = np.sqrt(sum((one - mean) ** 2 for one in circle) / size * blocks / (blocks - 1) / blocks)
    drawn = []
    for starts in np.random.default_rng(9).integers(size, size=(resamples, blocks)):
        sample = np.array([circle[start] for start in starts])
        drawn.append(abs(sample.mean() - mean) / (sample.std(ddof=1) / np.sqrt(blocks)))
    half = error * sorted(drawn)[int(np.ceil(0.95 * (resamples - 1)))]
    p = (1 + sum(t >= abs(mean) / error for t in drawn)) / (resamples + 1)
    found = paired_test(values, np.zeros(size), block=block, seed=9, resamples=resamples)
    assert found == pytest.approx((mean, mean - half, mean + half, p, blocks))


def test_same_seed_same_result_and_the_sign_turns_with_the_pair():
    generator = np.random.default_rng(1)
    a, b = generator.random(200), generator.random(200)
    first = paired_test(a, b, block=10, seed=4)
    assert first == paired_test(a, b, block=10, seed=4)
    assert first != paired_test(a, b, block=10, seed=5)
    turned = paired_test(b, a, block=10, seed=4)
    assert turned[0] == pytest.approx(-first[0])
    assert turned[1:3] == pytest.approx((-first[2], -first[1]))
    assert turned[3] == first[3]


@given(st.integers(0, 10_000), st.floats(-0.5, 0.5))
def test_interval_and_p_never_contradict_each_other(seed, shift):
    values = np.random.default_rng(seed).standard_normal(60) + shift
    _, low, high, p, _ = paired_test(values, np.zeros(60), block=5, seed=seed, resamples=199)
    if low > 0 or high < 0:
        assert p <= 0.055
    else:
        assert p > 0.04


def test_identical_losses():
    losses = np.random.default_rng(0).random(50)
    assert paired_test(losses, losses.copy(), block=5, seed=0) == (0.0, 0.0, 0.0, 1.0, 10)


def test_constant_difference_leaves_no_doubt():
    difference, low, high, p, _ = paired_test(np.full(50, 1.25), np.full(50, 1.0), block=5, seed=0, resamples=999)
    assert (difference, low, high) == (0.25, 0.25, 0.25)
    assert p == pytest.approx(1e-3)


@pytest.mark.parametrize("length", [1, 9, 19])
def test_fewer_than_two_blocks_say_nothing(length):
    result = paired_test(np.ones(length), np.zeros(length), block=10, seed=0)
    assert result == (1.0, None, None, 1.0, length // 10)


def test_a_difference_in_one_place_only_is_not_significant():
    losses = np.zeros(200)
    losses[17] = 1.0
    difference, low, high, p, _ = paired_test(losses, np.zeros(200), block=10, seed=0)
    assert p > 0.3
    assert -1 < low < 0 < difference < high < 1


@pytest.mark.parametrize(
    ("losses", "reference", "block"),
    [
        (np.ones(5), np.ones(6), 1),
        (np.ones((2, 5)), np.ones((2, 5)), 1),
        (np.array([]), np.array([]), 1),
        (np.array([1.0, np.nan]), np.ones(2), 1),
        (np.ones(5), np.ones(5), 0),
    ],
)
def test_unusable_losses_are_refused(losses, reference, block):
    with pytest.raises(ShapeError):
        paired_test(losses, reference, block=block, seed=0)


def test_memory_is_bounded_by_drawing_in_parts(monkeypatch):
    values = np.random.default_rng(0).standard_normal(100)
    whole = paired_test(values, np.zeros(100), block=5, seed=0, resamples=300)
    monkeypatch.setattr("common.report.significance._DRAWS_AT_ONCE", 100)
    assert paired_test(values, np.zeros(100), block=5, seed=0, resamples=300) == whole


def test_holm_against_values_worked_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, the last raised to 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


def test_compare_all_pairs_and_adjustment():
    generator = np.random.default_rng(0)
    losses = {name: generator.random(300) for name in ("floor", "ridge", "a", "lstm")}
    losses["b"] = generator.random((3, 300))
    tests = compare_all(losses, ["a", "b"], "floor", 5, 0)
    assert [(test.model, test.against) for test in tests] == [
        ("a", "b"), ("a", "floor"), ("a", "ridge"), ("a", "lstm"),
        ("b", "floor"), ("b", "ridge"), ("b", "lstm"),
        ("ridge", "floor"), ("lstm", "floor"),
    ]  # fmt: skip
    assert [test.p_adjusted for test in tests] == holm([test.p for test in tests])
    assert tests[4].difference == pytest.approx(losses["b"].mean() - losses["floor"].mean())
    assert all(test.blocks == 60 for test in tests)


def test_compare_all_can_reach_significance_with_many_models():
    generator = np.random.default_rng(0)
    losses = {f"m{i}": 1 + generator.random(100) for i in range(30)} | {"a": generator.random(100)}
    tests = compare_all(losses, ["a"], "m0", 1, 0)
    assert len(tests) == 59
    assert max(test.p_adjusted for test in tests[:30]) < 0.02


def test_compare_all_names_what_is_missing():
    with pytest.raises(ShapeError, match="no losses for informer"):
        compare_all({"floor": np.ones(5)}, ["informer"], "floor", 1, 0)
    with pytest.raises(ShapeError, match=r"a: losses have shape \(1, 1, 5\)"):
        compare_all({"floor": np.ones(5), "a": np.ones((1, 1, 5))}, ["a"], "floor", 1, 0)
