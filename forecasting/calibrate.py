"""Prediction intervals by split conformal calibration (Vovk et al. 2005; Lei et al. 2018), one width a horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from forecasting.windows import Batch, Windows


@torch.no_grad()
def interval_widths(model: Callable[[Batch], Tensor], windows: Windows, levels: Sequence[float]) -> Tensor:
    """Half-widths of intervals that hold the stated share of what was observed.

    Half-width ``k`` of horizon ``h`` is the ``ceil((n + 1) level)``-th smallest absolute error among the ``n``
    observed targets there, the largest if there are too few. Windows of one series overlap, so that the
    guarantee for exchangeable errors holds only roughly; reports show the coverage reached on test data.

    Args:
        model: The forecaster.
        windows: Windows not trained on.
        levels: In percent, increasing.

    Returns:
        ``[levels, H]``, scaled; increasing along the levels.
    """
    errors, observed = [], []
    for batch in windows:
        errors.append((model(batch) - batch.target).abs())
        observed.append(batch.target_observed)
    error = torch.cat(errors).masked_fill(~torch.cat(observed), float("inf")).sort(dim=0).values  # [N, H]
    count = torch.cat(observed).sum(dim=0)  # [H]
    widths = []
    for level in levels:
        rank = torch.tensor([min(int(n), math.ceil((int(n) + 1) * level / 100)) for n in count])
        width = error.gather(0, (rank - 1).clamp(min=0)[None]).squeeze(0)
        widths.append(torch.where(count > 0, width, torch.nan))
    return _filled(torch.stack(widths))


def _filled(widths: Tensor) -> Tensor:
    """Horizons never observed take the widest interval of their level."""
    widest = widths.nan_to_num(0.0).amax(dim=1, keepdim=True)
    return torch.where(widths.isnan(), widest, widths)
