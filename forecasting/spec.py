"""What a run folder says of its model, checked like a configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from common.config import Config
from forecasting.config import LayoutConfig, Level, ModelConfig


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
        data: How their file was laid out.
    """

    model: ModelConfig
    lookback: PositiveInt
    horizon: PositiveInt
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    widths: tuple[tuple[NonNegativeFloat, ...], ...]
    scales: dict[str, tuple[float, PositiveFloat]]
    step_seconds: PositiveFloat
    data: LayoutConfig

    @model_validator(mode="after")
    def _widths_fit(self) -> Self:
        if [len(row) for row in self.widths] != [self.horizon] * len(self.levels):
            raise ValueError(f"widths must be {len(self.levels)} rows, one a level, of {self.horizon} numbers")
        return self
