from __future__ import annotations

import pytest

from common.report import scores
from common.report.comparison import Metric, Row
from common.report.table import ABSENT, difference_table, score_table, summary_text

MSE = Metric("mse", "MSE")


def texts(row):
    # The blanks that stand for a missing spread are not looked at here.
    return [cell.text.rstrip() for cell in row]


def test_scores_are_those_given(make):
    comparison = make({"informer": (0.35, 0.37)}, {"ridge": (0.4,)}, {"naive": (0.5,)})
    headings, rows = score_table(comparison)
    assert [heading.replace("\N{NO-BREAK SPACE}", " ") for heading in headings] == [
        "Model", "Role", "MSE ↓", "MAE ↓", "Gain (%)", "Parameters", "Fit (s)", "Predict (s)"
    ]  # fmt: skip
    # The deviation of (0.35, 0.37) with n - 1 is 0.01 sqrt(2) = 0.01414.
    assert texts(rows[0]) == [
        "informer", "attention", "0.3600 ± 0.0141", "0.1800 ± 0.0071", "+28.0", "400,000", "340", "3.00"
    ]  # fmt: skip
    assert texts(rows[1]) == ["ridge", "baseline", "0.4000", "0.2000", "+20.0", "65,000", "28.0", "1.50"]
    assert texts(rows[2]) == ["naive", "floor", "0.5000", "0.2500", ABSENT.text, "0", "< 0.001", "0.100"]
    assert [[cell.mark for cell in row[2:4]] for row in rows] == [[True, True], [False, False], [False, False]]


def test_the_better_end_decides_what_is_marked(make):
    higher = make({"a": (0.7,)}, {"b": (0.8,)}, {"c": (0.8,)}, better="higher")
    assert [row[2].mark for row in score_table(higher)[1]] == [False, True, True]
    neither = make({"a": (0.7,)}, {"b": (0.8,)}, {"c": (0.5,)}, better=None)
    assert not any(cell.mark for row in score_table(neither)[1] for cell in row)


def test_missing_and_infinite_scores_are_shown_as_absent(make):
    comparison = make({"a": (float("inf"),)}, {"b": (0.8,)}, {"c": (0.9,)})
    rows = score_table(comparison)[1]
    assert texts(rows[0])[2:5] == [ABSENT.text] * 3
    assert rows[1][2].mark


def test_differences(make):
    tests = [("a", "b", -0.04, 0.003), ("a", "c", 0.0021, 0.4)]
    rows = difference_table(make({}, {}, {}, tests).tests)[1]
    assert texts(rows[0]) == ["a", "b", "-0.0400", "-0.0500 to -0.0300", "0.003", "0.003", "20"]
    assert texts(rows[1]) == ["a", "c", "+0.0021", "-0.0079 to +0.0121", "0.400", "0.400", "20"]
    assert [row[5].mark for row in rows] == [True, False]


def test_summary_is_aligned_and_ends_with_the_verdict(make):
    tests = [("informer", "ridge", -0.04, 0.003), ("informer", "naive", -0.14, 0.0004)]
    lines = summary_text(make({"informer": (0.35, 0.37)}, {"ridge": (0.4,)}, {"naive": (0.5,)}, tests)).splitlines()
    assert lines[0] == "Made up"
    heading, informer, ridge = lines[2], lines[4], lines[5]
    assert informer.index("0.3600 ±") == ridge.index("0.4000") == lines[6].index("0.5000")
    assert "0.0141*" in informer
    assert heading.endswith("Predict\N{NO-BREAK SPACE}(s)")
    assert informer.endswith("3.00")
    assert lines[8].startswith("- Attention is better here")


@pytest.mark.parametrize(
    ("values", "better", "expected"),
    [((0.3712, 120.0), "lower", 4), ((12.3, 105.0), "lower", 2), ((70.1, 3.0), "higher", 2), ((0.0,), "lower", 3)],
)
def test_decimals_follow_the_best_value(values, better, expected):
    assert scores.decimals(values, Metric("m", "m", better)) == expected


def test_gain():
    assert scores.gain(0.4, 0.5, MSE) == pytest.approx(20.0)
    assert scores.gain(0.6, 0.5, MSE) == pytest.approx(-20.0)
    assert scores.gain(0.6, 0.5, Metric("iou", "IoU", "higher")) == pytest.approx(20.0)
    assert scores.gain(0.6, 0.0, MSE) is None


def test_ranking():
    rows = [Row(name, "baseline", ({"mse": value},), 1, 1, 1) for name, value in (("a", 2.0), ("b", 1.0), ("c", 3.0))]
    assert [row.model for row in scores.ranked(rows, MSE)] == ["b", "a", "c"]
    assert [row.model for row in scores.ranked(rows, Metric("mse", "", "higher"))] == ["c", "a", "b"]
    assert scores.ranked(rows, MSE, "floor") == []


def test_short_numbers():
    assert [scores.seconds(value) for value in (0.034, 12.34, 276.0, 7560.0)] == [
        "0.034 s",
        "12.3 s",
        "4.6 min",
        "2.1 h",
    ]
    assert [scores.count(value) for value in (0, 12_345, 1_234_000, 2_500_000_000)] == [
        "0",
        "12,345",
        "1.23 M",
        "2.50 G",
    ]
    assert [scores.probability(value) for value in (0.0004, 0.0123, 1.0)] == ["< 0.001", "0.012", "1.000"]
