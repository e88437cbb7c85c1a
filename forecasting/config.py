"""Configuration of a forecasting job, as read from YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from common.config import Config

Share = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Level = Annotated[float, Field(gt=0, lt=100)]


class LayoutConfig(Config):
    """How a file of series is laid out; see :func:`forecasting.series.read.read_panel` for what each key says."""

    layout: Literal["long", "wide"] = "long"
    id: str | tuple[str, ...] | None = None
    time: str | tuple[str, ...] = "ds"
    target: str = "y"
    channels: tuple[str, ...] | None = None
    static: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    time_format: str | None = None
    timezone: str | None = None
    duplicates: Literal["error", "mean", "last"] = "error"
    resample: str | None = None
    how: Literal["mean", "sum", "last"] = "mean"
    missing: tuple[str, ...] = ()
    encoding: str | None = None
    separator: str | None = None
    decimal: Literal[".", ","] | None = None

    @model_validator(mode="after")
    def _layout_fits(self) -> Self:
        if self.layout == "long" and self.channels is not None:
            raise ValueError("channels are for layout wide; a long file has one target")
        if self.layout == "wide" and self.id is not None:
            raise ValueError("id is for layout long; in a wide file the columns name the series")
        if self.layout == "wide" and self.static:
            raise ValueError("static is for layout long; in a wide file no column belongs to one series")
        return self

    @model_validator(mode="after")
    def _covariates_fit(self) -> Self:
        covariates = [*self.static, *self.past, *self.future]
        twice = sorted({name for name in covariates if covariates.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]!r} can have one role: static, past or future")
        unknown = [name for name in self.categorical if name not in covariates]
        if unknown:
            raise ValueError(f"categorical {unknown[0]!r} must also be listed under static, past or future")
        if self.layout == "long" and self.target in covariates:
            raise ValueError(f"the target {self.target!r} cannot be a covariate of itself")
        return self

    @field_validator("separator")
    @classmethod
    def _one_character(cls, separator: str | None) -> str | None:
        if separator is not None and len(separator) != 1:
            raise ValueError('must be one character, such as ";" or "\\t"')
        return separator


class DataConfig(LayoutConfig):
    """Where the series are and how their file is laid out."""

    path: Path


class AuditConfig(Config):
    """What is known of a file before it is audited."""

    data: DataConfig


class SplitConfig(Config):
    """Share of each series' last rows, or from 1 on their number."""

    validation: Share = 0.15
    test: Share = 0.15

    @model_validator(mode="after")
    def _leaves_rows(self) -> SplitConfig:
        if self.validation < 1 and self.test < 1 and self.validation + self.test >= 1:
            raise ValueError("validation and test together leave no rows to train on")
        return self


def _check_heads(dim: int, heads: int) -> None:
    if dim % (2 * heads):
        raise ValueError(f"dim must be a multiple of 2 * heads = {2 * heads}, for pairs of rotary features")


class InformerConfig(Config):
    """Settings of the attention model, and the learning rate that suits it."""

    kind: Literal["informer"] = "informer"
    dim: PositiveInt = 64
    heads: PositiveInt = 4
    layers: PositiveInt = 2
    patch: PositiveInt = 8
    factor: PositiveFloat = 5.0
    dropout: Rate = 0.0
    period_table: bool = True
    linear: bool = True
    learning_rate: PositiveFloat = 1e-3

    @model_validator(mode="after")
    def _heads_divide(self) -> InformerConfig:
        _check_heads(self.dim, self.heads)
        return self


class LSTMConfig(Config):
    """Settings of the recurrent baseline, and the learning rate that suits it."""

    kind: Literal["lstm"] = "lstm"
    dim: PositiveInt = 64
    layers: PositiveInt = 1
    dropout: Rate = 0.0
    period_table: bool = True
    learning_rate: PositiveFloat = 5e-3


class TCNConfig(Config):
    """Settings of the convolutional baseline, and the learning rate that suits it."""

    kind: Literal["tcn"] = "tcn"
    dim: PositiveInt = 32
    kernel: Annotated[int, Field(ge=2)] = 3
    dropout: Rate = 0.0
    period_table: bool = True
    learning_rate: PositiveFloat = 5e-3


