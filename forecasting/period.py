"""A learned table over one cycle of the local clock: what a series does on average at each phase.

After CycleNet (Lin et al. 2024), with two changes: the phase comes from the timestamp and not from the row
number, so that gaps and clock changes do not shift it, and the table starts from the mean of each phase.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecasting.encodings import cycle_index
from forecasting.windows import Batch, Windows

DAY_NANOSECONDS = 86_400 * 10**9
CYCLE_DAYS = (1.0, 7.0, 365.2425)
"""Length of the cycles that local phases are known of: day, week, year."""
MOST_BINS = 512
LEAST_CYCLES = 8
"""A mean over fewer cycles holds more noise than pattern."""


class PeriodTable(nn.Module):
    """One value a bin of the longest cycle that the training part resolves and has seen often enough.

    Until :meth:`solve` has found such a cycle the table is empty, and changes nothing.

    Args:
        learned: Whether training may change the values after :meth:`solve` has set them.
    """

    def __init__(self, *, learned: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(MOST_BINS), requires_grad=learned)
        self.register_buffer("cycle", torch.zeros(2, dtype=torch.long))  # which cycle, how many bins (0: none)
        self.cycle: Tensor

    def forward(self, phases: Tensor) -> Tensor:
        """The table at each time, ``[...]`` from phases ``[..., 3]``."""
        which, bins = self.cycle.tolist()
        return self.table[cycle_index(phases, which, bins)] if bins else torch.zeros_like(phases[..., 0])

    def remove(self, batch: Batch) -> Batch:
        """The batch with the table subtracted from history and target."""
        return batch._replace(
            values=(batch.values - self(batch.phases)) * batch.observed,
            target=batch.target - self(batch.future_phases),
        )

    @torch.no_grad()
    def solve(self, training: Windows) -> None:
        """Choose the cycle, and set the table to the mean of the training values at each phase."""
        rows = training.rows
        used = _rows_of(training) & rows.observed
        if not used.any():
            return
        step = float(rows.step.double().median())
        span = float(rows.times[used].max() - rows.times[used].min())
        for which in reversed(range(len(CYCLE_DAYS))):
            length = CYCLE_DAYS[which] * DAY_NANOSECONDS
            bins = round(length / step)
            if 2 <= bins <= MOST_BINS and span >= LEAST_CYCLES * length:
                index = cycle_index(rows.phases[used], which, bins)
                count = torch.bincount(index, minlength=MOST_BINS)
                total = torch.bincount(index, weights=rows.values[used].double(), minlength=MOST_BINS)
                self.table.copy_(total / count.clamp(min=1))
                self.cycle.copy_(torch.tensor([which, bins]))
                return


def _rows_of(windows: Windows) -> Tensor:
    """Which rows come before the end of their series' last window; boolean, one a row."""
    rows = windows.rows
    ends = torch.zeros(len(rows.starts) - 1, dtype=torch.long)
    ends.scatter_reduce_(0, windows.series, windows.origins + windows.horizon, reduce="amax")
    return torch.arange(len(rows.values)) < torch.repeat_interleave(ends, torch.diff(rows.starts))
