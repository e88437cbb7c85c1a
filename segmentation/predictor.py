"""A trained model with all that is needed to use it, to and from a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from common.bundle import MANIFEST, read_bundle
from common.config import validate
from segmentation.classes import LandClass
from segmentation.inputs import Statistics, stack
from segmentation.models import build_model
from segmentation.scene import Band, Image, Modality
from segmentation.spec import RunSpec

KIND = "segment"


@dataclass(frozen=True)
class Predictor:
    """A model and how its inputs are made.

    Attributes:
        name: Name of the model.
        options: Its ``kind`` and arguments, as in the configuration.
        modalities: In the order the model takes them; the first is the primary one, whose grid is the map's.
        statistics: Of each modality.
        classes: In the order of the model's channels.
        model: The network.
    """

    name: str
    options: dict[str, Any]
    modalities: tuple[Modality, ...]
    statistics: dict[str, Statistics]
    classes: tuple[LandClass, ...]
    model: nn.Module

    @property
    def reference(self) -> str:
        """The primary modality."""
        return self.modalities[0].name

    @torch.inference_mode()
    def probabilities(self, tiles: Sequence[Mapping[str, Image]]) -> NDArray[np.float32]:
        """Class probabilities ``[B, classes, H, W]`` of tiles of one size."""
        device = next((tensor.device for tensor in self.model.state_dict().values()), torch.device("cpu"))
        inputs = stack(tiles, self.statistics)
        images = {name: image.to(device) for name, image in inputs.images.items()}
        available = {name: mask.to(device) for name, mask in inputs.available.items()}
        return self.model(images, available).float().softmax(dim=1).cpu().numpy()

    def spec(self) -> dict[str, Any]:
        """Everything but the weights, as plain JSON data."""
        return {
            "name": self.name,
            "model": self.options,
            "modalities": [asdict(modality) for modality in self.modalities],
            "statistics": {name: asdict(each) for name, each in self.statistics.items()},
            "classes": [each._asdict() for each in self.classes],
        }


def untrained(
    name: str,
    options: Mapping[str, Any],
    *,
    modalities: tuple[Modality, ...],
    statistics: dict[str, Statistics],
    classes: tuple[LandClass, ...],
) -> Predictor:
    """A predictor whose model has random weights."""
    model = build_model(
        options["kind"],
        bands={modality.name: len(modality.bands) for modality in modalities},
        classes=len(classes),
        options={key: value for key, value in options.items() if key != "kind"},
    )
    return Predictor(name, dict(options), modalities, statistics, classes, model.eval())


def load_predictor(run: Path) -> Predictor:
    """Read a run folder that ``fit`` wrote.

    Raises:
        BundleError: If it is no such folder, or is damaged.
        ConfigError: If what it says of itself breaks a rule.
    """
    bundle = read_bundle(run, KIND)
    spec = validate(bundle.spec, RunSpec, where=run / MANIFEST)
    predictor = untrained(
        spec.name,
        spec.model.model_dump(mode="json", exclude={"pixels"}),
        modalities=tuple(
            Modality(**{**dict(each), "bands": tuple(Band(band.name, band.index) for band in each.bands)})
            for each in spec.modalities
        ),
        statistics={
            each.name: Statistics(spec.statistics[each.name].mean, spec.statistics[each.name].std)
            for each in spec.modalities
        },
        classes=tuple(LandClass(each.code, each.name, each.colour) for each in spec.classes),
    )
    bundle.load_into(predictor.model)
    return predictor
