"""A scene of two modalities, neither of which tells all classes apart.

Vegetation looks alike to the optical sensor whether it is low or high, and so do bare soil and roofs; smooth
surfaces look alike to the radar whether they are water or soil, and so do the rough ones, crowns and walls.
Only both together tell the five classes apart, so that there is something to gain from fusion; and the speckle of
the radar leaves single pixels uncertain, so that there is something to gain from the neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rasterio.crs import CRS
from rasterio.transform import from_origin
from scipy.ndimage import gaussian_filter

from datasets.card import LabelClass
from datasets.rasters import UNLABELLED, write_bands, write_labels

OPTICAL = {  # mean reflectance times 10000 of water, grassland, forest, bare soil, built-up
    "B02": (700, 500, 500, 1300, 1300),
    "B03": (600, 800, 800, 1600, 1600),
    "B04": (400, 600, 600, 2000, 2000),
    "B08": (250, 3200, 3200, 2600, 2600),
}
SAR = {  # mean backscatter in dB of the same
    "VV": (-18.0, -12.0, -6.0, -18.0, -6.0),
    "VH": (-25.0, -19.0, -12.0, -25.0, -12.0),
}
OPTICAL_NOISE = 250.0
LOOKS = 1  # speckle of a single look: intensity is the mean times a gamma variable of this shape
PATCH = 16.0  # standard deviation of the smoothing that makes regions, in pixels
UNLABELLED_SHARE = 0.15
TRANSFORM = from_origin(500_000, 5_800_000, 10, 10)  # metres, UTM zone 33 north
TRANSFORM_SAR = from_origin(500_000, 5_800_000, 20, 20)


def write_scene(folder: Path, *, classes: Sequence[LabelClass], size: int, seed: int) -> None:
    """Write ``optical.tif`` (10 m), ``sar.tif`` (20 m) and ``labels.tif`` (10 m) into ``folder``.

    Args:
        folder: An existing folder.
        classes: The five classes, in the order of the tables above.
        size: Height and width in pixels of 10 m; even.
        seed: Seed of everything drawn.
    """
    draw = np.random.default_rng(seed)
    truth = _regions(draw, size, count=len(classes))  # [size, size]
    crs = CRS.from_epsg(32633)
    write_bands(folder / "optical.tif", _optical(draw, truth), crs=crs, transform=TRANSFORM)
    write_bands(folder / "sar.tif", _sar(draw, truth), crs=crs, transform=TRANSFORM_SAR)
    unseen = _smooth(draw, (size, size))
    labels = np.where(unseen < np.quantile(unseen, UNLABELLED_SHARE), UNLABELLED, truth).astype(np.uint8)
    write_labels(folder / "labels.tif", labels, classes=classes, crs=crs, transform=TRANSFORM)


def _smooth(draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Smooth random fields of mean 0 and variance 1 over the last two axes."""
    field = gaussian_filter(draw.normal(size=shape), sigma=PATCH, axes=(-2, -1), mode="wrap")
    return (field - field.mean((-2, -1), keepdims=True)) / field.std((-2, -1), keepdims=True)


def _regions(draw: np.random.Generator, size: int, count: int) -> np.ndarray:
    """Codes ``[size, size]``: at each pixel the class whose smooth field is the highest."""
    return _smooth(draw, (count, size, size)).argmax(axis=0)


def _optical(draw: np.random.Generator, truth: np.ndarray) -> dict[str, np.ndarray]:
    bands = {}
    for name, means in OPTICAL.items():
        pixels = np.asarray(means)[truth] + draw.normal(0, OPTICAL_NOISE, truth.shape)
        bands[name] = pixels.round().clip(1, 10_000).astype(np.uint16)
    return bands


def _sar(draw: np.random.Generator, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Backscatter in dB at half the resolution; intensities are averaged and speckled on the linear scale."""
    half = truth.shape[0] // 2
    bands = {}
    for name, means in SAR.items():
        fine = 10 ** (np.asarray(means)[truth] / 10)
        mean = fine.reshape(half, 2, half, 2).mean(
            axis=(1, 3)
        )  # [size, size] -> [size/2, 2, size/2, 2] -> [size/2, size/2]
        speckle = draw.gamma(LOOKS, 1 / LOOKS, mean.shape)
        bands[name] = (10 * np.log10(mean * speckle)).astype(np.float32)
    return bands
