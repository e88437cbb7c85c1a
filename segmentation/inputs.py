"""From windows of a scene to what a network takes: normalised, stacked tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.errors import InputError
from segmentation.scene import Image


class Inputs(NamedTuple):
    """A batch for a network.

    Attributes:
        images: Float32 ``[B, bands, H, W]`` by modality, zero where unavailable.
        available: Boolean ``[B, 1, H, W]`` by modality.
    """

    images: dict[str, Tensor]
    available: dict[str, Tensor]


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of each band of a modality, over the training pixels."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def normalise(self, image: Image) -> NDArray[np.float32]:
        """Bring the bands ``[bands, H, W]`` to mean 0 and deviation 1; unavailable pixels are 0."""
        mean, std = (np.array(values, dtype=np.float32)[:, None, None] for values in (self.mean, self.std))
        return np.where(image.available, (image.values - mean) / std, np.float32(0))


def measure(windows: Iterable[Mapping[str, Image]]) -> dict[str, Statistics]:
    """Statistics of each modality over windows, in float64 and one pass, shifted to the first values seen.

    Raises:
        InputError: If a modality has no available pixel in any window.
    """
    sums: dict[str, list[NDArray[np.float64]]] = {}
    shifts: dict[str, NDArray[np.float64]] = {}
    for window in windows:
        for name, image in window.items():
            values = image.values[:, image.available].astype(np.float64)  # [bands, pixels]
            if values.shape[1]:
                # Sums of squares lose their digits where the mean is far from zero; differences to a pixel do not.
                shift = shifts.setdefault(name, values[:, :1].copy())
                centred = values - shift
                parts = [np.array([values.shape[1]], dtype=np.float64), centred.sum(1), (centred**2).sum(1)]
                sums[name] = [a + b for a, b in zip(sums[name], parts, strict=True)] if name in sums else parts
            elif name not in sums:
                sums.setdefault(name, [np.zeros(1), np.zeros(len(values)), np.zeros(len(values))])
    result = {}
    for name, (count, total, squares) in sums.items():
        if name not in shifts:
            raise InputError(
                f"the modality {name!r} has no data on the training ground", remedy="check its files, or the split"
            )
        mean = total / count
        std = np.sqrt(np.maximum(squares / count - mean**2, 0))
        std[std == 0] = 1.0  # a constant band carries nothing; it becomes 0
        result[name] = Statistics(tuple((mean + shifts[name][:, 0]).tolist()), tuple(std.tolist()))
    return result


def stack(tiles: Sequence[Mapping[str, Image]], statistics: Mapping[str, Statistics]) -> Inputs:
    """Normalise tiles of one size and stack them into a batch."""
    return Inputs(
        images={
            name: torch.from_numpy(np.stack([each.normalise(tile[name]) for tile in tiles]))
            for name, each in statistics.items()
        },
        available={
            name: torch.from_numpy(np.stack([tile[name].available[None] for tile in tiles])) for name in statistics
        },
    )
