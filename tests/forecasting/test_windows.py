"""Windows against a plain loop."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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
    local = found[1].numpy() - panel.starts[found[0].numpy()]
    assert list(zip(found[0].tolist(), local.tolist(), strict=True)) == expected

    place = 0
    for batch in Windows(rows, *found, lookback=lookback, horizon=horizon, batch_size=batch_size):
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
        _, origins = origins_within(panel, first, stop, lookback=8, horizon=4)
        rows[name] = {int(o) + k for o in origins for k in range(4)}
    assert rows["training"] == set(range(8, 36))
    assert rows["validation"] == set(range(36, 48))
    assert rows["test"] == set(range(48, 60))


def test_the_published_protocol_counts_2785_test_windows(make_panel):
    panel = make_panel(np.zeros(14_400))
    split = split_rows(panel, validation=2880, test=2880)
    _, origins = origins_within(panel, split.test, panel.starts[1:], lookback=336, horizon=96)
    assert split.validation.tolist() == [8640]
    assert len(origins) == 2785


def test_shuffling_is_a_permutation_that_repeats_with_its_seed(make_panel):
    panel = make_panel(np.arange(50.0))
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=5, horizon=1)

    def passes(seed):
        windows = Windows(rows, *found, lookback=5, horizon=1, batch_size=7, shuffle_seed=seed)
        return [[float(v) for batch in windows for v in batch.target[:, 0]] for _ in range(2)]

    first = passes(3)
    assert first == passes(3)
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
    series, origins = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=4, horizon=5)
    assert len(series) == len(origins) == 0
