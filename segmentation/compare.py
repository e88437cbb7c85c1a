"""Baselines against attention on the same ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.files import atomic_folder
from common.progress import log
from common.report.comparison import FILE, Comparison, Metric, Role, Row, is_comparison
from common.report.html import write_report
from common.report.provenance import provenance
from common.report.significance import compare_all
from common.report.table import summary_text
from segmentation.classes import NODATA
from segmentation.config import ModelConfig, SegmentConfig
from segmentation.figures import comparison_figures
from segmentation.fit import Evaluation, evaluate, fit_model, write_run
from segmentation.metrics import Scores, block_errors, confusion_matrix, score
from segmentation.predictor import Predictor
from segmentation.prepare import Prepared, prepared

MAJORITY = "majority-class"
ROLES: dict[str, Role] = {"swin-fusion": "attention", "unet": "baseline", "pixel-boosting": "floor"}
METRICS = (
    Metric("mean_iou", "mean IoU", better="higher", digits=3),
    Metric("macro_f1", "macro F1", better="higher", digits=3),
    Metric("accuracy", "overall accuracy", better="higher", digits=3),
)
PROTOCOL = (
    "Each scene is cut into strips of {axis}; {guard} pixels between them belong to none, and each strip is predicted "
    "from its own pixels alone. All networks see the same random tiles in the same order, with the same statistics, "
    "class weights, optimiser and steps; validation chooses the weights, and the test strips are used for the scores "
    "alone. The floors are the class most frequent in training, and gradient boosting on single pixels. Means are over "
    "the classes that stand in the test labels. Tests compare the share of wrong pixels over squares of {block} pixels."
)


@dataclass(frozen=True)
class Contender:
    """A model of the comparison.

    Attributes:
        role: Its role.
        evaluations: On the test ground, one a seed.
        parameters: Number of trained parameters.
        fit_seconds: Of each fit.
    """

    role: Role
    evaluations: tuple[Evaluation, ...]
    parameters: int
    fit_seconds: tuple[float, ...]


def compare(config: SegmentConfig, folder: Path) -> str:
    """Train the model of a configuration and its baselines, and write report, figures as data, and runs.

    Args:
        config: The job.
        folder: Folder to write; one of an earlier comparison is replaced.

    Returns:
        The table and the verdict, as text.

    Raises:
        UsageError: If an input cannot be used, or ``folder`` holds something else.
    """
    models: dict[str, ModelConfig] = {config.model.kind: config.model, **config.compare.baselines}
    with atomic_folder(folder, partial(is_comparison, task="segment")) as target, prepared(config) as data:
        contenders = {name: _contend(name, model, data, config, target) for name, model in models.items()}
        contenders[MAJORITY] = _majority(data)
        comparison = _comparison(contenders, data, config)
        comparison.write(target / FILE)
        write_report([comparison], target / "report.html", title=comparison.title)
    return summary_text(comparison)


def _contend(name: str, model: ModelConfig, data: Prepared, config: SegmentConfig, target: Path) -> Contender:
    evaluations, seconds, parameters = [], [], 0
    for seed in config.compare.seeds:
        predictor, took = fit_model(
            name, model.model_dump(mode="json"), data, training=config.training, tile=config.tile, seed=seed
        )
        found = evaluate(predictor, data.grounds["test"])
        log.info("%s, seed %d: test mean IoU %.4f", name, seed, found.scores.mean_iou)
        evaluations.append(found)
        seconds.append(took)
        if seed == config.compare.seeds[0]:
            parameters = _size(predictor)
            scores: dict[str, Scores] = {
                "validation": evaluate(predictor, data.grounds["validation"]).scores,
                "test": found.scores,
            }
            run = target / "runs" / name
            run.mkdir(parents=True)
            write_run(run, predictor, data, config, scores=scores, seconds=took)
    return Contender(ROLES[model.kind], tuple(evaluations), parameters, tuple(seconds))


def _size(predictor: Predictor) -> int:
    """Trained numbers: parameters of a network, or leaf values of trees."""
    trained = sum(parameter.numel() for parameter in predictor.model.parameters())
    return trained or int(predictor.model.state_dict()["value"].count_nonzero())


def _majority(data: Prepared) -> Contender:
    """The class most frequent in training, everywhere."""
    counts = np.sum(
        [np.bincount(each.labels[each.labels != NODATA], minlength=254) for each in data.grounds["train"]], axis=0
    )
    grounds = data.grounds["test"]
    predicted = [np.full_like(ground.labels, counts.argmax()) for ground in grounds]
    pairs = zip(grounds, predicted, strict=True)
    confusion = np.sum([confusion_matrix(each.labels, made, len(data.classes)) for each, made in pairs], axis=0)
    return Contender("floor", (Evaluation(predicted, confusion, score(confusion), 0.0),), 0, (0.0,))


def _comparison(contenders: Mapping[str, Contender], data: Prepared, config: SegmentConfig) -> Comparison:
    names = [each.name for each in data.classes]
    attention = [name for name, each in contenders.items() if each.role == "attention"]
    floors = [name for name, each in contenders.items() if each.role == "floor"]
    floor = max(floors, key=lambda name: _mean_iou(contenders[name]))
    losses = {
        name: np.stack([_losses(found, data, config.compare.block) for found in each.evaluations])
        for name, each in contenders.items()
    }
    first = {name: each.evaluations[0] for name, each in contenders.items()}
    return Comparison(
        title="Land cover of " + ", ".join(scene.name for scene in config.data.scenes),
        task="segment",
        data=data.facts(),
        protocol=PROTOCOL.format(axis=config.split.axis, guard=config.split.guard, block=config.compare.block),
        metrics=METRICS,
        rows=tuple(_row(name, each, names) for name, each in contenders.items()),
        tests=compare_all(losses, attention, floor, block=1, seed=config.compare.seeds[0]),
        figures=comparison_figures(first, attention[0] if attention else floor, data),
        provenance=provenance(config.compare.seeds),
    )


def _mean_iou(contender: Contender) -> float:
    return float(np.mean([found.scores.mean_iou for found in contender.evaluations]))


def _row(name: str, contender: Contender, classes: list[str]) -> Row:
    scores = []
    for found in contender.evaluations:
        each = found.scores
        by_class = {f"iou {label}": float(iou) for label, iou in zip(classes, each.iou, strict=True) if iou == iou}
        means = {"mean_iou": each.mean_iou, "macro_f1": each.macro_f1, "accuracy": each.accuracy}
        scores.append({**means, **by_class})
    return Row(
        model=name,
        role=contender.role,
        scores=tuple(scores),
        parameters=contender.parameters,
        fit_seconds=float(np.mean(contender.fit_seconds)),
        predict_seconds=float(np.mean([found.seconds for found in contender.evaluations])),
    )


def _losses(found: Evaluation, data: Prepared, block: int) -> NDArray[np.float64]:
    """Wrong pixels of each square, over the mean number of labelled pixels: their mean is the error rate."""
    pairs = zip(data.grounds["test"], found.predicted, strict=True)
    squares = np.concatenate([block_errors(ground.labels, predicted, block) for ground, predicted in pairs])
    return squares[:, 0] / squares[:, 1].mean()
