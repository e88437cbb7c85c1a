"""The model card of a run."""

from __future__ import annotations

from collections.abc import Mapping

from segmentation.config import SegmentConfig
from segmentation.metrics import Scores
from segmentation.predictor import Predictor


def card(
    predictor: Predictor,
    facts: Mapping[str, str],
    config: SegmentConfig,
    *,
    scores: Mapping[str, Scores],
    seconds: float,
) -> str:
    """Describe a trained model in Markdown: data, split, scores and limits."""
    parameters = sum(parameter.numel() for parameter in predictor.model.parameters())
    split = config.split
    lines = [
        f"# {predictor.name}",
        "",
        f"A land-cover model of kind `{predictor.options['kind']}` with {parameters:,} trained parameters, "
        f"fitted in {seconds:.0f} s.",
        "",
        "## Data",
        "",
        *(f"- {label}: {value}" for label, value in facts.items()),
        "- scenes: " + ", ".join(scene.name for scene in config.data.scenes),
        f"- split: strips of {split.axis} (train {split.train:g}, validation {split.validation:g}, test {split.test:g}"
        f", repeated {split.repeat}), {split.guard} pixels left out between strips",
        "",
        "## Scores",
        "",
        "| ground | mean IoU | macro F1 | accuracy |",
        "| --- | --- | --- | --- |",
        *(
            f"| {part} | {each.mean_iou:.4f} | {each.macro_f1:.4f} | {each.accuracy:.4f} |"
            for part, each in scores.items()
        ),
        "",
        "| class | " + " | ".join(f"IoU, {part}" for part in scores) + " |",
        "| --- | " + " | ".join("---" for _ in scores) + " |",
        *(
            f"| {each.name} | " + " | ".join(f"{scores[part].iou[index]:.4f}" for part in scores) + " |"
            for index, each in enumerate(predictor.classes)
        ),
        "",
        "## Limits",
        "",
        "- The validation score chose the weights; the test score is of ground that had no part in any choice.",
        "- Inputs must be in the units of the training files; nothing corrects another sensor, season or level.",
        "- Scores are over labelled pixels, and say nothing of unlabelled ground.",
        "",
    ]
    return "\n".join(lines)
