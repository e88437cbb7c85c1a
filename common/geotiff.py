"""GeoTIFFs that are known to be whole: each is read back before it counts as written.

GDAL writes late, and drops what fails while a file is closed without a word: on a full disk a raster can come out
damaged although every call has succeeded.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import RasterioIOError
from rasterio.transform import Affine
from rasterio.windows import Window

from common.errors import FarviewError

BLOCK = 256  # side of the blocks inside a file


class GeoTiff:
    """A raster that is being written; made by :func:`new_geotiff`.

    Attributes:
        dataset: rasterio's dataset, to set descriptions, tags and a colour table.
    """

    def __init__(self, path: Path, dataset: Any) -> None:
        self.dataset = dataset
        self._path = path
        self._written: list[tuple[Window, int]] = []

    def write(self, values: NDArray[Any], row: int = 0) -> None:
        """Write full rows ``[bands, rows, width]`` from ``row`` on.

        Raises:
            FarviewError: If they cannot be written.
        """
        _, rows, width = values.shape
        window = Window(0, row, width, rows)  # pyright: ignore[reportCallIssue]
        try:
            self.dataset.write(values, window=window)
        except RasterioIOError as error:
            raise self._damaged() from error
        self._written.append((window, zlib.crc32(np.ascontiguousarray(values).data)))

    def check(self) -> None:
        """Read the closed file back and compare it with what was written.

        Raises:
            FarviewError: If they differ.
        """
        try:
            with rasterio.open(self._path) as made:
                whole = all(zlib.crc32(made.read(window=window)) == crc for window, crc in self._written)
        except RasterioIOError as error:
            raise self._damaged() from error
        if not whole:
            raise self._damaged()

    def _damaged(self) -> FarviewError:
        free = shutil.disk_usage(self._path.parent).free / 1e6
        return FarviewError(
            f"could not be written completely; {free:,.0f} MB are free there",
            where=self._path.name,
            remedy="free space, or another -o",
        )


@contextmanager
def new_geotiff(
    path: Path, *, crs: CRS, transform: Affine, height: int, width: int, count: int, dtype: Any, **options: Any
) -> Iterator[GeoTiff]:
    """Write a tiled, compressed GeoTIFF, and read it back when the block succeeds.

    Args:
        path: The file; give one of :func:`common.files.atomic_path`, so that a damaged file never gets its name.
        crs: Coordinate reference system.
        transform: Of the upper left corner.
        height: Rows.
        width: Columns.
        count: Bands.
        dtype: Of the values.
        options: Further creation options of GDAL.

    Raises:
        FarviewError: If the file could not be written completely.
    """
    options = {
        "driver": "GTiff", "tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK, "interleave": "band",
        "compress": "deflate", "bigtiff": "IF_SAFER", **options,
    }  # fmt: skip
    profile = {"crs": crs, "transform": transform, "height": height, "width": width, "count": count, "dtype": dtype}
    try:
        dataset = rasterio.open(path, "w", **profile, **options)
    except RasterioIOError as error:
        raise FarviewError(f"cannot be created ({error})", where=path.name, remedy="another -o") from error
    raster = GeoTiff(path, dataset)
    with dataset:
        yield raster
    raster.check()
