"""Turn the colour-coded ground truth of Zurich Summer into a raster of class codes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rasterio

from common.errors import DatasetError
from datasets.card import LabelClass
from datasets.rasters import UNLABELLED, write_labels

WHITE = (255, 255, 255)  # unlabelled


def convert(raw: Path, folder: Path, *, classes: Sequence[LabelClass]) -> None:
    """Copy ``image.tif`` and write ``labels.tif``.

    Args:
        raw: Folder with ``zh17.tif`` and the RGB raster ``zh17_gt.tif``.
        folder: An existing folder.
        classes: Classes, whose colours are those of the ground truth.

    Raises:
        DatasetError: If the ground truth holds a colour of no class.
    """
    shutil.copyfile(raw / "zh17.tif", folder / "image.tif")
    with rasterio.open(raw / "zh17_gt.tif") as truth:
        colours, crs, transform = truth.read(), truth.crs, truth.transform  # [3, H, W]
    labels = np.full(colours.shape[1:], UNLABELLED, np.uint8)
    known = (colours == np.reshape(WHITE, (3, 1, 1))).all(axis=0)
    for each in classes:
        here = (colours == np.reshape(each.rgb, (3, 1, 1))).all(axis=0)
        labels[here] = each.code
        known |= here
    if not known.all():
        strange = np.unique(colours[:, ~known], axis=1).T.tolist()
        raise DatasetError(f"colours of no class: {strange}", where=raw / "zh17_gt.tif", remedy="report this card")
    write_labels(folder / "labels.tif", labels, classes=classes, crs=crs, transform=transform)
