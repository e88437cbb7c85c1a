"""Figures of a comparison: maps of the test ground, the score of each class, and what is taken for what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.report.comparison import Figure
from common.report.figures import map_figure, matrix_figure
from common.report.plotting import PALETTE, layout, numbers, plain
from segmentation.classes import NODATA
from segmentation.prepare import Prepared
from segmentation.scene import Image, Modality

if TYPE_CHECKING:
    from segmentation.fit import Evaluation

SHOWN = 400  # pixels of the longer side of a map
NATURAL = (("red", "green", "blue"), ("B04", "B03", "B02"), ("B4", "B3", "B2"))


def comparison_figures(evaluations: Mapping[str, Evaluation], model: str, data: Prepared) -> tuple[Figure, ...]:
    """All figures.

    Args:
        evaluations: On the test ground, by model.
        model: The model whose confusions are shown.
        data: The data.
    """
    return (_maps(evaluations, data), _iou(evaluations, data), _confusions(evaluations[model], model, data))


def _maps(evaluations: Mapping[str, Evaluation], data: Prepared) -> Figure:
    grounds = data.grounds["test"]
    largest = max(range(len(grounds)), key=lambda index: int((grounds[index].labels != NODATA).sum()))
    ground, primary = grounds[largest], data.modalities[0]
    step = -(-max(ground.labels.shape) // SHOWN)
    panels = {primary.name: _picture(ground.images(ground.box)[primary.name], primary), "labels": ground.labels}
    panels |= {name: each.predicted[largest] for name, each in evaluations.items() if each.seconds}
    return map_figure(
        {name: np.ascontiguousarray(panel[::step, ::step]) for name, panel in panels.items()},
        [each.name for each in data.classes],
        [each.colour for each in data.classes],
        title="Maps of the test ground",
        caption="None of this ground was seen in training. White is unlabelled, or has no data.",
    )


def _picture(image: Image, modality: Modality) -> NDArray[np.uint8]:
    """Three bands as a picture ``[height, width, 3]``, stretched between the 2nd and the 98th percentile."""
    names = [band.name for band in modality.bands]
    natural = [[names.index(name) for name in triple] for triple in NATURAL if set(triple) <= set(names)]
    bands = natural[0] if natural else [min(index, len(names) - 1) for index in range(3)]
    picture = np.full((*image.available.shape, 3), 255, dtype=np.uint8)
    for channel, band in enumerate(bands):
        values = image.values[band][image.available]
        if values.size:
            low, high = np.percentile(values, [2, 98])
            stretched = (values - low) / max(float(high - low), 1e-12)
            picture[..., channel][image.available] = (255 * stretched.clip(0, 1)).astype(np.uint8)
    return picture


def _iou(evaluations: Mapping[str, Evaluation], data: Prepared) -> Figure:
    names = [plain(each.name) for each in data.classes]
    bars = [
        {
            "type": "bar",
            "name": plain(name),
            "x": names,
            "y": numbers(each.scores.iou),
            "marker": {"color": PALETTE[index % len(PALETTE)]},
        }
        for index, (name, each) in enumerate(evaluations.items())
    ]
    look = layout(None, "IoU", height=380) | {"barmode": "group"}
    return Figure(
        "IoU of each class",
        "Intersection over union on the test ground, first seed; no bar where the class is not in the test labels.",
        {"data": bars, "layout": look},
    )


def _confusions(evaluation: Evaluation, model: str, data: Prepared) -> Figure:
    return matrix_figure(
        evaluation.confusion[:, :-1],
        [each.name for each in data.classes],
        title=f"What {model} takes for what",
        caption="Share of the labelled test pixels of each class (row) by predicted class (column), first seed.",
    )