class TransformerConfig(Config):
    """Settings of the baseline of full attention, and the learning rate that suits it."""

    kind: Literal["transformer"] = "transformer"
    dim: PositiveInt = 64
    heads: PositiveInt = 4
    layers: PositiveInt = 2
    patch: PositiveInt = 8
    dropout: Rate = 0.0
    period_table: bool = True
    learning_rate: PositiveFloat = 1e-3

    @model_validator(mode="after")
    def _heads_divide(self) -> TransformerConfig:
        _check_heads(self.dim, self.heads)
        return self


class LSTMAConfig(Config):
    """Settings of the recurrent baseline with attention, and the learning rate that suits it."""

    kind: Literal["lstma"] = "lstma"
    dim: PositiveInt = 64
    layers: PositiveInt = 1
    dropout: Rate = 0.0
    period_table: bool = True
    learning_rate: PositiveFloat = 5e-3


class DLinearConfig(Config):
    """Settings of the trained linear baseline, and the learning rate that suits it."""

    kind: Literal["dlinear"] = "dlinear"
    kernel: PositiveInt = 25
    period_table: bool = True
    learning_rate: PositiveFloat = 1e-3


class RidgeConfig(Config):
    """Settings of the linear baseline; its penalty is chosen on validation."""

    kind: Literal["ridge"] = "ridge"
    period_table: bool = True


class SeasonalNaiveConfig(Config):
    """The floor has no settings: its season is chosen on validation."""

    kind: Literal["seasonal-naive"] = "seasonal-naive"


ModelConfig = Annotated[
    InformerConfig
    | TransformerConfig
    | LSTMConfig
    | LSTMAConfig
    | TCNConfig
    | DLinearConfig
    | RidgeConfig
    | SeasonalNaiveConfig,
    Field(discriminator="kind"),
]


class TrainingConfig(Config):
    """How networks are trained; what has a closed form does not use it.

    Attributes:
        steps: Most optimiser steps.
        batch_size: Windows in a batch.
        weight_decay: Of AdamW.
        warmup: Share of the steps over which the learning rate rises.
        clip: Largest norm of the gradient.
        accumulate: Batches whose gradients are averaged for one step.
        precision: Of the products in training.
        validate_every: Steps between two checks on validation.
        patience: Checks without a better score after which training ends.
        loss: What is made small, in training and on validation.
    """

    steps: PositiveInt = 1000
    batch_size: PositiveInt = 64
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    warmup: Rate = 0.05
    clip: PositiveFloat = 1.0
    accumulate: PositiveInt = 1
    precision: Literal["float32", "bf16"] = "float32"
    validate_every: PositiveInt = 100
    patience: PositiveInt = 5
    loss: Literal["mae", "mse"] = "mae"


class CompareConfig(Config):
    """Which models are held against each other, and how often each is trained."""

    models: tuple[ModelConfig, ...] = (
        InformerConfig(),
        LSTMConfig(),
        TCNConfig(),
        RidgeConfig(),
        SeasonalNaiveConfig(),
    )
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)

    @field_validator("models")
    @classmethod
    def _floor_is_there(cls, models: tuple[ModelConfig, ...]) -> tuple[ModelConfig, ...]:
        kinds = [model.kind for model in models]
        if len(set(kinds)) < len(kinds):
            raise ValueError("each kind of model can stand once")
        if "seasonal-naive" not in kinds:
            raise ValueError("seasonal-naive must be among the models: it is the floor all are held against")
        return models


class ForecastConfig(Config):
    """A forecasting job."""

    data: DataConfig
    lookback: PositiveInt
    horizon: PositiveInt
    levels: Annotated[tuple[Level, ...], Field(min_length=1)] = (80, 95)
    periods: tuple[str, ...] = ()
    split: SplitConfig = SplitConfig()
    model: ModelConfig = InformerConfig()
    training: TrainingConfig = TrainingConfig()
    compare: CompareConfig = CompareConfig()
    seed: Annotated[int, Field(ge=0)] = 0

    @field_validator("model", mode="before")
    @classmethod
    def _informer_by_default(cls, model: object) -> object:
        return {"kind": "informer", **model} if isinstance(model, dict) else model

    @field_validator("periods")
    @classmethod
    def _lengths_of_time(cls, periods: tuple[str, ...]) -> tuple[str, ...]:
        for text in periods:
            period_length(text)
        return periods


def period_length(text: str) -> int:
    """Nanoseconds of a length of time such as ``12h25min``.

    Raises:
        ValueError: If it is none.
    """
    from forecasting.series.steps import length_of_time

    length = length_of_time(text)
    if length is None:
        raise ValueError(f"{text!r} is not a length of time, such as 12h25min or 3.5d")
    return length
