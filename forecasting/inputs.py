"""What a model is given: how far it looks back and ahead, and which features each row has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting.covariates import Covariate, width
from forecasting.encodings import future_width, history_width
from forecasting.series.panel import Panel
from forecasting.windows import Rows


@dataclass(frozen=True)
class Inputs:
    """What a model is given.

    Attributes:
        lookback: Rows a window looks back.
        horizon: Times a window forecasts.
        covariates: What is known beside the target.
        periods: Lengths of periods found in the data, in nanoseconds.
    """

    lookback: int
    horizon: int
    covariates: tuple[Covariate, ...] = ()
    periods: tuple[int, ...] = ()

    @property
    def history(self) -> int:
        """Features of a row of the lookback."""
        return history_width(len(self.periods), width(self.covariates, ahead=False))

    @property
    def future(self) -> int:
        """Features of a requested time."""
        return future_width(len(self.periods), width(self.covariates, ahead=True))

    def rows(self, panel: Panel, centre: np.ndarray, scale: np.ndarray) -> Rows:
        """The rows of a panel, scaled and encoded."""
        return Rows(panel, centre=centre, scale=scale, covariates=self.covariates, periods=self.periods)
