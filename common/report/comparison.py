"""What a comparison found, as plain data that a report renders and a script can read."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from common.files import write_json

Role = Literal["attention", "baseline", "floor"]


FILE = "comparison.json"


@dataclass(frozen=True)
class Metric:
    """One column of the table.

    Attributes:
        name: Key in :attr:`Row.scores`.
        label: Heading, with the unit.
        better: Which direction is better; ``None`` for a figure that has no better end (coverage).
        digits: Significant digits shown.
    """

    name: str
    label: str
    better: Literal["lower", "higher"] | None = "lower"
    digits: int = 4


@dataclass(frozen=True)
class Row:
    """One model.

    Attributes:
        model: Its name.
        role: Attention model, baseline, or the floor that everything is held against.
        scores: One dictionary a seed, metric name to value; a score that is missing or not finite counts as
            absent, and the verdict says so.
        parameters: Number of trained parameters.
        fit_seconds: Wall-clock time of one fit, mean over seeds.
        predict_seconds: Wall-clock time to predict the test set, mean over seeds.
    """

    model: str
    role: Role
    scores: tuple[dict[str, float], ...]
    parameters: int
    fit_seconds: float
    predict_seconds: float


@dataclass(frozen=True)
class Test:
    """A paired test of one model against another on the primary metric's losses.

    Attributes:
        model: The model in question.
        against: The model it is held against.
        difference: Mean loss of ``model`` minus mean loss of ``against``; negative: ``model`` is better.
        low: Lower end of the 95% interval of the difference; ``None`` where there are too few blocks for one.
        high: Upper end.
        p: Two-sided p-value.
        p_adjusted: The same, adjusted by Holm over all tests of the comparison.
        blocks: Number of independent blocks the test rests on.
    """

    __test__ = False  # not a pytest class

    model: str
    against: str
    difference: float
    low: float | None
    high: float | None
    p: float
    p_adjusted: float
    blocks: int


@dataclass(frozen=True)
class Figure:
    """A plotly figure.

    Attributes:
        title: Heading.
        caption: One or two sentences on what to see.
        plotly: ``{"data": [...], "layout": {...}}`` as plain JSON data.
    """

    title: str
    caption: str
    plotly: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Baselines against attention on one data set.

    Attributes:
        title: Heading of the section.
        task: ``forecast`` or ``segment``.
        data: Facts on the data, label to value, in the order to be shown.
        protocol: How it was split and scored, in sentences.
        metrics: Columns; the first is the primary one, that the tests and the verdict are about.
        rows: Models, in the order to be shown.
        tests: Paired tests.
        figures: Figures.
        provenance: Command, date, machine, seeds, versions: label to value.
    """

    title: str
    task: Literal["forecast", "segment"]
    data: dict[str, str]
    protocol: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    tests: tuple[Test, ...] = ()
    figures: tuple[Figure, ...] = ()
    provenance: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write as JSON, to be read back by :meth:`read`; scores that are not finite are left out."""
        tree = asdict(self)
        for row in tree["rows"]:
            row["scores"] = [
                {name: score for name, score in scores.items() if math.isfinite(score)} for scores in row["scores"]
            ]
        write_json(path, tree)

    @classmethod
    def read(cls, path: Path) -> Comparison:
        """Read what :meth:`write` wrote."""
        import json

        tree = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            title=tree["title"],
            task=tree["task"],
            data=tree["data"],
            protocol=tree["protocol"],
            metrics=tuple(Metric(**metric) for metric in tree["metrics"]),
            rows=tuple(Row(**{**row, "scores": tuple(row["scores"])}) for row in tree["rows"]),
            tests=tuple(Test(**test) for test in tree["tests"]),
            figures=tuple(Figure(**figure) for figure in tree["figures"]),
            provenance=tree["provenance"],
        )


def is_comparison(folder: Path, task: str) -> bool:
    """Whether a folder holds a comparison of that task, in its file :data:`FILE`."""
    try:
        return Comparison.read(folder / FILE).task == task
    except (OSError, ValueError, KeyError, TypeError):
        return False
