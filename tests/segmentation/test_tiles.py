import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from segmentation.tiles import Box, RowBand, TilePlan, pad_to_tile


@st.composite
def plans(draw):
    tile = draw(st.integers(1, 40))
    area = Box(draw(st.integers(0, 9)), draw(st.integers(0, 9)), draw(st.integers(1, 90)), draw(st.integers(1, 90)))
    return TilePlan(area, tile, draw(st.integers(0, tile - 1)))


@settings(deadline=None)
@given(plans())
def test_tiles_cover_every_pixel_and_stay_within_the_area(plan):
    area = plan.area
    covered = np.zeros((120, 120), dtype=bool)
    for box in plan.boxes():
        assert area.row <= box.row
        assert area.column <= box.column
        assert box.row + box.height <= area.row + area.height
        assert box.column + box.width <= area.column + area.width
        covered[box.slices] = True
    assert covered[area.slices].all()
    assert covered.sum() == area.height * area.width


@settings(deadline=None)
@given(plans())
def test_weights_are_positive_and_sum_to_one_on_every_pixel(plan):
    total = np.zeros((plan.area.height, plan.area.width))
    for i, row in enumerate(plan.rows):
        for j, column in enumerate(plan.columns):
            weights = np.outer(plan.row_weights[i], plan.column_weights[j])
            assert (weights > 0).all()
            total[row : row + weights.shape[0], column : column + weights.shape[1]] += weights
    np.testing.assert_allclose(total, 1, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(plans(), st.integers(0, 2**32 - 1))
def test_rows_equal_a_blend_over_the_whole_image(plan, seed):
    """The buffer of one tile row gives what arrays of the whole image give."""
    draw = np.random.default_rng(seed)
    height, width = plan.area.height, plan.area.width
    whole, weight_sum = np.zeros((2, height, width)), np.zeros((height, width))
    band, finished, next_row = RowBand(plan, 2), [], 0
    for i, row in enumerate(plan.rows):
        for j, column in enumerate(plan.columns):
            box = plan.box(i, j)
            values = draw.random((2, box.height, box.width)).astype(np.float32)
            place = (slice(row, row + box.height), slice(column, column + box.width))
            weights = np.outer(plan.row_weights[i], plan.column_weights[j]).astype(np.float64)
            whole[(slice(None), *place)] += weights * values
            weight_sum[place] += weights
            band.add(i, j, values)
        first, complete = band.finish(i)
        assert first == next_row
        next_row += complete.shape[1]
        finished.append(complete)
    assert next_row == height
    np.testing.assert_allclose(np.concatenate(finished, axis=1), whole / weight_sum, atol=1e-6)


def test_the_buffer_is_as_high_as_a_tile_whatever_the_raster():
    low, high = (RowBand(TilePlan(Box(0, 0, height, 50), 16, 4), 3) for height in (100, 100_000))
    assert low._values.nbytes == high._values.nbytes == 3 * 16 * 50 * 4


def test_neighbours_share_the_overlap_with_a_raised_cosine():
    plan = TilePlan(Box(0, 0, 1, 12), 8, 4)
    rise = np.sin(np.pi / 2 * (np.arange(4) + 0.5) / 4) ** 2
    assert plan.columns == [0, 4]
    np.testing.assert_allclose(plan.column_weights[1][:4], rise, rtol=1e-6)
    np.testing.assert_allclose(plan.column_weights[0], [1, 1, 1, 1, *rise[::-1]], rtol=1e-6)


@pytest.mark.parametrize(("tile", "overlap"), [(16, 16), (16, -1), (0, 0)])
def test_an_impossible_plan_is_refused(tile, overlap):
    with pytest.raises(UsageError, match="cannot cover"):
        TilePlan(Box(0, 0, 10, 10), tile, overlap)


def test_padding_reflects_and_leaves_full_tiles_alone():
    values = np.arange(6).reshape(1, 2, 3)
    assert pad_to_tile(values, 2) is not None
    np.testing.assert_array_equal(pad_to_tile(values, 4)[0], [[0, 1, 2, 1], [3, 4, 5, 4], [0, 1, 2, 1], [3, 4, 5, 4]])
    assert pad_to_tile(np.ones((1, 4, 4)), 4).shape == (1, 4, 4)
