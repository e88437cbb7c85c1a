"""Paired tests between models whose losses depend on their neighbours in time or space.

Losses of overlapping forecast windows, or of neighbouring tiles, are not independent, and a plain t-test
on them finds differences that are not there. Here whole blocks of consecutive differences are resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from common.errors import ShapeError
from common.report.comparison import Test

LEVEL = 0.05
_DRAWS_AT_ONCE = 1_000_000  # block means held in memory at a time: 8 MB


def paired_test(
    losses: np.ndarray, reference: np.ndarray, *, block: int, seed: int, resamples: int = 2000
) -> tuple[float, float | None, float | None, float, int]:
    """Test whether two models differ in mean loss, by a studentised circular block bootstrap.

    Blocks of consecutive differences are drawn from the series closed to a circle (Politis & Romano 1992,
    after Künsch 1989), so that dependence within a block is kept. Each resample is studentised by the
    spread of its own block means (Götze & Künsch 1996), which widens the interval as it should where
    there are few blocks. Interval and p-value come from the same distribution, that of ``|t*|`` (the
    symmetric bootstrap-t, Hall 1988), and so never contradict each other.

    Args:
        losses: Loss of the model in question at each test item, ``[N]``, in order of time or place.
        reference: Loss of the other model at the same items, ``[N]``.
        block: Items a block, about twice the reach of the dependence: two horizons for windows at stride 1.
            (A block of one horizon keeps two thirds of the variance of overlapping windows, and finds
            differences in 11% of the cases where there are none; two horizons do so in 6%.)
        seed: Seed of the resampling; the same seed draws the same blocks for every pair.
        resamples: Number of bootstrap resamples.

    Returns:
        Difference of the mean losses (negative: the model in question is better), lower and upper end
        of its 95% interval, two-sided p-value, and number of whole blocks. Where there are fewer than
        two blocks nothing can be said: the ends are ``None`` and p is 1. Identical losses give p = 1.

    Raises:
        ShapeError: If the losses are not two finite vectors of one length, or ``block`` is not positive.
    """
    difference = _differences(losses, reference)
    if block < 1 or resamples < 1:
        raise ShapeError(f"block ({block}) and resamples ({resamples}) must be at least 1")
    mean = float(difference.mean())
    blocks = len(difference) // block
    if blocks < 2:
        return mean, None, None, 1.0, blocks
    if not difference.any():
        return 0.0, 0.0, 0.0, 1.0, blocks

    centred = _circular_block_means(difference - mean, block)  # [N]
    # The mean square over all N overlapping blocks, with the correction of `blocks` independent ones.
    error = float(np.sqrt(np.mean(centred**2) / (blocks - 1)))
    if error <= 1e-12 * abs(mean):  # one constant difference: no variation at all to doubt it by
        return mean, mean, mean, 1 / (resamples + 1), blocks
    drawn = _absolute_t(centred, blocks, resamples, np.random.default_rng(seed))  # [resamples]
    p = (1 + np.count_nonzero(drawn >= abs(mean) / error)) / (resamples + 1)
    half = error * float(np.quantile(drawn, 1 - LEVEL, method="higher"))
    if not np.isfinite(half):  # the models differ in a block or two only, and most resamples miss them
        half = max(abs(mean), float(np.abs(centred).max()))
    return mean, mean - half, mean + half, float(p), blocks


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for the number of tests by the step-down method of Holm (1979).

    The chance of one false finding or more among all tests stays below the level, whatever the
    dependence between the tests.

    Args:
        p_values: One p-value a test.

    Returns:
        Adjusted p-values in the same order.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return adjusted.tolist()


def compare_all(
    losses: Mapping[str, np.ndarray], attention: Sequence[str], floor: str, block: int, seed: int
) -> tuple[Test, ...]:
    """Test each attention model against every other model, and every other model against the floor.

    Where a model has several seeds its losses are averaged over them first: the tests speak of the
    variation over the test set of the mean over seeds. The spread over seeds is another matter, and is
    shown in the table.

    Args:
        losses: Losses at the test items by model, ``[N]`` or ``[seeds, N]``. The order of the items is that
            of time or place; losses of several series at one time are averaged by the caller.
        attention: Names of the attention models.
        floor: Name of the model that everything is held against.
        block: Items a block, see :func:`paired_test`.
        seed: Seed of the resampling.

    Returns:
        The tests, each pair once, with p-values adjusted by Holm over all of them.

    Raises:
        ShapeError: If a name has no losses, or the losses do not fit together.
    """
    missing = sorted({*attention, floor} - set(losses))
    if missing:
        raise ShapeError(f"there are no losses for {', '.join(missing)}")
    means = {name: _mean_over_seeds(name, values) for name, values in losses.items()}
    pairs = _pairs(list(means), list(attention), floor)
    # Holm multiplies the smallest p-value by the number of tests; it must still be able to reach the level.
    resamples = max(2000, 200 * len(pairs))
    found = [
        paired_test(means[model], means[against], block=block, seed=seed, resamples=resamples)
        for model, against in pairs
    ]
    adjusted = holm([p for *_, p, _ in found])
    return tuple(
        Test(model, against, difference, low, high, p, p_adjusted, blocks)
        for (model, against), (difference, low, high, p, blocks), p_adjusted in zip(pairs, found, adjusted, strict=True)
    )


def _pairs(models: list[str], attention: list[str], floor: str) -> list[tuple[str, str]]:
    others = [model for model in models if model not in attention]
    pairs = [(model, other) for i, model in enumerate(attention) for other in [*attention[i + 1 :], *others]]
    return pairs + [(model, floor) for model in others if model != floor]


def _mean_over_seeds(name: str, values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim not in (1, 2):
        raise ShapeError(f"losses have shape {values.shape}, must be [N] or [seeds, N]", where=name)
    return values if values.ndim == 1 else values.mean(axis=0)


def _differences(losses: np.ndarray, reference: np.ndarray) -> np.ndarray:
    losses, reference = np.asarray(losses, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if losses.ndim != 1 or losses.shape != reference.shape or not losses.size:
        raise ShapeError(
            f"losses {losses.shape} and reference {reference.shape} must be two vectors of one length",
            remedy="score both models on the same test items",
        )
    difference = losses - reference
    if not np.isfinite(difference).all():
        raise ShapeError("losses must be finite", remedy="leave out the items that have no score, for all models")
    return difference


def _circular_block_means(values: np.ndarray, block: int) -> np.ndarray:
    """Mean of each run of ``block`` values of the circle, ``[N]``: one run starts at each value."""
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[: block - 1]]))])
    return (sums[block:] - sums[:-block]) / block


def _absolute_t(means: np.ndarray, blocks: int, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """``|t*|`` of each resample of ``blocks`` of the centred block means, ``[resamples]``."""
    parts = []
    negligible = 1e-9 * float(np.abs(means).max())  # what is left of equal block means after rounding
    step = max(1, _DRAWS_AT_ONCE // blocks)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        drawn = means[generator.integers(len(means), size=(rows, blocks))]  # [rows, blocks]
        error = drawn.std(axis=1) / np.sqrt(blocks - 1)
        error[error < negligible] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append(np.abs(drawn.mean(axis=1)) / error)
    # All blocks alike: no spread to judge by. Off centre it counts as far out, which never claims too much.
    return np.nan_to_num(np.concatenate(parts), nan=0.0, posinf=np.inf)
