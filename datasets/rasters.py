"""Write compressed, tiled GeoTIFFs with names on bands and classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rasterio
from rasterio.crs import CRS
from rasterio.transform import Affine

from datasets.card import LabelClass

UNLABELLED = 255
_LAYOUT = {"driver": "GTiff", "tiled": True, "blockxsize": 256, "blockysize": 256, "compress": "deflate"}


def write_bands(path: Path, bands: dict[str, np.ndarray], *, crs: CRS, transform: Affine) -> None:
    """Write ``bands``, each ``[H, W]`` and of one dtype, with their names as band descriptions."""
    first = next(iter(bands.values()))
    height, width = first.shape
    profile = {"count": len(bands), "height": height, "width": width, "dtype": first.dtype, "crs": crs}
    predictor = 3 if first.dtype.kind == "f" else 2
    with rasterio.open(path, "w", **_LAYOUT, **profile, transform=transform, predictor=predictor) as raster:
        for index, (name, pixels) in enumerate(bands.items(), start=1):
            raster.write(pixels, index)
            raster.set_band_description(index, name)


def write_labels(path: Path, labels: np.ndarray, *, classes: Sequence[LabelClass], crs: CRS, transform: Affine) -> None:
    """Write class codes ``[H, W]`` of uint8 with colour table and class names; 255 is unlabelled (nodata)."""
    height, width = labels.shape
    profile = {"count": 1, "height": height, "width": width, "dtype": "uint8", "nodata": UNLABELLED, "crs": crs}
    with rasterio.open(path, "w", **_LAYOUT, **profile, transform=transform) as raster:
        raster.write(labels, 1)
        raster.set_band_description(1, "class")
        raster.write_colormap(1, {each.code: (*each.rgb, 255) for each in classes})
        raster.update_tags(1, **{f"CLASS_{each.code}": each.name for each in classes})
