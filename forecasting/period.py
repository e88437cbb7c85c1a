"""A learned table over one cycle of the local clock: what a series does on average at each phase.

After CycleNet (Lin et al. 2024), with two changes: the phase comes from the timestamp and not from the row
number, so that gaps and clock changes do not shift it, and the table starts from the mean of each phase.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from forecasting.encodings import cycle_index
from forecasting.series.clock import DAY
from forecasting.windows import Batch, Windows

CYCLE_DAYS = (1.0, 7.0, 365.2425)
"""Length of the cycles that local phases are known of: day, week, year."""
MOST_BINS = 512
CHUNK = 1 << 20  # rows whose phases are worked out at a time
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
        """The table at each time, ``[...]`` from phases ``[..., P]``."""
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
        step = float(rows.step.double().median())
        first, last = _span(training)
        for which in reversed(range(len(CYCLE_DAYS))):
            length = CYCLE_DAYS[which] * DAY
            bins = round(length / step)
            if 2 <= bins <= MOST_BINS and last - first >= LEAST_CYCLES * length:
                self.table.copy_(_means(training, which, bins))
                self.cycle.copy_(torch.tensor([which, bins]))
                return


def _parts(training: Windows) -> Iterator[slice]:
    """Rows before the end of each series' last window, some at a time."""
    for start, first, count in zip(
        training.rows.starts.tolist(), training.first.tolist(), training.count.tolist(), strict=False
    ):
        end = first + count - 1 + training.horizon if count else start
        for begin in range(start, end, CHUNK):
            yield slice(begin, min(begin + CHUNK, end))


def _span(training: Windows) -> tuple[float, float]:
    """First and last time at which a value is observed; equal without any."""
    first, last = float("inf"), float("-inf")
    for part in _parts(training):
        seen = training.rows.observed[part].nonzero()
        if len(seen):
            times = training.rows.times[part]
            first, last = min(first, float(times[seen[0]])), max(last, float(times[seen[-1]]))
    return (first, last) if last >= first else (0.0, 0.0)


def _means(training: Windows, cycle: int, bins: int) -> Tensor:
    """Mean of the training values in each bin of a cycle, zero where there is none, ``[MOST_BINS]``."""
    count, total = torch.zeros(MOST_BINS, dtype=torch.double), torch.zeros(MOST_BINS, dtype=torch.double)
    for part in _parts(training):
        values = training.rows.values[part]
        used = training.rows.observed[part]
        index = cycle_index(training.rows.phases(training.rows.times[part][used]), cycle, bins)
        count += torch.bincount(index, minlength=MOST_BINS)
        total += torch.bincount(index, weights=values[used].double(), minlength=MOST_BINS)
    return (total / count.clamp(min=1)).float()
