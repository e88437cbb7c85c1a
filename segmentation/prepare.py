"""From a configuration to open scenes, divided into labelled ground, with statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.progress import log
from segmentation.classes import NODATA, LandClass, default_colour, read_classes, read_labels
from segmentation.config import ClassConfig, DataConfig, SegmentConfig
from segmentation.inputs import Statistics, measure
from segmentation.samples import Ground, load_ground
from segmentation.scene import Modality, Scene, bind_bands
from segmentation.split import Part, split_area
from segmentation.tiles import TilePlan

WINDOW = 1024  # side of the windows that statistics are measured in


@dataclass(frozen=True)
class Prepared:
    """Data ready for training and scoring.

    Attributes:
        modalities: The primary one first.
        classes: The classes.
        statistics: Of each modality over the training ground.
        grounds: Labelled strips of each part.
    """

    modalities: tuple[Modality, ...]
    classes: tuple[LandClass, ...]
    statistics: dict[str, Statistics]
    grounds: dict[Part, list[Ground]]

    def facts(self) -> dict[str, str]:
        """What the data is, label to value, for cards and reports."""
        facts = {
            f"modality {each.name}": ", ".join(band.name or f"band {band.index}" for band in each.bands)
            for each in self.modalities
        }
        for part, grounds in self.grounds.items():
            pixels = sum(ground.labels.size for ground in grounds)
            labelled = sum(int((ground.labels != NODATA).sum()) for ground in grounds)
            facts[part] = f"{pixels:,} pixels, {labelled / pixels:.1%} of them labelled"
        return {**facts, "classes": ", ".join(each.name for each in self.classes)}


@contextmanager
def prepared(config: SegmentConfig) -> Iterator[Prepared]:
    """Open the scenes of a configuration and divide them.

    Raises:
        InputError: If a file cannot be used.
        ConfigError: If a scene is too small for the split.
    """
    data = config.data
    modalities = _modalities(data)
    classes = _classes(data.classes) if data.classes else read_classes(data.scenes[0].labels, data.unlabelled)
    bands = sum(len(modality.bands) for modality in modalities)
    split = config.split
    shares: dict[Part, float] = {"train": split.train, "validation": split.validation, "test": split.test}
    grounds: dict[Part, list[Ground]] = {"train": [], "validation": [], "test": []}
    with ExitStack() as stack:
        for each in data.scenes:
            scene = stack.enter_context(Scene(each.modalities, modalities, data.primary))
            strips = split_area(scene.grid.box, shares, axis=split.axis, guard=split.guard, repeat=split.repeat)
            for part, boxes in strips.items():
                for box in boxes:
                    labels = read_labels(each.labels, scene.grid, box, classes, data.unlabelled)
                    grounds[part].append(load_ground(scene, box, labels, bands))
            log.info("%s: %d x %d pixels", each.name, scene.grid.height, scene.grid.width)
        windows = (ground.images(box) for ground in grounds["train"] for box in TilePlan(ground.box, WINDOW, 0).boxes())
        yield Prepared(modalities, classes, measure(windows), grounds)


def _modalities(data: DataConfig) -> tuple[Modality, ...]:
    """The modalities as the files of the first scene have them, the primary one first."""
    files: dict[str, Path] = data.scenes[0].modalities
    names = sorted(files, key=lambda name: name != data.primary)
    modalities = []
    for name in names:
        options = data.modalities.get(name)
        bands = bind_bands(files[name], options.bands if options else None)
        modalities.append(
            Modality(name, bands, options.resampling, options.scale, options.offset)
            if options
            else Modality(name, bands)
        )
    return tuple(modalities)


def _classes(configured: list[ClassConfig]) -> tuple[LandClass, ...]:
    return tuple(
        LandClass(each.code, each.name, each.colour or default_colour(position))
        for position, each in enumerate(configured)
    )
