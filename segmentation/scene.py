"""A scene: co-registered rasters bound by modality name, read window by window on one reference grid.

Files on another grid are warped as they are read, never before. What a file does not cover, by its extent, its
nodata value, its mask, its alpha band or NaN, is unavailable, pixel by pixel.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp, Resampling
from rasterio.errors import CRSError, RasterioIOError
from rasterio.transform import Affine, array_bounds
from rasterio.vrt import WarpedVRT
from rasterio.warp import transform_bounds
from rasterio.windows import Window

from common.errors import InputError, UsageError
from common.files import existing_file
from segmentation.tiles import Box

VALID = 255  # GDAL masks: 0 is masked, 255 is valid, between lies a partly covered pixel


@dataclass(frozen=True)
class Band:
    """A band of a file: its description, where the file has one, and its index from 1."""

    name: str | None
    index: int


@dataclass(frozen=True)
class Modality:
    """How the files of one modality are read.

    Attributes:
        name: Name of the modality.
        bands: The bands, in the order the model takes them.
        resampling: How a file on another grid is resampled: ``nearest``, ``bilinear`` or ``cubic``.
        scale: Factor on the stored values; ``None`` uses the scale tags of the file.
        offset: Added after scaling; ``None`` uses the offset tags of the file.
    """

    name: str
    bands: tuple[Band, ...]
    resampling: str = "bilinear"
    scale: float | None = None
    offset: float | None = None


@dataclass(frozen=True)
class Grid:
    """Position and size of a raster."""

    crs: CRS
    transform: Affine
    height: int
    width: int

    @property
    def box(self) -> Box:
        """All of it."""
        return Box(0, 0, self.height, self.width)


class Image(NamedTuple):
    """One modality in a window.

    Attributes:
        values: Float32 ``[bands, height, width]``, zero where unavailable.
        available: Boolean ``[height, width]``: every band has a value there.
    """

    values: NDArray[np.float32]
    available: NDArray[np.bool_]


class Scene:
    """A context-managed reader of co-registered rasters.

    Args:
        files: File of each modality; one may be absent if it is not the reference, and is then unavailable.
        modalities: How to read them, in the order the model takes them.
        reference: The modality whose grid is the grid of the scene.

    Raises:
        UsageError: If a name is none of the modalities, or the reference has no file.
        InputError: On entering, if a file is missing, unreadable, not georeferenced, off the reference grid
            altogether, or lacks a band.
    """

    grid: Grid

    def __init__(self, files: dict[str, Path], modalities: tuple[Modality, ...], reference: str) -> None:
        names = [modality.name for modality in modalities]
        for name in files:
            if name not in names:
                raise UsageError(f"the modality {name!r} is unknown here", remedy=f"name one of {', '.join(names)}")
        if reference not in files:
            raise UsageError(
                f"the modality {reference!r} is missing, and the output lies on its grid",
                remedy=f"--modality {reference}=FILE",
            )
        self._files = files
        self._modalities = modalities
        self._reference = reference
        self._readers: dict[str, _Reader] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.grid = grid_of(stack.enter_context(open_raster(self._files[self._reference])))
            for modality in self._modalities:
                if modality.name in self._files:
                    reader = _Reader(self._files[modality.name], modality, self.grid)
                    self._readers[modality.name] = stack.enter_context(reader)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: object) -> None:
        self._stack.close()

    def read(self, box: Box) -> dict[str, Image]:
        """Read a window of every modality.

        Args:
            box: The window, within the grid.

        Raises:
            InputError: If the file cannot be read there.
        """
        images = {}
        for modality in self._modalities:
            reader = self._readers.get(modality.name)
            images[modality.name] = reader.read(box) if reader else _nothing(modality, box)
        return images


class _Reader:
    """One file on the grid of a scene."""

    def __init__(self, path: Path, modality: Modality, grid: Grid) -> None:
        self._path = path
        self._modality = modality
        self._grid = grid

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            dataset = stack.enter_context(open_raster(self._path))
            self._indexes = _find_bands(dataset, self._modality)
            self._scale, self._offset = _scaling(dataset, self._modality, self._indexes)
            self._source = stack.enter_context(on_grid(dataset, self._grid, self._modality.resampling))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: object) -> None:
        self._stack.close()

    def read(self, box: Box) -> Image:
        values, available = read_window(self._source, self._indexes, box)
        values *= self._scale
        values += self._offset
        values[:, ~available] = 0
        return Image(values, available)


def open_raster(path: Path) -> Any:
    """Open a raster for reading.

    Raises:
        InputError: If it is not there, or is not a raster.
    """
    existing_file(path, "a raster")
    try:
        return rasterio.open(path)
    except RasterioIOError as error:
        raise InputError(
            f"cannot be opened as a raster ({error})", where=path, remedy="give a GeoTIFF or another format GDAL reads"
        ) from error


def grid_of(dataset: Any) -> Grid:
    """The grid of a raster.

    Raises:
        InputError: If it has no coordinate reference system.
    """
    if dataset.crs is None:
        cause = "only ground control points" if dataset.gcps[0] else "no coordinate reference system"
        raise InputError(
            f"has {cause}", where=dataset.name, remedy="gdalwarp -t_srs EPSG:... IN OUT, or rio edit-info --crs"
        )
    return Grid(dataset.crs, dataset.transform, dataset.height, dataset.width)


def on_grid(dataset: Any, grid: Grid, resampling: str) -> Any:
    """A view of a raster on ``grid``: the raster itself where it lies there already, else warped on read.

    Raises:
        InputError: If it has no coordinate reference system or does not touch the grid.
    """
    own = grid_of(dataset)
    if own == grid:
        return dataset
    _check_overlap(dataset, grid)
    return WarpedVRT(
        dataset,
        crs=grid.crs,
        transform=grid.transform,
        height=grid.height,
        width=grid.width,
        resampling=Resampling[resampling],
        # As float32 with NaN, what lies beyond the file or is masked in it can be told from data, whatever its type.
        dtype="float32",
        nodata=np.nan,
        src_nodata=dataset.nodata,
        UNIFIED_SRC_NODATA="NO",  # else GDAL takes nodata in some of the bands for data
    )


def read_window(source: Any, indexes: list[int], box: Box) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Read bands and where all of them hold a value.

    Returns:
        Values ``[bands, height, width]`` and availability ``[height, width]``.

    Raises:
        InputError: If the window cannot be read.
    """
    window = Window(box.column, box.row, box.width, box.height)  # pyright: ignore[reportCallIssue]
    try:
        values = source.read(indexes, window=window, out_dtype="float32")
        masks = source.read_masks(indexes, window=window)
    except RasterioIOError as error:
        rows, columns = (f"{start} to {start + size}" for start, size in zip(box[:2], box[2:], strict=True))
        raise InputError(f"cannot be read in rows {rows}, columns {columns} ({error})", where=source.name) from error
    return values, (masks == VALID).all(axis=0) & np.isfinite(values).all(axis=0)


