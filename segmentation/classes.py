"""The classes of a map: their codes in rasters, names and colours, and how label rasters are read.

In a raster, band 1 carries a tag ``CLASS_<code>`` with the name of each class, and a colour table. That is how
``predict`` writes maps, so a map can serve as labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from segmentation.scene import Grid, on_grid, open_raster, read_window
from segmentation.tiles import Box

NODATA = 255  # of class maps: no class, or no data to tell it from
TAG = "CLASS_"
PALETTE = (  # Paul Tol's "bright" and "muted" qualitative schemes, told apart by colour-blind readers
    "#4477aa", "#228833", "#ccbb44", "#ee6677", "#66ccee", "#aa3377", "#bbbbbb",
    "#332288", "#117733", "#999933", "#cc6677", "#88ccee", "#882255", "#44aa99",
)  # fmt: skip


class LandClass(NamedTuple):
    """A class of the map.

    Attributes:
        code: Its value in label rasters and class maps, 0 to 254.
        name: Its name.
        colour: As ``#rrggbb``.
    """

    code: int
    name: str
    colour: str

    @property
    def rgba(self) -> tuple[int, int, int, int]:
        """Red, green, blue and alpha, 0 to 255."""
        red, green, blue = bytes.fromhex(self.colour[1:])
        return red, green, blue, 255


def read_classes(path: Path, unlabelled: int) -> tuple[LandClass, ...]:
    """Read the classes from the tags and colour table of a label raster.

    Args:
        path: The label raster.
        unlabelled: Its value for unlabelled ground.

    Raises:
        InputError: If it names no classes.
    """
    with open_raster(path) as dataset:
        tags = {key.removeprefix(TAG): name for key, name in dataset.tags(1).items() if key.startswith(TAG)}
        names = {int(code): name for code, name in tags.items() if code.isdecimal() and int(code) != unlabelled}
        if len(names) < 2:
            raise InputError(
                f"does not name its classes (tags {TAG}0, {TAG}1, ... on band 1)",
                where=path,
                remedy="list them in the configuration under data.classes, each with code and name",
            )
        colours = _colours(dataset)
    return tuple(
        LandClass(code, names[code], colours.get(code, default_colour(position)))
        for position, code in enumerate(sorted(names))
    )


def default_colour(position: int) -> str:
    """Colour of the class at ``position`` where none is stated."""
    return PALETTE[position % len(PALETTE)]


def _colours(dataset: Any) -> dict[int, str]:
    try:
        table = dataset.colormap(1)
    except ValueError:  # rasterio's way to say that there is none
        return {}
    return {code: f"#{red:02x}{green:02x}{blue:02x}" for code, (red, green, blue, _) in table.items()}


def read_labels(path: Path, grid: Grid, box: Box, classes: tuple[LandClass, ...], unlabelled: int) -> NDArray[np.uint8]:
    """Read a window of a label raster, on the grid of a scene.

    Args:
        path: The label raster; on another grid, the nearest label is taken.
        grid: Grid of the scene.
        box: The window.
        classes: The classes.
        unlabelled: Value of unlabelled ground in the raster.

    Returns:
        Positions in ``classes``, ``[height, width]``, and 255 where nothing is labelled.

    Raises:
        InputError: If the raster cannot be read or holds a value that is no class.
    """
    with open_raster(path) as dataset, on_grid(dataset, grid, "nearest") as source:
        values, available = read_window(source, [1], box)
    codes = np.array([each.code for each in classes])
    order = np.argsort(codes)
    nearest = order[np.searchsorted(codes, values[0], sorter=order).clip(max=len(codes) - 1)]
    known = codes[nearest] == values[0]
    labelled = available & (values[0] != unlabelled)
    if (labelled & ~known).any():
        row, column = np.argwhere(labelled & ~known)[0]
        raise InputError(
            f"holds the value {values[0, row, column]:g} (row {box.row + row}, column {box.column + column}), "
            f"which is no class; the classes are {', '.join(f'{each.code} {each.name}' for each in classes)}",
            where=path,
            remedy="list every value under data.classes, or name it as data.unlabelled",
        )
    return np.where(labelled, nearest, NODATA).astype(np.uint8)
