"""Windows against a plain loop."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.covariates import Covariate, fit_covariates, row_features, width
from forecasting.series.columns import Coded
from forecasting.series.steps import Step
from forecasting.windows import Rows, Windows, origins_within, split_rows, training_scale


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4), lookback=st.integers(1, 12),
    horizon=st.integers(1, 6), batch_size=st.integers(1, 9),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_batches_hold_what_a_loop_would_collect(make_panel, lengths, lookback, horizon, batch_size):
    generator = np.random.default_rng(sum(lengths))
    series = [np.where(generator.random(n) < 0.2, np.nan, generator.standard_normal(n)) for n in lengths]
    panel = make_panel(*series)
    centre, scale = np.arange(len(series)) * 2.0, np.arange(len(series)) + 1.0
    rows = Rows(panel, centre=centre, scale=scale)
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=lookback, horizon=horizon)

    expected = []
    for number, values in enumerate(series):
        warm = min(lookback, max(1, len(values) // 2))
        expected += [(number, origin) for origin in range(warm, len(values) - horizon + 1)]
    windows = Windows(rows, *found, lookback=lookback, horizon=horizon, batch_size=batch_size)
    number, origin = windows.place(torch.arange(windows.total))
    local = origin.numpy() - panel.starts[number.numpy()]
    assert list(zip(number.tolist(), local.tolist(), strict=True)) == expected

    place = 0
    for batch in windows:
        for i in range(len(batch.series)):
            number, origin = expected[place]
            values = (series[number] - centre[number]) / scale[number]
            past = values[max(0, origin - lookback) : origin]
            past = np.concatenate([np.full(lookback - len(past), np.nan), past])
            ahead = values[origin : origin + horizon]
            np.testing.assert_allclose(batch.values[i], np.nan_to_num(past), rtol=1e-6)
            np.testing.assert_array_equal(batch.observed[i], ~np.isnan(past))
            np.testing.assert_allclose(batch.target[i], np.nan_to_num(ahead), rtol=1e-6)
            np.testing.assert_array_equal(batch.target_observed[i], ~np.isnan(ahead))
            np.testing.assert_array_equal(batch.future_steps[i], np.arange(1, horizon + 1))
            filled = min(lookback, origin)
            np.testing.assert_array_equal(batch.steps[i, lookback - filled :], np.arange(1 - filled, 1))
            place += 1
    assert place == len(expected)


def test_steps_are_elapsed_time_and_phases_belong_to_their_rows(make_panel):
    panel = make_panel(np.arange(6.0))
    panel.times[3:] += 2 * 3600 * 10**9  # a hole of two hours before row 3
    panel = replace(panel, steps=(Step(3600 * 10**9),))
    batch = Rows(panel, centre=np.zeros(1), scale=np.ones(1)).gather(
        torch.tensor([0]), torch.tensor([4]), lookback=3, horizon=2
    )
    assert batch.steps[0].tolist() == [-4, -3, 0]
    assert batch.future_steps[0].tolist() == [1, 2]
    np.testing.assert_allclose(batch.phases[0, :, 0] * 24, [1, 2, 5], atol=1e-5)
    np.testing.assert_allclose(batch.future_phases[0, :, 0] * 24, [6, 7], atol=1e-5)


def test_split_by_share_and_by_number(make_panel):
    panel = make_panel(np.arange(100.0), np.arange(10.0))
    split = split_rows(panel, validation=0.2, test=0.1)
    assert split.validation.tolist() == [70, 107]
    assert split.test.tolist() == [90, 109]
    split = split_rows(panel, validation=24, test=12)
    assert split.validation.tolist() == [64, 100]
    assert split.test.tolist() == [88, 100]


def test_validation_and_test_targets_never_meet(make_panel):
    panel = make_panel(np.arange(60.0))
    split = split_rows(panel, validation=0.2, test=0.2)
    parts = {
        "training": (panel.starts[:-1], split.validation),
        "validation": (split.validation, split.test),
        "test": (split.test, panel.starts[1:]),
    }
    rows = {}
    for name, (first, stop) in parts.items():
        low, count = origins_within(panel, first, stop, lookback=8, horizon=4)
        rows[name] = {int(o) + k for o in range(low[0], low[0] + count[0]) for k in range(4)}
    assert rows["training"] == set(range(8, 36))
    assert rows["validation"] == set(range(36, 48))
    assert rows["test"] == set(range(48, 60))


def test_the_published_protocol_counts_2785_test_windows(make_panel):
    panel = make_panel(np.zeros(14_400))
    split = split_rows(panel, validation=2880, test=2880)
    _, count = origins_within(panel, split.test, panel.starts[1:], lookback=336, horizon=96)
    assert split.validation.tolist() == [8640]
    assert count.tolist() == [2785]


def test_shuffling_is_a_permutation_that_repeats_with_its_seed(make_panel):
    panel = make_panel(np.arange(50.0))
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=5, horizon=1)

    def passes(seed):
        batches = windows.shuffled(0, seed=seed)
        return [[float(v) for batch in islice(batches, 7) for v in batch.target[:, 0]] for _ in range(2)]

    windows = Windows(rows, *found, lookback=5, horizon=1, batch_size=7)
    first = passes(3)
    assert first == passes(3) != passes(4)
    for start in (1, 6, 7, 12):  # in the same pass, or in the next
        later, whole = windows.shuffled(start, seed=3), islice(windows.shuffled(0, seed=3), start, None)
        for _ in range(9):
            assert torch.equal(next(later).target, next(whole).target)
    assert first[0] != first[1]
    assert sorted(first[0]) == sorted(first[1]) == list(range(5, 50))


def test_scale_is_of_the_training_rows_alone_and_never_zero(make_panel):
    panel = make_panel([1.0, 3.0, np.nan, 1000.0], [7.0] * 4, [0.0] * 4, [np.nan] * 4)
    centre, scale = training_scale(panel, panel.starts[:-1] + 3)
    assert centre.tolist() == [2.0, 7.0, 0.0, 0.0]
    assert scale.tolist() == [1.0, 7.0, 1.0, 1.0]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_series_too_short_for_a_window_give_none(make_panel, length):
    panel = make_panel(np.arange(float(length)))
    _, count = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=4, horizon=5)
    assert count.tolist() == [0]


@given(seed=st.integers(0, 99), lookback=st.integers(1, 8), horizon=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_windows_of_irregular_series_are_cut_over_real_times(make_panel, seed, lookback, horizon):
    generator = np.random.default_rng(seed)
    panel = make_panel(generator.standard_normal(40))
    panel.times[:] = np.sort(generator.choice(40 * 60, 40, replace=False)) * 60 * 10**9  # at odd minutes
    hour = 3600 * 10**9
    panel = replace(panel, steps=(Step(hour),))
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    for origin in range(1, 40 - horizon):
        batch = rows.gather(torch.tensor([0]), torch.tensor([origin]), lookback=lookback, horizon=horizon)
        last = panel.times[origin - 1]
        near = [i for i in range(max(0, origin - lookback), origin) if last - panel.times[i] < lookback * hour]
        assert batch.observed.sum() == len(near)
        np.testing.assert_allclose(batch.values[0, lookback - len(near) :], panel.values[near], rtol=1e-6)
        ahead = panel.times[origin : origin + horizon] - last
        assert batch.target_observed[0].tolist() == (ahead < (horizon + 0.5) * hour).tolist()
        np.testing.assert_allclose(batch.future_steps[0], ahead / hour, rtol=1e-5)


def test_one_window_in_so_many(make_panel):
    panel = make_panel(np.arange(30.0), np.arange(100.0, 125.0))
    rows = Rows(panel, centre=np.zeros(2), scale=np.ones(2))
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=3, horizon=1)
    options = {"lookback": 3, "horizon": 1, "batch_size": 4}
    every = [float(v) for batch in Windows(rows, *found, **options) for v in batch.target[:, 0]]
    some = [float(v) for batch in Windows(rows, *found, **options, every=7) for v in batch.target[:, 0]]
    assert some == every[::7]


def test_more_windows_than_can_be_shuffled_are_drawn(make_panel, monkeypatch):
    monkeypatch.setattr("forecasting.windows.MOST_SHUFFLED", 10)
    panel = make_panel(np.arange(200.0))
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=3, horizon=1)

    def drawn(seed, start=0):
        return [float(v) for batch in islice(windows.shuffled(start, seed=seed), 8) for v in batch.target[:, 0]]

    windows = Windows(rows, *found, lookback=3, horizon=1, batch_size=50)
    assert len(drawn(0)) == 2 * 197
    assert drawn(0, start=5)[:50] == drawn(0)[247:297]
    assert drawn(0) == drawn(0) != drawn(1)
    assert set(drawn(0)) <= set(range(3, 200))


def test_a_window_costs_no_memory_before_it_is_gathered(make_panel):
    """Of a hundred million rows, a set of windows holds a few numbers a series."""
    panel = make_panel(np.arange(10.0))
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    count = np.array([10**8])
    windows = Windows(rows, np.array([3]), count, lookback=3, horizon=1, batch_size=64)
    held = [value for value in vars(windows).values() if isinstance(value, torch.Tensor)]
    assert sum(tensor.numel() for tensor in held) < 10
    assert windows.place(torch.tensor([0, 10**8 - 1]))[1].tolist() == [3, 10**8 + 2]


def test_covariates_reach_their_rows(make_panel):
    panel = make_panel(np.arange(6.0), np.arange(10.0, 15.0))
    number = np.array([1, 2, np.nan, 4, 5, 6, 10, 20, 30, 40, 50], dtype=np.float32)
    codes = np.array([0, 1, 0, -1, 1, 2, 0, 0, 1, 1, 2], dtype=np.int32)
    panel = replace(
        panel,
        numbers={"wind": number},
        categories={"sky": Coded(codes, ["clear", "grey", "hail"])},
        static_numbers={"size": np.array([3.0, np.nan], dtype=np.float32)},
    )
    covariates = (
        Covariate("sky", "past", categories=("clear", "grey")),
        Covariate("wind", "future", centre=1.0, scale=2.0),
        Covariate("size", "static", centre=1.0, scale=1.0),
    )
    rows = Rows(panel, centre=np.zeros(2), scale=np.ones(2), covariates=covariates)
    batch = rows.gather(torch.tensor([0, 1]), torch.tensor([4, 7]), lookback=3, horizon=2)
    # sky clear, sky grey; wind, whether it is missing; size, whether it is missing.
    want = [[0, 1, 0.5, 0, 2, 0], [1, 0, 0, 1, 2, 0], [0, 0, 1.5, 0, 2, 0]]
    assert batch.covariates[0].tolist() == want
    assert batch.future_covariates[0].tolist() == [[2, 0, 2, 0], [2.5, 0, 2, 0]]
    # Of the second series, two rows come before its first: nothing is known of them.
    want = [[0, 0, 0, 1, 0, 1], [0, 0, 0, 1, 0, 1], [1, 0, 4.5, 0, 0, 1]]
    assert batch.covariates[1].tolist() == want
    assert (width(covariates, ahead=False), width(covariates, ahead=True)) == (6, 4)


def test_covariates_are_learned_from_training_rows_alone(make_panel):
    panel = make_panel(np.arange(6.0))
    panel = replace(
        panel,
        numbers={"wind": np.array([1, 3, np.nan, 1000, 5, 6], dtype=np.float32), "flat": np.full(6, 7, np.float32)},
        categories={"sky": Coded(np.array([1, 1, 0, 2, 2, 2], dtype=np.int32), ["grey", "clear", "hail"])},
    )
    found = fit_covariates(panel, past=["wind", "sky"], future=["flat"], static=[], used=np.arange(6) < 3)
    far = replace(panel, numbers={**panel.numbers, "wind": np.full(6, -1e37, np.float32)})
    assert row_features(far, found)[0][:, 0].tolist() == [-1e6] * 6  # as far as anything may lie
    assert found[0] == Covariate("wind", "past", centre=2.0, scale=1.0)
    assert found[1] == Covariate("sky", "past", categories=("clear", "grey"))
    assert found[2] == Covariate("flat", "future", centre=7.0, scale=7.0)


@given(
    lengths=st.lists(st.integers(13, 40), min_size=1, max_size=4), offset=st.integers(0, 30),
    missing=st.sampled_from([0.0, 0.2]),
    lookback=st.integers(1, 9), horizon=st.integers(1, 4), zone=st.sampled_from(["UTC", "Europe/Berlin"]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_runs_of_rows_are_what_is_gathered_row_by_row(make_panel, lengths, offset, missing, lookback, horizon, zone):
    """Series on one grid take a shorter way, whose batches are the same to the last bit."""
    generator = np.random.default_rng(sum(lengths))
    hour = 3600 * 10**9
    series = [np.where(generator.random(n) < missing, np.nan, generator.standard_normal(n)) for n in lengths]
    panel = make_panel(*series, zone=zone, start=int(np.datetime64("2024-03-30T20:00", "ns").astype(np.int64)))
    panel.times[panel.starts[-2] :] += offset * hour  # the last series begins elsewhere on the grid
    panel = replace(
        panel,
        numbers={"wind": generator.standard_normal(len(panel.times)).astype(np.float32)},
        static_numbers={"size": np.arange(len(lengths), dtype=np.float32)},
    )
    covariates = (Covariate("wind", "future"), Covariate("size", "static"))
    options = {"centre": np.zeros(len(lengths)), "scale": np.ones(len(lengths)), "covariates": covariates}
    rows = Rows(panel, **options, periods=(int(12.42 * hour),))
    assert rows._grid is not None
    low, count = origins_within(
        panel, panel.starts[:-1] + lookback, panel.starts[1:], lookback=lookback, horizon=horizon
    )
    fast = list(Windows(rows, low, count, lookback=lookback, horizon=horizon, batch_size=7))
    rows._grid = None
    slow = list(Windows(rows, low, count, lookback=lookback, horizon=horizon, batch_size=7))
    assert len(fast) == len(slow) > 0
    for one, other in zip(fast, slow, strict=True):
        for name, tensor in one._asdict().items():
            assert torch.equal(tensor, getattr(other, name)), name
