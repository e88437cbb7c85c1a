"""How a scene is divided into ground to train on, to validate on and to test on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from common.errors import ConfigError
from segmentation.tiles import Box

Part = Literal["train", "validation", "test"]


def split_area(
    area: Box, fractions: Mapping[Part, float], *, axis: Literal["columns", "rows"], guard: int, repeat: int
) -> dict[Part, list[Box]]:
    """Divide an area into contiguous strips, in the order in which the parts are given.

    Neighbouring pixels are alike, so a random split would test on what was seen in training. Strips keep the parts
    apart, and between two strips a guard is left out of all of them.

    Args:
        area: The pixels to divide.
        fractions: Share of each part; they sum to one.
        axis: ``columns``: strips stand side by side; ``rows``: one below the other.
        guard: Pixels left out between two strips.
        repeat: How often the sequence of parts is repeated along the axis.

    Returns:
        The strips of each part.

    Raises:
        ConfigError: If a strip would be empty.
    """
    parts: list[tuple[Part, float]] = [
        (part, share / repeat) for _ in range(repeat) for part, share in fractions.items() if share > 0
    ]
    start, size = (area.column, area.width) if axis == "columns" else (area.row, area.height)
    strips: dict[Part, list[Box]] = {"train": [], "validation": [], "test": []}
    done = 0.0
    for position, (part, share) in enumerate(parts):
        first = round(done * size) + (guard // 2 if position else 0)
        done += share
        end = round(done * size) - (guard - guard // 2 if position + 1 < len(parts) else 0)
        if end <= first:
            raise ConfigError(
                f"the {part} strip of a scene of {size} {axis} would be empty with a guard of {guard}",
                where="split",
                remedy="a smaller guard, fewer repeats, or a larger share",
            )
        strips[part].append(
            Box(area.row, start + first, area.height, end - first)
            if axis == "columns"
            else Box(start + first, area.column, end - first, area.width)
        )
    return strips
