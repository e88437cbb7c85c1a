"""Covariates: numbers and texts beside the target, brought to features of about unit size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from common.errors import InputError
from forecasting.series.columns import Coded
from forecasting.series.panel import Panel

Role = Literal["static", "past", "future"]
FARTHEST = 1e6
"""Most that a number of the future may lie from those of the training, in units of their scale."""
MOST_CATEGORIES = 32
"""Texts of a column that have a feature of their own, the most frequent ones; all others have none."""


@dataclass(frozen=True)
class Covariate:
    """How a column becomes features.

    A number gives two: its distance from the centre in units of the scale, zero where missing; and whether it is
    missing. A text gives one for each category.

    Attributes:
        name: The column.
        role: ``static``, the same all along a series; ``past``, known as far as the values are; ``future``, known
            ahead.
        categories: The texts of a column of texts; None for numbers.
        centre: Mean of the numbers in training.
        scale: Their standard deviation, never zero.
    """

    name: str
    role: Role
    categories: tuple[str, ...] | None = None
    centre: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        """Number of features."""
        return 2 if self.categories is None else len(self.categories)


def width(covariates: Sequence[Covariate], *, ahead: bool) -> int:
    """Number of features of a row of the lookback, or of a requested time, of which less is known.

    Args:
        covariates: The covariates.
        ahead: Whether of a requested time.
    """
    return sum(each.width for each in covariates if not ahead or each.role != "past")


def fit_covariates(
    panel: Panel, *, past: Sequence[str], future: Sequence[str], static: Sequence[str], used: np.ndarray
) -> tuple[Covariate, ...]:
    """Learn centres, scales and categories from training rows.

    Args:
        panel: The series.
        past: Columns that are known as far as the values are.
        future: Columns that are known ahead.
        static: Columns that are the same all along a series.
        used: Boolean ``[rows]``, the rows to learn from.
    """
    found = []
    roles: tuple[tuple[Role, Sequence[str]], ...] = (("past", past), ("future", future), ("static", static))
    for role, names in roles:
        for name in names:
            rows = slice(None) if role == "static" else used
            numbers = panel.static_numbers if role == "static" else panel.numbers
            categories = panel.static_categories if role == "static" else panel.categories
            if name in numbers:
                centre, scale = _spread(numbers[name][rows])
                found.append(Covariate(name, role, centre=centre, scale=scale))
            else:
                found.append(Covariate(name, role, categories=_frequent(categories[name], rows)))
    return tuple(found)


def row_features(panel: Panel, covariates: Sequence[Covariate]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and categories of all rows, as compact as the windows gather them from.

    Args:
        panel: The series.
        covariates: Those of the roles ``past`` and ``future``.

    Returns:
        Scaled numbers ``float32 [rows, n]``, NaN where missing, and numbers of categories ``int16 [rows, m]``, -1 for
        none; columns in the order of the covariates.

    Raises:
        InputError: If the panel lacks one.
    """
    numbers, codes = [], []
    for each in covariates:
        if each.categories is None:
            numbers.append(_scaled(_column(panel.numbers, each), each))
        else:
            codes.append(_coded(_column(panel.categories, each), each.categories))
    rows = len(panel.times)
    return (
        np.stack(numbers, axis=1) if numbers else np.zeros((rows, 0), dtype=np.float32),
        np.stack(codes, axis=1) if codes else np.zeros((rows, 0), dtype=np.int16),
    )


def static_features(panel: Panel, covariates: Sequence[Covariate]) -> np.ndarray:
    """Features of each series, ``float32 [series, features]``.

    Args:
        panel: The series.
        covariates: Those of the role ``static``.
    """
    parts = [np.zeros((len(panel.ids), 0), dtype=np.float32)]
    for each in covariates:
        if each.categories is None:
            scaled = _scaled(_column(panel.static_numbers, each), each)
            parts.append(np.stack([np.nan_to_num(scaled), np.isnan(scaled)], axis=1).astype(np.float32))
        else:
            codes = _coded(_column(panel.static_categories, each), each.categories)
            parts.append((codes[:, None] == np.arange(len(each.categories))).astype(np.float32))
    return np.concatenate(parts, axis=1)


def _column(columns: dict, each: Covariate):
    if each.name not in columns:
        kind = "numbers" if each.categories is None else "texts"
        raise InputError(f"there is no column {each.name!r} of {kind}, which the run was fitted with")
    return columns[each.name]


def _spread(values: np.ndarray) -> tuple[float, float]:
    values = values[np.isfinite(values)].astype(np.float64)
    if not len(values):
        return 0.0, 1.0
    centre, scale = float(values.mean()), float(values.std())
    return centre, scale if scale > 1e-12 * abs(centre) else max(abs(centre), 1.0)


def _frequent(column: Coded, rows: np.ndarray | slice) -> tuple[str, ...]:
    codes = column.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(column.texts))
    order = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
    return tuple(sorted(column.texts[i] for i in order if counts[i]))


def _scaled(values: np.ndarray, each: Covariate) -> np.ndarray:
    return np.clip((values.astype(np.float64) - each.centre) / each.scale, -FARTHEST, FARTHEST).astype(np.float32)


def _coded(column: Coded, categories: Sequence[str]) -> np.ndarray:
    """Numbers of the categories; texts that were not in training have none."""
    number = {text: i for i, text in enumerate(categories)}
    table = np.array([number.get(text, -1) for text in column.texts] + [-1], dtype=np.int16)
    return table[column.codes]
