"""Train a model on labelled ground, score it, and write it as a run folder."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from common.bundle import is_run, write_bundle
from common.errors import InputError
from common.files import atomic_folder
from common.progress import log
from common.training import TrainingRecord, log_training, seed_everything, train
from segmentation.card import card
from segmentation.classes import NODATA
from segmentation.config import SegmentConfig, TrainingConfig
from segmentation.inference import predict_area
from segmentation.inputs import stack
from segmentation.losses import weighted_cross_entropy
from segmentation.metrics import Scores, confusion_matrix, score
from segmentation.models.boosting import PixelBoosting, pixel_features
from segmentation.predictor import KIND, Predictor, untrained
from segmentation.prepare import Prepared, prepared
from segmentation.samples import Batch, Ground, TileGrid, TileSampler, class_weights


@dataclass(frozen=True)
class Evaluation:
    """How a model did on some ground.

    Attributes:
        predicted: Position of the predicted class, ``[height, width]``, one array a strip.
        confusion: See :func:`segmentation.metrics.confusion_matrix`.
        scores: The scores.
        seconds: Wall-clock time of the prediction.
    """

    predicted: list[NDArray[np.uint8]]
    confusion: NDArray[np.int64]
    scores: Scores
    seconds: float


def fit(config: SegmentConfig, run: Path) -> None:
    """Train the model of a configuration and write a run folder.

    Args:
        config: The job.
        run: The run folder; one of an earlier fit is replaced.

    Raises:
        UsageError: If an input cannot be used, or ``run`` holds something else.
    """
    with atomic_folder(run, partial(is_run, kind=KIND)) as folder, prepared(config) as data:
        options = config.model.model_dump(mode="json")
        predictor, seconds = fit_model(
            config.model.kind, options, data, training=config.training, tile=config.tile, seed=config.seed
        )
        scores = {part: evaluate(predictor, data.grounds[part]).scores for part in ("validation", "test")}
        write_run(folder, predictor, data, config, scores=scores, seconds=seconds)
    for part, each in scores.items():
        log.info("%s: mean IoU %.4f, accuracy %.4f", part, each.mean_iou, each.accuracy)


def fit_model(
    name: str, options: Mapping[str, Any], data: Prepared, *, training: TrainingConfig, tile: int, seed: int
) -> tuple[Predictor, float]:
    """Train one model.

    Args:
        name: What logs and the bundle call it.
        options: Its ``kind`` and arguments.
        data: The data.
        training: The budget; gradient boosting has its own.
        tile: Side of the training tiles.
        seed: Seed of weights, tiles and dropout.

    Returns:
        The predictor, and the seconds that training took.
    """
    seed_everything(seed)
    grounds = data.grounds["train"]
    weights = torch.from_numpy(class_weights(grounds, len(data.classes), training.balance))
    pixels = options.get("pixels")
    arguments = {key: value for key, value in options.items() if key != "pixels"}
    predictor = untrained(name, arguments, modalities=data.modalities, statistics=data.statistics, classes=data.classes)
    started = time.perf_counter()
    if isinstance(predictor.model, PixelBoosting):
        features, labels = _labelled_pixels(grounds, predictor, count=int(pixels or 0), seed=seed)
        predictor.model.grow(features, labels, weights[labels], seed=seed)
    else:
        record = _train_network(predictor, data, weights, training=training, tile=tile, seed=seed)
        log_training(name, record)
    return predictor, time.perf_counter() - started


def evaluate(predictor: Predictor, grounds: Sequence[Ground]) -> Evaluation:
    """Predict each strip by itself, tile by tile, and score it against its labels.

    A strip is predicted from its own pixels alone, so that no tile of the test ground touches any other.

    Raises:
        InputError: If nothing there is labelled.
    """
    if not any((ground.labels != NODATA).any() for ground in grounds):
        raise InputError("no pixel of the ground to be scored is labelled", remedy="check the labels, or the split")
    started = time.perf_counter()
    predicted = [predict_area(predictor, ground.scene, ground.box) for ground in grounds]
    seconds = time.perf_counter() - started
    confusion = np.sum(
        [
            confusion_matrix(ground.labels, classes, len(predictor.classes))
            for ground, classes in zip(grounds, predicted, strict=True)
        ],
        axis=0,
    )
    return Evaluation(predicted, confusion, score(confusion), seconds)


def write_run(
    folder: Path,
    predictor: Predictor,
    data: Prepared,
    config: SegmentConfig,
    *,
    scores: Mapping[str, Scores],
    seconds: float,
) -> None:
    """Write a trained model and its card into an existing folder."""
    text = card(predictor, data.facts(), config, scores=scores, seconds=seconds)
    write_bundle(folder, kind=KIND, spec=predictor.spec(), state=predictor.model.state_dict(), card=text)


def _train_network(
    predictor: Predictor, data: Prepared, weights: Tensor, *, training: TrainingConfig, tile: int, seed: int
) -> TrainingRecord:
    def objective(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        logits = model(*batch.inputs)
        return weighted_cross_entropy(logits, batch.labels, weights.to(logits.device))

    predictor.model.train()
    sizes = {"tile": tile, "batch_size": training.batch_size, "statistics": data.statistics}
    return train(
        predictor.model,
        objective,  # pyright: ignore[reportArgumentType]
        training=TileSampler(data.grounds["train"], balance=training.balance, seed=seed, **sizes).batches,
        validation=TileGrid(data.grounds["validation"], **sizes),
        steps=training.steps,
        validate_every=training.validate_every,
        patience=training.patience,
        learning_rate=training.learning_rate,
        weight_decay=training.weight_decay,
        warmup=training.warmup,
        clip=training.clip,
        accumulate=training.accumulate,
        precision=training.precision,
        seed=seed,
        description=predictor.name,
    )


def _labelled_pixels(
    grounds: Sequence[Ground], predictor: Predictor, *, count: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Draw labelled pixels: features ``[N, bands]`` and labels ``[N]``, N at most ``count``."""
    draw = np.random.default_rng(seed)
    features, labels = [], []
    for ground in grounds:
        inputs = stack([ground.images(ground.box)], predictor.statistics)
        flat = ground.labels.ravel()
        labelled = np.flatnonzero(flat != NODATA)
        chosen = np.sort(draw.choice(labelled, size=min(len(labelled), count // len(grounds)), replace=False))
        stacked = pixel_features(*inputs, tuple(predictor.statistics))  # [1, bands, H, W]
        features.append(stacked[0].flatten(1).T[chosen])
        labels.append(torch.from_numpy(flat[chosen].astype(np.int64)))
    return torch.cat(features), torch.cat(labels)