def bind_bands(path: Path, requested: list[str | int] | None) -> tuple[Band, ...]:
    """Bind requested bands to those of a file.

    Args:
        path: The file.
        requested: Descriptions or indexes from 1; ``None`` means all but alpha.

    Returns:
        The bands, by name where the descriptions of the file tell them apart.

    Raises:
        InputError: If a band is not there.
    """
    with open_raster(path) as dataset:
        names = dataset.descriptions if _tells_bands_apart(dataset) else (None,) * dataset.count
        if requested is None:
            colours = enumerate(dataset.colorinterp, start=1)
            return tuple(Band(names[index - 1], index) for index, colour in colours if colour != ColorInterp.alpha)
        bands = []
        for wanted in requested:
            band = Band(wanted, 0) if isinstance(wanted, str) else Band(None, wanted)
            index = _find_band(dataset, band)
            bands.append(Band(names[index - 1], index))
        return tuple(bands)


def _tells_bands_apart(dataset: Any) -> bool:
    return all(dataset.descriptions) and len(set(dataset.descriptions)) == dataset.count


def _find_bands(dataset: Any, modality: Modality) -> list[int]:
    """Index of each band: by name if the file names its bands at all, else by position."""
    named = any(dataset.descriptions)
    return [_find_band(dataset, band if named else Band(None, band.index)) for band in modality.bands]


def _find_band(dataset: Any, band: Band) -> int:
    if band.name is not None:
        if band.name in dataset.descriptions:
            return dataset.descriptions.index(band.name) + 1
        there = ", ".join(name or f"(band {index} unnamed)" for index, name in enumerate(dataset.descriptions, start=1))
        raise InputError(f"has no band named {band.name!r}", where=dataset.name, remedy=f"the file has {there}")
    if not 1 <= band.index <= dataset.count:
        count = "1 band" if dataset.count == 1 else f"{dataset.count} bands"
        raise InputError(
            f"band {band.index} is needed, but the file has {count}",
            where=dataset.name,
            remedy="give a file with all bands, in the order of the training files",
        )
    return band.index


def _scaling(dataset: Any, modality: Modality, indexes: list[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scale and offset of each band, ``[bands, 1, 1]``."""
    if any("complex" in dataset.dtypes[index - 1] for index in indexes):
        raise InputError("holds complex numbers", where=dataset.name, remedy="give amplitude or dB instead")
    tagged = zip((modality.scale, modality.offset), (dataset.scales, dataset.offsets), strict=True)
    scale, offset = (
        np.array([tags[index - 1] if given is None else given for index in indexes], dtype=np.float32)[:, None, None]
        for given, tags in tagged
    )
    return scale, offset


def _check_overlap(dataset: Any, grid: Grid) -> None:
    left, bottom, right, top = array_bounds(grid.height, grid.width, grid.transform)
    try:
        west, south, east, north = transform_bounds(dataset.crs, grid.crs, *dataset.bounds)
    except CRSError as error:
        raise InputError(f"cannot be brought to {grid.crs} ({error})", where=dataset.name) from error
    if west >= right or east <= left or south >= top or north <= bottom:
        raise InputError(
            "does not touch the area of the reference modality",
            where=dataset.name,
            remedy="check that both files show the same place, and their coordinate reference systems",
        )


def _nothing(modality: Modality, box: Box) -> Image:
    shape = (box.height, box.width)
    return Image(np.zeros((len(modality.bands), *shape), dtype=np.float32), np.zeros(shape, dtype=bool))
