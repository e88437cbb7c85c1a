"""What a run folder says of its model, checked like a configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from common.config import Config
from segmentation.config import Code, Colour, ModelConfig


class BandSpec(Config):
    """A band of a bundle's modality."""

    name: str | None
    index: PositiveInt


class ModalitySpec(Config):
    """A modality of a bundle."""

    name: str
    bands: Annotated[tuple[BandSpec, ...], Field(min_length=1)]
    resampling: Literal["nearest", "bilinear", "cubic"]
    scale: float | None
    offset: float | None


class StatisticsSpec(Config):
    """Mean and deviation of each band of a bundle's modality."""

    mean: tuple[float, ...]
    std: tuple[PositiveFloat, ...]


class LandClassSpec(Config):
    """A class of a bundle, which always has a colour."""

    code: Code
    name: str
    colour: Colour


class RunSpec(Config):
    """What a run folder says of its model, checked like a configuration before any of it is used.

    Attributes:
        name: Name of the model.
        model: Kind and arguments.
        modalities: The primary one first.
        statistics: Of each modality.
        classes: In the order of the model's channels.
    """

    name: str
    model: ModelConfig
    modalities: Annotated[tuple[ModalitySpec, ...], Field(min_length=1)]
    statistics: dict[str, StatisticsSpec]
    classes: Annotated[tuple[LandClassSpec, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _statistics_fit(self) -> Self:
        bands = {each.name: len(each.bands) for each in self.modalities}
        for name, count in bands.items():
            found = self.statistics.get(name)
            if found is None or not len(found.mean) == len(found.std) == count:
                raise ValueError(f"statistics must have mean and std of the {count} bands of modality {name!r}")
        return self
