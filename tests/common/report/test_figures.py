from __future__ import annotations

import base64
import io
import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from PIL import Image

from common.errors import ShapeError
from common.report.figures import cost_figure, forecast_figure, map_figure, matrix_figure, score_figure


def valid(figure):
    """The figure's data, after plotly's own schema accepted it and it went through JSON unchanged."""
    go.Figure(figure.plotly)
    assert json.loads(json.dumps(figure.plotly, allow_nan=False)) == figure.plotly
    return figure.plotly


def test_scores_show_each_seed_the_means_and_the_floor(make):
    plotly = valid(score_figure(make({"informer": (0.35, 0.37)}, {"ridge": (0.4,)}, {"naive": (0.5,)})))
    seeds, means = plotly["data"][:2]
    assert (seeds["x"], seeds["y"]) == ([0.35, 0.37], ["informer", "informer"])
    assert (means["x"], means["y"]) == ([0.36], ["informer"])
    assert [trace["name"] for trace in plotly["data"][1::2]] == ["attention", "baseline", "floor"]
    assert plotly["layout"]["shapes"][0]["x0"] == 0.5
    assert plotly["layout"]["yaxis"]["categoryarray"] == ["naive", "ridge", "informer"]
    assert plotly["layout"]["xaxis"]["title"]["text"] == "MSE"


def test_cost_joins_the_models_that_none_beats(make):
    figure = cost_figure(make({"informer": (0.45,)}, {"ridge": (0.4,)}, {"naive": (0.5,)}))
    plotly = valid(figure)
    # The informer takes longer than ridge and is worse; the floor takes no time, drawn at a millisecond.
    assert (plotly["data"][0]["x"], plotly["data"][0]["y"]) == ([0.001, 28.0], [0.5, 0.4])
    assert plotly["layout"]["xaxis"]["type"] == "log"
    assert "lower left" in figure.caption


def test_figures_without_a_single_score_still_draw(make):
    empty = make({"informer": (float("nan"),)}, {}, {})
    valid(score_figure(empty))
    valid(cost_figure(empty))


def test_names_are_shown_as_written(make):
    plotly = valid(score_figure(make({"<b>x</b> & y": (0.35,)}, {}, {})))
    assert plotly["data"][1]["y"] == ["&lt;b&gt;x&lt;/b&gt; &amp; y"] == plotly["layout"]["yaxis"]["categoryarray"]


def forecast(times, history_times=None):
    history = np.array([1.0, np.nan, 3.0])
    ahead = np.array([4.0, 5.123456789])
    return forecast_figure(
        times[:3] if history_times is None else history_times, history, times[3:], ahead + 1,
        {"informer": ahead, "ridge": ahead - 1}, (ahead - 0.5, ahead + 0.5), "Title", "Caption",
        label="load (MW)", interval_name="80% interval",
    )  # fmt: skip


def test_forecast_values_times_and_gaps():
    plotly = valid(forecast(np.arange("2020-01-01", "2020-01-06", dtype="datetime64[D]")))
    by_name = {trace["name"]: trace for trace in plotly["data"]}
    assert list(by_name) == ["history", "lower end", "80% interval", "actual", "informer", "ridge"]
    assert by_name["history"]["y"] == [1.0, None, 3.0]
    assert by_name["history"]["x"][0] == "2020-01-01T00:00:00"
    assert by_name["informer"]["x"] == ["2020-01-04T00:00:00", "2020-01-05T00:00:00"]
    assert by_name["informer"]["y"] == [4.0, 5.12346]
    assert by_name["lower end"]["y"] == [3.5, 4.62346]
    assert by_name["80% interval"]["fill"] == "tonexty"
    assert plotly["layout"]["yaxis"]["title"]["text"] == "load (MW)"


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2020-01-01", periods=5),
        pd.date_range("2020-01-01", periods=5, tz="Asia/Tokyo"),
        pd.Series(pd.date_range("2020-01-01", periods=5, tz="UTC")),
        [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=i) for i in range(5)],
    ],
)
def test_forecast_times_of_any_kind_are_wall_clock_times(times):
    plotly = valid(forecast(times))
    assert plotly["data"][0]["x"] == ["2020-01-01T00:00:00", "2020-01-02T00:00:00", "2020-01-03T00:00:00"]


def test_forecast_times_may_be_numbers():
    assert valid(forecast(np.arange(1_234_567, 1_234_572)))["data"][0]["x"] == [1_234_567, 1_234_568, 1_234_569]


def decoded(trace):
    return Image.open(io.BytesIO(base64.b64decode(trace["source"].removeprefix("data:image/png;base64,"))))


def test_maps_hold_the_pixels_given():
    image = np.random.default_rng(0).integers(0, 255, (4, 6, 3), dtype=np.uint8)
    classes = np.array([[0, 1, 1], [255, 0, 1]], dtype=np.uint8).repeat(2, axis=0).repeat(2, axis=1)
    colours = ["#FF0000", "#0000FF"]
    plotly = valid(map_figure({"image": image, "labels": classes}, ["a", "b"], colours, title="T", caption="C"))
    assert np.array_equal(np.asarray(decoded(plotly["data"][0]).convert("RGB")), image)
    rgba = np.asarray(decoded(plotly["data"][1]).convert("RGBA"))[::2, ::2]
    assert rgba[0].tolist() == [[255, 0, 0, 255], [0, 0, 255, 255], [0, 0, 255, 255]]
    assert rgba[1, 0, 3] == 0  # nodata is transparent
    assert [(trace["name"], trace["marker"]["color"]) for trace in plotly["data"][2:]] == [
        ("a", "#FF0000"), ("b", "#0000FF")
    ]  # fmt: skip
    assert plotly["layout"]["xaxis2"]["matches"] == "x"
    assert plotly["layout"]["xaxis2"]["domain"][1] == pytest.approx(1.0)


def test_maps_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="one size"):
        map_figure({"a": np.zeros((2, 2), np.uint8), "b": np.zeros((2, 3), np.uint8)}, [], [], title="T", caption="C")
    with pytest.raises(ShapeError, match="uint8"):
        map_figure({"a": np.zeros((2, 2))}, [], [], title="T", caption="C")
    with pytest.raises(ShapeError, match="1 class names but 0 colours"):
        map_figure({"a": np.zeros((2, 2), np.uint8)}, ["a"], [], title="T", caption="C")


def test_matrix_is_in_percent_of_the_true_class():
    plotly = valid(matrix_figure(np.array([[3, 1], [0, 0]]), ["water", "land"], title="T", caption="C"))
    assert plotly["data"][0]["z"] == [[75.0, 25.0], [None, None]]
    assert plotly["data"][0]["customdata"] == [[3, 1], [0, 0]]
    with pytest.raises(ShapeError, match="do not fit 3 classes"):
        matrix_figure(np.zeros((2, 2)), ["a", "b", "c"], title="T", caption="C")
