"""Scores of a class map against labels, all from one confusion matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segmentation.classes import NODATA


class Scores(NamedTuple):
    """Scores over the labelled pixels; classes that stand in no label count in no mean.

    Attributes:
        mean_iou: Mean intersection over union (Jaccard index) over the classes present in the labels.
        macro_f1: Mean F1 over the same classes.
        accuracy: Share of pixels with the right class.
        iou: Intersection over union a class, ``[classes]``; NaN where the class is not in the labels.
    """

    mean_iou: float
    macro_f1: float
    accuracy: float
    iou: NDArray[np.float64]


def confusion_matrix(labels: NDArray[np.uint8], predicted: NDArray[np.uint8], classes: int) -> NDArray[np.int64]:
    """Count pixels by class of the label (rows) and of the prediction (columns).

    Args:
        labels: Positions in the list of classes, 255 where unlabelled; any shape.
        predicted: The same for the prediction, 255 where there is none.
        classes: Number of classes.

    Returns:
        ``[classes, classes + 1]``; the last column counts labelled pixels without a prediction, which are errors.
    """
    labelled = labels != NODATA
    column = np.where(predicted == NODATA, classes, predicted)[labelled].astype(np.int64)
    flat = labels[labelled].astype(np.int64) * (classes + 1) + column
    return np.bincount(flat, minlength=classes * (classes + 1)).reshape(classes, classes + 1)


def score(confusion: NDArray[np.int64]) -> Scores:
    """Scores from a matrix of :func:`confusion_matrix`."""
    right = np.diagonal(confusion).astype(np.float64)
    labelled = confusion.sum(axis=1)
    predicted = confusion[:, :-1].sum(axis=0)
    present = labelled > 0
    union = labelled + predicted - right
    iou = np.full(len(right), np.nan)
    iou[present] = right[present] / union[present]
    f1 = 2 * right[present] / (labelled + predicted)[present]
    return Scores(
        mean_iou=float(iou[present].mean()),
        macro_f1=float(f1.mean()),
        accuracy=float(right.sum() / labelled.sum()),
        iou=iou,
    )


def block_errors(labels: NDArray[np.uint8], predicted: NDArray[np.uint8], block: int) -> NDArray[np.int64]:
    """Count wrong and labelled pixels in each square of the map that holds any label, row by row.

    Args:
        labels: ``[height, width]``, 255 where unlabelled.
        predicted: ``[height, width]``.
        block: Side of a square in pixels; those at the lower and right border may be smaller.

    Returns:
        ``[squares, 2]``.
    """
    labelled = labels != NODATA
    rows, columns = (np.arange(0, size, block) for size in labels.shape)
    counts = [
        np.add.reduceat(np.add.reduceat(mask.astype(np.int64), rows, axis=0), columns, axis=1).ravel()
        for mask in (labelled & (labels != predicted), labelled)
    ]
    squares = np.stack(counts, axis=1)
    return squares[squares[:, 1] > 0]
