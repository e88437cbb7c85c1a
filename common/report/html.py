"""One HTML page of comparisons that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from common.files import write_text
from common.report.comparison import Comparison
from common.report.figures import cost_figure, score_figure
from common.report.table import difference_table, score_table
from common.report.verdict import verdict


def write_report(comparisons: Sequence[Comparison], path: Path, *, title: str) -> None:
    """Write comparisons as one HTML page with everything in it, plotly included (5 MB).

    The page asks nothing of any network, and its content-security policy lets it ask for nothing.

    Args:
        comparisons: What is to be shown, a section each.
        path: The page to write; it appears whole or not at all.
        title: Title of the page.

    Raises:
        UsageError: If ``path`` cannot be written.
    """
    write_text(path, render(comparisons, title=title))


def render(comparisons: Sequence[Comparison], *, title: str) -> str:
    """The page of :func:`write_report` as text."""
    environment = Environment(
        loader=PackageLoader("common.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The filter `tojson` escapes <, >, & and ' and, as ASCII, the line separators of JavaScript.
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    sections = [
        {
            "comparison": comparison,
            "verdict": verdict(comparison),
            "scores": score_table(comparison),
            "differences": difference_table(comparison.tests),
            "figures": [score_figure(comparison), cost_figure(comparison), *comparison.figures],
            "seeds": sorted({len(row.scores) for row in comparison.rows}),
        }
        for comparison in comparisons
    ]
    return environment.get_template("template.html").render(title=title, sections=sections, plotlyjs=get_plotlyjs())
