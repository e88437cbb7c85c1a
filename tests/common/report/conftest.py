from __future__ import annotations

from collections.abc import Callable

import pytest

from common.report.comparison import Comparison, Metric, Row, Test


@pytest.fixture
def make() -> Callable[..., Comparison]:
    """Build a comparison from scores, one tuple of seeds a model, and tests given as (a, b, difference, p)."""

    def build(
        attention: dict[str, tuple[float, ...]],
        baselines: dict[str, tuple[float, ...]],
        floors: dict[str, tuple[float, ...]],
        tests: list[tuple[str, str, float, float]] = (),
        better: str | None = "lower",
        blocks: int = 20,
        **rest: object,
    ) -> Comparison:
        cost = {"attention": (400_000, 340.0, 3.0), "baseline": (65_000, 28.0, 1.5), "floor": (0, 0.0, 0.1)}
        groups = {"attention": attention, "baseline": baselines, "floor": floors}
        rows = tuple(
            Row(name, role, tuple({"mse": seed, "mae": seed / 2} for seed in seeds), *cost[role])
            for role, models in groups.items()
            for name, seeds in models.items()
        )
        return Comparison(
            **{
                "title": "Made up",
                "task": "forecast",
                "data": {"Series": "7"},
                "protocol": "Every window counted.",
                "metrics": (Metric("mse", "MSE", better), Metric("mae", "MAE", better)),
                "rows": rows,
                "tests": tuple(Test(a, b, d, d - 0.01, d + 0.01, p, p, blocks) for a, b, d, p in tests),
                "provenance": {"Command": "farview forecast compare made-up.yaml"},
            }
            | rest
        )

    return build
