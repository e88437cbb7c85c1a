"""Configuration of the segmentation application."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from common.config import Config, load_config

Fraction = Annotated[float, Field(ge=0, le=1)]
Code = Annotated[int, Field(ge=0, le=254)]
Colour = Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]


class SceneConfig(Config):
    """A labelled scene.

    Attributes:
        name: What reports call it.
        modalities: File of each modality; all scenes name the same ones.
        labels: The label raster.
    """

    name: str
    modalities: Annotated[dict[str, Path], Field(min_length=1)]
    labels: Path


class ModalityConfig(Config):
    """How the files of a modality are read.

    Attributes:
        bands: Bands by description or by index from 1; all of them by default.
        resampling: For files on another grid than that of the scene.
        scale: Factor on the stored values, instead of the scale tags of the file.
        offset: Added after scaling, instead of the offset tags of the file.
    """

    bands: Annotated[list[str | Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None
    resampling: Literal["nearest", "bilinear", "cubic"] = "bilinear"
    scale: float | None = None
    offset: float | None = None


class ClassConfig(Config):
    """A class of the map.

    Attributes:
        code: Its value in the label rasters.
        name: Its name.
        colour: As ``#rrggbb``; one is chosen by default.
    """

    code: Code
    name: str
    colour: Colour | None = None


class DataConfig(Config):
    """The scenes and how to read them.

    Attributes:
        scenes: Labelled scenes.
        modalities: Options of modalities, for those that need any.
        reference: The modality whose grid is that of the scene, the primary one; the first by default.
        classes: The classes; read from the first label raster by default.
        unlabelled: Value of unlabelled ground in the label rasters, besides their nodata value.
    """

    scenes: Annotated[list[SceneConfig], Field(min_length=1)]
    modalities: dict[str, ModalityConfig] = Field(default_factory=dict)
    reference: str | None = None
    classes: Annotated[list[ClassConfig], Field(min_length=2)] | None = None
    unlabelled: int = 255

    @model_validator(mode="after")
    def _names_fit(self) -> DataConfig:
        names = set(self.scenes[0].modalities)
        for scene in self.scenes[1:]:
            if set(scene.modalities) != names:
                raise ValueError(
                    f"scene {scene.name!r} has the modalities {', '.join(scene.modalities)}, "
                    f"but {self.scenes[0].name!r} has {', '.join(self.scenes[0].modalities)}"
                )
        for name in [*self.modalities, *([self.reference] if self.reference else [])]:
            if name not in names:
                raise ValueError(f"{name!r} is not a modality of the scenes, which have {', '.join(sorted(names))}")
        codes = [each.code for each in self.classes or []]
        if len(set(codes)) < len(codes):
            raise ValueError("two classes have the same code")
        if self.unlabelled in codes:
            raise ValueError(f"the code {self.unlabelled} is both a class and unlabelled")
        return self

    @property
    def primary(self) -> str:
        """The reference modality."""
        return self.reference or next(iter(self.scenes[0].modalities))


class SplitConfig(Config):
    """Contiguous strips of each scene for training, validation and test, in this order.

    Attributes:
        axis: Strips side by side (``columns``) or one below the other (``rows``).
        train: Share of the scene.
        validation: Share of the scene.
        test: Share of the scene.
        guard: Pixels left out between strips.
        repeat: How often the sequence of strips is repeated.
    """

    axis: Literal["columns", "rows"] = "columns"
    train: Fraction = 0.6
    validation: Fraction = 0.15
    test: Fraction = 0.25
    guard: Annotated[int, Field(ge=0)] = 16
    repeat: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _whole(self) -> SplitConfig:
        if abs(self.train + self.validation + self.test - 1) > 1e-6:
            raise ValueError("train, validation and test must sum to 1")
        if min(self.train, self.validation, self.test) <= 0:
            raise ValueError("train, validation and test must each be above 0")
        return self


class SwinConfig(Config):
    """A Swin encoder.

    Attributes:
        embed_dim: Width after the first stage; it doubles at each further one.
        depths: Blocks a stage.
        heads: Attention heads a stage.
        window: Side of the attention windows, in tokens.
    """

    embed_dim: Annotated[int, Field(ge=4)] = 48
    depths: Annotated[tuple[int, ...], Field(min_length=1)] = (2, 2, 2)
    heads: Annotated[tuple[int, ...], Field(min_length=1)] = (2, 4, 8)
    window: Annotated[int, Field(ge=2)] = 8

    @model_validator(mode="after")
    def _stages_fit(self) -> SwinConfig:
        if len(self.depths) != len(self.heads):
            raise ValueError(f"depths has {len(self.depths)} stages, heads has {len(self.heads)}")
        for stage, heads in enumerate(self.heads):
            if heads < 1 or self.embed_dim * 2**stage % heads:
                raise ValueError(f"width {self.embed_dim * 2**stage} of stage {stage} does not divide by {heads} heads")
        return self


class SwinFusionConfig(Config):
    """The attention model.

    Attributes:
        primary: Encoder of the reference modality.
        secondary: Encoder of each other modality.
        patch: Side in pixels of the patch that becomes one token.
        width: Channels of the decoder.
        modality_dropout: Probability of hiding a secondary modality of a tile in training.
        dropout: Probability of dropping a channel of the context in training.
    """

    kind: Literal["swin-fusion"] = "swin-fusion"
    primary: SwinConfig = SwinConfig()
    secondary: SwinConfig = SwinConfig(embed_dim=24, depths=(1, 1, 1), heads=(1, 2, 4))
    patch: Annotated[int, Field(ge=1)] = 4
    width: Annotated[int, Field(ge=8)] = 64
    modality_dropout: Fraction = 0.1
    dropout: Fraction = 0.2

    @model_validator(mode="after")
    def _same_stages(self) -> SwinFusionConfig:
        if len(self.primary.depths) != len(self.secondary.depths):
            raise ValueError("primary and secondary must have the same number of stages")
        return self


class UNetConfig(Config):
    """Baseline: a U-Net on all bands at once (early fusion).

    Attributes:
        encoder: Name of an encoder of segmentation_models_pytorch, trained from scratch.
        decoder_channels: Channels of the decoder from coarse to fine; their number is the depth.
    """

    kind: Literal["unet"] = "unet"
    encoder: str = "resnet18"
    decoder_channels: Annotated[tuple[int, ...], Field(min_length=3, max_length=5)] = (256, 128, 64, 32, 16)


class PixelBoostingConfig(Config):
    """Floor: gradient boosting on the bands of each pixel alone.

    Attributes:
        iterations: Boosting iterations; each grows one tree a class.
        leaves: Largest number of leaves a tree.
        pixels: Training pixels drawn from the labelled ones.
    """

    kind: Literal["pixel-boosting"] = "pixel-boosting"
    iterations: Annotated[int, Field(ge=1)] = 60
    leaves: Annotated[int, Field(ge=2, le=32)] = 15
    pixels: Annotated[int, Field(ge=100)] = 20_000


ModelConfig = Annotated[SwinFusionConfig | UNetConfig | PixelBoostingConfig, Field(discriminator="kind")]


class TrainingConfig(Config):
    """The training budget, the same for every network of a comparison.

    Attributes:
        steps: Optimiser steps.
        batch_size: Tiles a step.
        learning_rate: Peak learning rate.
        weight_decay: Of AdamW.
        warmup: Share of the steps over which the learning rate rises.
        clip: Largest gradient norm.
        accumulate: Batches whose gradients are averaged for one step.
        precision: Of the products in training.
        validate_every: Steps between validations.
        patience: Validations without improvement after which training ends.
        balance: Rare classes are drawn more often, and weighed by ``frequency ** -balance``; 0 takes all pixels alike.
    """

    steps: Annotated[int, Field(ge=1)] = 2000
    batch_size: Annotated[int, Field(ge=1)] = 8
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    clip: Annotated[float, Field(gt=0)] = 1.0
    accumulate: Annotated[int, Field(ge=1)] = 1
    precision: Literal["float32", "bf16"] = "float32"
    validate_every: Annotated[int, Field(ge=1)] = 100
    patience: Annotated[int, Field(ge=1)] = 10
    balance: Fraction = 0.5


class CompareConfig(Config):
    """What ``compare`` adds to the model of the configuration.

    Attributes:
        baselines: Models by name.
        seeds: Each model is trained once a seed; the first is that of the kept runs.
        block: Side in pixels of the squares whose error rates the paired test compares.
    """

    baselines: dict[Annotated[str, Field(pattern=r"^\w[\w.+-]*$")], ModelConfig] = Field(
        default_factory=lambda: {"unet": UNetConfig(), "pixel-boosting": PixelBoostingConfig()}
    )
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    block: Annotated[int, Field(ge=1)] = 64


class SegmentConfig(Config):
    """A segmentation job: data, split, model and training.

    Attributes:
        data: Scenes.
        split: Ground for training, validation and test.
        tile: Side in pixels of the training tiles.
        model: The model.
        training: The training budget.
        seed: Seed of everything that is drawn by ``fit``.
        compare: What ``compare`` adds.
    """

    data: DataConfig
    split: SplitConfig = SplitConfig()
    tile: Annotated[int, Field(ge=16)] = 128
    model: ModelConfig = SwinFusionConfig()
    training: TrainingConfig = TrainingConfig()
    seed: int = 0
    compare: CompareConfig = CompareConfig()

    @model_validator(mode="after")
    def _names_differ(self) -> SegmentConfig:
        if self.model.kind in self.compare.baselines:
            raise ValueError(f"compare.baselines has a model named {self.model.kind!r}, like the model itself")
        return self


def load_segment_config(path: Path, overrides: tuple[str, ...] = ()) -> SegmentConfig:
    """Read a configuration; relative file names in it are relative to its folder.

    Raises:
        InputError: If the file is not there.
        ConfigError: If it breaks rules.
    """
    config = load_config(path, SegmentConfig, overrides)
    base = path.parent
    scenes = [
        scene.model_copy(
            update={
                "modalities": {name: base / file for name, file in scene.modalities.items()},
                "labels": base / scene.labels,
            }
        )
        for scene in config.data.scenes
    ]
    data = config.data.model_copy(update={"scenes": scenes})
    return config.model_copy(update={"data": data})
