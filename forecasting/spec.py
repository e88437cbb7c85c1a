"""What a run folder says of its model, checked like a configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from common.config import Config
from forecasting.config import LayoutConfig, Level, ModelConfig


class CovariateSpec(Config):
    """How a column becomes features, see :class:`forecasting.covariates.Covariate`."""

    name: str
    role: Literal["static", "past", "future"]
    categories: tuple[str, ...] | None = None
    centre: float = 0.0
    scale: PositiveFloat = 1.0


class RunSpec(Config):
    """What a run folder says of its model, checked like a configuration before any of it is used.

    Attributes:
        model: Kind and settings.
        lookback: Rows it looks back.
        horizon: Times it forecasts.
        levels: Levels of its intervals, in percent.
        widths: Their half-widths, ``[levels][horizon]``, scaled.
        scales: Centre and scale of each series it was fitted on.
        step_seconds: Usual step of these series.
        covariates: How columns beside the target become features.
        period_seconds: Lengths of periods found in the data.
        naive_widths: As ``widths``, of forecasts that repeat the last value.
        spreads: Usual scale of a series in units of its level, and as it is.
        data: How their file was laid out.
    """

    model: ModelConfig
    lookback: PositiveInt
    horizon: PositiveInt
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    widths: tuple[tuple[NonNegativeFloat, ...], ...]
    scales: dict[str, tuple[float, PositiveFloat]]
    step_seconds: PositiveFloat
    covariates: tuple[CovariateSpec, ...] = ()
    period_seconds: tuple[PositiveFloat, ...] = ()
    naive_widths: tuple[tuple[NonNegativeFloat, ...], ...]
    spreads: tuple[NonNegativeFloat, NonNegativeFloat]
    data: LayoutConfig

    @model_validator(mode="after")
    def _widths_fit(self) -> Self:
        for name in ("widths", "naive_widths"):
            if [len(row) for row in getattr(self, name)] != [self.horizon] * len(self.levels):
                raise ValueError(f"{name} must be {len(self.levels)} rows, one a level, of {self.horizon} numbers")
        return self
