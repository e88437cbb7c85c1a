"""Figures of a report as plain plotly data: no plotly is needed to make them, only to draw them."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.errors import ShapeError
from common.report import scores
from common.report.comparison import Comparison, Figure, Metric, Role, Row
from common.report.plotting import GREY, INK, PALETTE, iso_times, layout, lines, markers, numbers, plain, rounded

# Roles differ in shape as well as in colour.
_ROLES: dict[Role, tuple[str, str]] = {
    "attention": (PALETTE[0], "circle"),
    "baseline": (PALETTE[1], "square"),
    "floor": (GREY, "diamond"),
}


def score_figure(comparison: Comparison) -> Figure:
    """The primary metric of each model, the best at the top: every seed, their mean, and the floor as a line."""
    metric = comparison.metrics[0]
    ranking = scores.ranked(comparison.rows, metric)
    data: list[dict[str, Any]] = []
    for role, (colour, symbol) in _ROLES.items():
        rows = [row for row in ranking if row.role == role]
        if not rows:
            continue
        values = [scores.values(row, metric) for row in rows]
        models = [row.model for row, seeds in zip(rows, values, strict=True) for _ in seeds]
        small = {"color": colour, "size": 7, "symbol": symbol, "opacity": 0.45}
        large = {"color": colour, "size": 13, "symbol": symbol, "line": {"color": "white", "width": 1}}
        data.append(
            markers([value for seeds in values for value in seeds], models, small, name="one seed", showlegend=False)
        )
        means = [scores.mean(row, metric) for row in rows]
        data.append(markers(means, [row.model for row in rows], large, name=role))
    look = layout(metric.label, None, height=150 + 34 * len(ranking))
    # Categories are drawn from the bottom up.
    look["yaxis"] |= {"categoryorder": "array", "categoryarray": [plain(row.model) for row in reversed(ranking)]}
    floor = scores.floor_row(comparison)
    caption = "Large marks are means over seeds, small ones single seeds."
    if floor is not None:
        at = rounded(scores.mean(floor, metric))
        line = {"color": GREY, "width": 1.5, "dash": "dash"}
        look["shapes"] = [{"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}]
        caption += f" The dashed line is the floor, {floor.model}."
    if metric.better is not None:
        caption += f" {'Left' if metric.better == 'lower' else 'Right'} is better."
    return Figure(f"{metric.label} of each model", caption, {"data": data, "layout": look})


def cost_figure(comparison: Comparison) -> Figure:
    """The primary metric against the time of one fit, and the models that none beats on both."""
    metric = comparison.metrics[0]
    ranking = scores.ranked(comparison.rows, metric)
    data: list[dict[str, Any]] = []
    frontier = _frontier(ranking) if metric.better is not None else []
    if frontier:
        x, y = zip(*[(_fit_seconds(row), scores.mean(row, metric)) for row in frontier], strict=True)
        line = {"color": "#BBBBBB", "width": 1.5, "dash": "dot"}
        data.append(lines(x, y, line, name="not beaten on both", hoverinfo="skip"))
    side = {row.model: _label_side(row, ranking, metric) for row in ranking}
    for role, (colour, symbol) in _ROLES.items():
        rows = [row for row in ranking if row.role == role]
        if not rows:
            continue
        marker = {"color": colour, "size": 12, "symbol": symbol, "line": {"color": "white", "width": 1}}
        text = {"text": [row.model for row in rows], "textposition": [side[row.model] for row in rows]}
        x, y = [_fit_seconds(row) for row in rows], [scores.mean(row, metric) for row in rows]
        data.append(markers(x, y, marker, name=role, **text) | {"mode": "markers+text", "cliponaxis": False})
    look = layout("time of one fit (s)", metric.label, height=420)
    look["xaxis"] |= {
        "type": "log",
        "dtick": 1,
        "tickformat": ",~g",
        "range": _log_range([_fit_seconds(row) for row in ranking]),
    }
    corner = {"lower": " The lower left is better and cheaper.", "higher": " The upper left is better and cheaper."}
    caption = "Means over seeds. The dotted line joins the models that no other beats on both score and time."
    caption += corner.get(metric.better or "", "")
    return Figure(f"{metric.label} against cost", caption, {"data": data, "layout": look})


def forecast_figure(
    history_times: Sequence[Any] | np.ndarray,
    history: np.ndarray,
    times: Sequence[Any] | np.ndarray,
    actual: np.ndarray | None,
    forecasts: Mapping[str, np.ndarray],
    interval: tuple[np.ndarray, np.ndarray] | None,
    title: str,
    caption: str,
    *,
    label: str = "value",
    interval_name: str = "interval",
) -> Figure:
    """Forecasts of one series from one origin.

    Args:
        history_times: Times of the history, ``[L]``: datetimes, or numbers.
        history: Values up to the origin, ``[L]``; NaN where missing.
        times: Times of the forecast, ``[H]``.
        actual: What came, ``[H]``, or None.
        forecasts: Forecast by model, each ``[H]``; the first is the one in question and the interval's.
        interval: Lower and upper end, each ``[H]``, or None.
        title: Heading.
        caption: What to see.
        label: Name of the value axis, with the unit.
        interval_name: Name of the interval, with its level.
    """
    past, ahead = iso_times(history_times), iso_times(times)
    data = [lines(past, history, {"color": GREY, "width": 1.5}, name="history")]
    if interval is not None:
        edge = {"color": PALETTE[0], "width": 0}
        data.append(lines(ahead, interval[0], edge, name="lower end", showlegend=False, hoverinfo="skip"))
        fill = {"fill": "tonexty", "fillcolor": "rgba(0,114,178,0.18)"}
        data.append(lines(ahead, interval[1], edge, name=interval_name, hoverinfo="skip") | fill)
    if actual is not None:
        data.append(lines(ahead, actual, {"color": INK, "width": 2}, name="actual"))
    for i, (name, values) in enumerate(forecasts.items()):
        dash = ("solid", "dash", "dot", "dashdot", "longdash")[i % 5]
        line = {"color": PALETTE[i % len(PALETTE)], "width": 2, "dash": dash}
        data.append(lines(ahead, values, line, name=name))
    look = layout("time", label, height=400) | {"hovermode": "x unified"}
    return Figure(title, caption, {"data": data, "layout": look})


def map_figure(
    panels: Mapping[str, np.ndarray], names: Sequence[str], colours: Sequence[str], *, title: str, caption: str
) -> Figure:
    """Images and class maps of one place, side by side, that zoom together.

    Args:
        panels: By heading: an image ``[rows, cols, 3]`` or class numbers ``[rows, cols]``, uint8, all of one
            size; thinned by the caller to about the pixels shown (some 400 a side). Numbers beyond
            ``names``, such as nodata 255, are transparent.
        names: Class names, ``[C]``.
        colours: Class colours as ``#RRGGBB``, ``[C]``.
        title: Heading.
        caption: What to see.

    Raises:
        ShapeError: If the panels differ in size or are not uint8, or names and colours differ in number.
    """
    sizes = {panel.shape[:2] for panel in panels.values()}
    if len(sizes) != 1 or any(panel.dtype != np.uint8 for panel in panels.values()):
        raise ShapeError(f"the panels must be uint8 and of one size, got sizes {sorted(sizes)}", where=title)
    if len(names) != len(colours):
        raise ShapeError(f"{len(names)} class names but {len(colours)} colours", where=title)
    (rows, cols), gap = sizes.pop(), 0.02
    width = (1 + gap) / len(panels) - gap
    look = layout(None, None, height=int(min(620, max(260, 90 + 940 * width * rows / cols))))
    data, look["annotations"] = [], []
    for i, (heading, panel) in enumerate(panels.items()):
        axis = "" if i == 0 else str(i + 1)
        left = i * (width + gap)
        data.append({"type": "image", "source": _png(panel, colours), "hoverinfo": "skip", "zsmooth": False})
        data[-1] |= {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        # Square pixels are asked for once, in the first panel: the others match its axes.
        bare = {"visible": False, "constrain": "domain"}
        across = {"domain": [round(left, 4), round(left + width, 4)], "range": [-0.5, cols - 0.5]}
        down = {"anchor": f"x{axis}", "range": [rows - 0.5, -0.5], "constraintoward": "top"}
        look[f"xaxis{axis}"] = bare | across | ({"matches": "x"} if i else {})
        look[f"yaxis{axis}"] = bare | down | ({"matches": "y", "scaleanchor": False} if i else {"scaleanchor": "x"})
        heading_at = {"xref": f"x{axis} domain", "yref": f"y{axis} domain", "x": 0, "y": 1, "yanchor": "bottom"}
        look["annotations"].append({"text": plain(heading), "showarrow": False, "xanchor": "left"} | heading_at)
    for name, colour in zip(names, colours, strict=True):
        marker = {"color": colour, "size": 12, "symbol": "square", "line": {"color": GREY, "width": 0.5}}
        data.append(markers([None], [None], marker, name=name))  # an entry of the legend, nothing drawn
    look["legend"] |= {"y": -0.02, "yanchor": "top", "itemclick": False, "itemdoubleclick": False}
    return Figure(title, caption, {"data": data, "layout": look})


def matrix_figure(counts: np.ndarray, names: Sequence[str], *, title: str, caption: str) -> Figure:
    """A confusion matrix in percent of each true class.

    Args:
        counts: Pixels by true class (row) and predicted class (column), ``[C, C]``.
        names: Class names, ``[C]``.
        title: Heading.
        caption: What to see.

    Raises:
        ShapeError: If the counts do not fit the names.
    """
    counts = np.asarray(counts)
    if counts.shape != (len(names), len(names)):
        raise ShapeError(f"counts {counts.shape} do not fit {len(names)} classes", where=title)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, 100 * counts / np.maximum(totals, 1), np.nan)
    labels = [plain(name) for name in names]
    data = {
        "type": "heatmap", "x": labels, "y": labels, "z": [numbers(row, 3) for row in shares],
        "customdata": counts.tolist(), "zmin": 0, "zmax": 100, "xgap": 1, "ygap": 1,
        "colorscale": [[0, "#F7FBFF"], [0.5, "#6BAED6"], [1, "#08306B"]],
        "texttemplate": "%{z:.0f}", "colorbar": {"title": {"text": "% of true class"}, "thickness": 12},
        "hovertemplate": "true %{y}<br>predicted %{x}<br>%{z:.1f}% (%{customdata:,} pixels)<extra></extra>",
    }  # fmt: skip
    look = layout("predicted class", "true class", height=200 + 42 * len(names))
    look["yaxis"]["autorange"] = "reversed"
    return Figure(title, caption, {"data": [data], "layout": look})


def _png(panel: np.ndarray, colours: Sequence[str]) -> str:
    """A panel as a PNG in a data URI; class maps with a palette, one byte a pixel before compression."""
    from PIL import Image

    image = Image.fromarray(panel)
    if panel.ndim == 2:
        image.putpalette(bytes.fromhex("".join(colour.lstrip("#") for colour in colours)).ljust(768, b"\xff"))
    buffer = io.BytesIO()
    transparent = {"transparency": bytes([255] * len(colours)).ljust(256, b"\x00")} if panel.ndim == 2 else {}
    image.save(buffer, format="PNG", optimize=True, **transparent)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _frontier(ranking: Sequence[Row]) -> list[Row]:
    """The models that no other beats on both score and fit time, the fastest first."""
    fastest, kept = np.inf, []
    for row in ranking:  # best score first: a model stays if it is faster than all better ones
        if row.fit_seconds < fastest:
            fastest = row.fit_seconds
            kept.append(row)
    return kept[::-1]


def _fit_seconds(row: Row) -> float:
    """Fit time on a logarithmic axis, where what takes next to nothing stands at a millisecond."""
    return max(row.fit_seconds, 1e-3)


def _label_side(row: Row, rows: Sequence[Row], metric: Metric) -> str:
    """Above or below its mark: away from the mark that is nearest along the time axis."""
    others = [other for other in rows if other is not row]
    if not others:
        return "top center"
    nearest = min(others, key=lambda other: abs(np.log(_fit_seconds(other) / _fit_seconds(row))))
    return "top center" if (scores.mean(row, metric) or 0) >= (scores.mean(nearest, metric) or 0) else "bottom center"


def _log_range(values: Sequence[float]) -> list[float]:
    low, high = float(np.log10(min(values, default=1.0))), float(np.log10(max(values, default=1.0)))
    margin = max(0.4, 0.13 * (high - low))  # room for the labels
    return [round(low - margin, 3), round(high + margin, 3)]
