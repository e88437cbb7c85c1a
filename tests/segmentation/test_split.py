import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ConfigError
from segmentation.split import split_area
from segmentation.tiles import Box

SHARES = {"train": 0.6, "validation": 0.15, "test": 0.25}


@given(st.sampled_from(["columns", "rows"]), st.integers(0, 7), st.integers(1, 3), st.integers(180, 400))
def test_parts_are_disjoint_and_a_guard_apart(axis, guard, repeat, size):
    area = Box(0, 0, 30, size) if axis == "columns" else Box(0, 0, size, 30)
    owner = np.zeros(size, dtype=int)
    for number, strips in enumerate(split_area(area, SHARES, axis=axis, guard=guard, repeat=repeat).values(), start=1):
        for strip in strips:
            start, length = (strip.column, strip.width) if axis == "columns" else (strip.row, strip.height)
            assert (owner[start : start + length] == 0).all()
            owner[start : start + length] = number
    changes = np.flatnonzero(np.diff(np.append(owner, 1) == 0))  # borders of the guards
    assert owner[0] == 1
    assert owner[-1] == 3
    assert (owner == 0).sum() == guard * (3 * repeat - 1)
    assert len(changes) == (2 * (3 * repeat - 1) if guard else 0)
    assert abs((owner == 1).sum() / size - 0.6) < 0.15


def test_an_empty_strip_is_refused():
    with pytest.raises(ConfigError, match="validation strip"):
        split_area(Box(0, 0, 10, 40), SHARES, axis="columns", guard=10, repeat=1)
