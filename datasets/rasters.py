"""Write compressed, tiled GeoTIFFs with names on bands and classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rasterio.crs import CRS
from rasterio.transform import Affine

from common.geotiff import new_geotiff
from datasets.card import LabelClass

UNLABELLED = 255


def write_bands(path: Path, bands: dict[str, np.ndarray], *, crs: CRS, transform: Affine) -> None:
    """Write ``bands``, each ``[H, W]`` and of one dtype, with their names as band descriptions."""
    values = np.stack(list(bands.values()))
    count, height, width = values.shape
    profile = {"count": count, "height": height, "width": width, "dtype": values.dtype, "crs": crs}
    predictor = 3 if values.dtype.kind == "f" else 2
    with new_geotiff(path, **profile, transform=transform, predictor=predictor) as raster:
        raster.write(values)
        raster.dataset.descriptions = list(bands)


def write_labels(path: Path, labels: np.ndarray, *, classes: Sequence[LabelClass], crs: CRS, transform: Affine) -> None:
    """Write class codes ``[H, W]`` of uint8 with colour table and class names; 255 is unlabelled (nodata)."""
    height, width = labels.shape
    profile = {"count": 1, "height": height, "width": width, "dtype": "uint8", "nodata": UNLABELLED, "crs": crs}
    with new_geotiff(path, **profile, transform=transform) as raster:
        raster.write(labels[None])
        raster.dataset.set_band_description(1, "class")
        raster.dataset.write_colormap(1, {each.code: (*each.rgb, 255) for each in classes})
        raster.dataset.update_tags(1, **{f"CLASS_{each.code}": each.name for each in classes})
