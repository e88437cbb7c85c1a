"""The tables of a comparison as cells of text, for the page and for the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from common.report import scores
from common.report.comparison import Comparison, Metric, Row, Test
from common.report.significance import LEVEL
from common.report.verdict import verdict


@dataclass(frozen=True)
class Cell:
    """Text of a table cell; ``mark`` stands out: the best of its column, or a significant difference."""

    text: str
    mark: bool = False


ABSENT = Cell("\N{EN DASH}")
_NBSP = "\N{NO-BREAK SPACE}"
# Blanks as wide as what they stand for: a mean without a spread stays in line with those that have one.
_BLANK = str.maketrans(
    dict.fromkeys("0123456789±", "\N{FIGURE SPACE}") | {".": "\N{PUNCTUATION SPACE}", " ": "\N{NO-BREAK SPACE}"}
)


def score_table(comparison: Comparison) -> tuple[list[str], list[list[Cell]]]:
    """Headings, and one row a model: name, role, scores, gain on the floor, parameters and times."""
    floor = scores.floor_row(comparison)
    columns = [_score_column(comparison.rows, metric) for metric in comparison.metrics]
    headings = ["Model", "Role", *(_heading(metric) for metric in comparison.metrics)]
    headings += [f"Gain{_NBSP}(%)", "Parameters", f"Fit{_NBSP}(s)", f"Predict{_NBSP}(s)"]
    rows = [
        [
            Cell(row.model),
            Cell(row.role),
            *(column[i] for column in columns),
            _gain(row, floor, comparison.metrics[0]),
            Cell(scores.count(row.parameters)),
            Cell(_duration(row.fit_seconds)),
            Cell(_duration(row.predict_seconds)),
        ]
        for i, row in enumerate(comparison.rows)
    ]
    return headings, rows


def difference_table(tests: tuple[Test, ...]) -> tuple[list[str], list[list[Cell]]]:
    """Headings, and one row a test; a difference that is significant after adjustment is marked."""
    headings = ["Model", "Against", "Difference in loss", "95% interval", "p", "p adjusted", "Blocks"]
    return headings, [_test_row(test) for test in tests]


def summary_text(comparison: Comparison) -> str:
    """The score table and the verdict as plain text for a terminal; the best of each column has a star."""
    headings, rows = score_table(comparison)
    body = [[cell.text + ("*" if cell.mark else " ") for cell in row] for row in rows]
    grid = [[heading + " " for heading in headings], *body]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = [
        " ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in grid
    ]
    rule = "-" * max(map(len, lines))
    sentences = [f"- {sentence}" for sentence in verdict(comparison)]
    return "\n".join([comparison.title, "", lines[0], rule, *lines[1:], "", *sentences]) + "\n"


def _heading(metric: Metric) -> str:
    return metric.label + {"lower": f"{_NBSP}↓", "higher": f"{_NBSP}↑", None: ""}[metric.better]


def _score_column(rows: tuple[Row, ...], metric: Metric) -> list[Cell]:
    means = [scores.mean(row, metric) for row in rows]
    known = [mean for mean in means if mean is not None]
    if not known:
        return [ABSENT] * len(rows)
    places = scores.decimals(known, metric)
    best = {"lower": min, "higher": max, None: lambda _: None}[metric.better](known)
    # Models that read the same are marked the same: a difference that is not shown is not a difference.
    best_text = None if best is None else scores.number(best, places)
    spreads = [scores.spread(row, metric) for row in rows]
    tails = ["" if spread is None else f" ± {scores.number(spread, places)}" for spread in spreads]
    blank = max(tails, key=len).translate(_BLANK)
    cells = []
    for mean, tail in zip(means, tails, strict=True):
        text = ABSENT.text if mean is None else scores.number(mean, places)
        cells.append(Cell(text + (tail or blank), text == best_text))
    return cells


def _gain(row: Row, floor: Row | None, metric: Metric) -> Cell:
    ours, theirs = scores.mean(row, metric), floor and scores.mean(floor, metric)
    if ours is None or theirs is None or row is floor:
        return ABSENT
    change = scores.gain(ours, theirs, metric)
    return ABSENT if change is None else Cell(f"{change:+.1f}")


def _test_row(test: Test) -> list[Cell]:
    size = max(abs(end) for end in (test.difference, test.low or 0.0, test.high or 0.0))
    places = scores.decimals([size], Metric("loss", "loss", digits=3))
    interval = ABSENT.text
    if test.low is not None and test.high is not None:
        interval = f"{test.low:+.{places}f} to {test.high:+.{places}f}"
    return [
        Cell(test.model),
        Cell(test.against),
        Cell(f"{test.difference:+.{places}f}"),
        Cell(interval),
        Cell(scores.probability(test.p)),
        Cell(scores.probability(test.p_adjusted), test.p_adjusted < LEVEL),
        Cell(str(test.blocks)),
    ]


def _duration(seconds: float) -> str:
    """Seconds to about three significant digits: all of a column in one unit, to be compared by eye."""
    if seconds < 1:
        return f"{seconds:.3f}" if seconds >= 0.001 else "< 0.001"
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:#.3g}"
