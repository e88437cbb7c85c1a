"""Plotly traces and layout as plain data, in the one look of all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# The colours of Okabe & Ito (2008), told apart with any colour vision.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
INK, GREY, GRID = "#222222", "#767676", "#E8E8E8"


def layout(x: str | None, y: str | None, *, height: int) -> dict[str, Any]:
    """The look shared by all figures; no width, since they fill their column."""

    def axis(label: str | None) -> dict[str, Any]:
        heading = {"title": {"text": plain(label), "standoff": 12}} if label else {}
        return {"gridcolor": GRID, "linecolor": "#AAAAAA", "zeroline": False, "automargin": True, **heading}

    return {
        "height": height,
        "margin": {"l": 12, "r": 16, "t": 44, "b": 12},
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        "xaxis": axis(x),
        "yaxis": axis(y),
    }


def markers(x: Sequence[Any], y: Sequence[Any], marker: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """A trace of points."""
    return _trace(x, y, mode="markers", marker=marker, **rest)


def lines(x: Sequence[Any], y: Sequence[Any] | np.ndarray, line: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """A trace of joined points."""
    return _trace(x, y, mode="lines", line=line, **rest)


def _trace(x: Sequence[Any], y: Sequence[Any] | np.ndarray, **rest: Any) -> dict[str, Any]:
    """A scatter trace; its texts are written out plainly, whatever they hold."""
    for key in ("name", "text"):
        if key in rest:
            rest[key] = plain(rest[key]) if isinstance(rest[key], str) else [plain(text) for text in rest[key]]
    return {"type": "scatter", "x": numbers(x, 9), "y": numbers(y), **rest}


def plain(text: str) -> str:
    """Text that plotly, which reads some HTML tags, shows as it is written."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def numbers(values: Sequence[Any] | np.ndarray, digits: int = 6) -> list[Any]:
    """JSON numbers of a few significant digits, None for what is missing; names and times stay text."""
    return [rounded(value, digits) for value in values]


def rounded(value: Any, digits: int = 6) -> Any:
    """One number (or text), see :func:`numbers`."""
    if value is None:
        return None
    if isinstance(value, str):
        return plain(value)
    return float(f"{float(value):.{digits}g}") if np.isfinite(value) else None


def iso_times(times: Sequence[Any] | np.ndarray) -> list[Any]:
    """ISO 8601 for datetimes (with their own offset dropped: plotly shows wall-clock times), else numbers."""
    array = np.asarray(times)
    if array.dtype == object:
        array = np.array([np.datetime64(time.replace(tzinfo=None), "s") for time in times])
    if array.dtype.kind == "M":
        return np.datetime_as_string(array, unit="s").tolist()
    return array.tolist()
