"""What every forecaster must hold to, and what each is."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as SklearnRidge

from common.errors import ConfigError
from forecasting.covariates import fit_covariates
from forecasting.inputs import Inputs
from forecasting.models import MODELS, build
from forecasting.models.linear import PENALTIES, ridge_weights
from forecasting.requests import following
from forecasting.series.clock import clock
from forecasting.series.steps import infer_step
from forecasting.windows import Rows, Windows, origins_within

SMALL = {
    "informer": {"dim": 16, "heads": 2, "layers": 3, "patch": 4},
    "lstm": {"dim": 8, "layers": 2},
    "lstma": {"dim": 8, "layers": 2},
    "transformer": {"dim": 16, "heads": 2, "patch": 4},
    "tcn": {"dim": 8},
}
LOOKBACK, HORIZON = 30, 7
INPUTS_OF_MONTHS = Inputs(lookback=36, horizon=12)
INPUTS = Inputs(lookback=LOOKBACK, horizon=HORIZON)


@pytest.fixture(scope="module")
def windows(make_panel):
    generator = np.random.default_rng(0)
    hours = np.arange(400)
    values = np.sin(2 * np.pi * hours / 24) + 0.1 * generator.standard_normal(400)
    values[generator.random(400) < 0.1] = np.nan
    values[[10, 11, 40]] = np.nan
    panel = make_panel(values, values * 2 + 1)
    rows = Rows(panel, centre=np.zeros(2), scale=np.ones(2))

    def of(first, stop, batch_size=16):
        found = origins_within(
            panel, panel.starts[:-1] + first, panel.starts[:-1] + stop, lookback=LOOKBACK, horizon=HORIZON
        )
        return Windows(rows, *found, lookback=LOOKBACK, horizon=HORIZON, batch_size=batch_size)

    return of


def model(kind, seed=0):
    torch.manual_seed(seed)
    return build(kind, INPUTS, SMALL.get(kind, {})).eval()


def opened(kind, windows):
    """A solved model, no longer at its start, where networks add nothing to the last value or the floor."""
    made = model(kind)
    made.solve(windows(0, 320), windows(320, 400))
    open_up(made)
    return made


def open_up(made):
    with torch.no_grad():
        if hasattr(made, "gate"):
            made.gate.fill_(0.5)
        for parameter in made.parameters():
            if parameter.requires_grad and not parameter.any():  # zero at the start
                torch.nn.init.normal_(parameter, std=0.3)


def first(windows):
    return next(iter(windows))


@pytest.mark.parametrize("kind", MODELS)
class TestEveryModel:
    def test_shape_and_finite(self, kind, windows):
        batch = first(windows(0, 150))
        out = opened(kind, windows)(batch)
        assert out.shape == (16, HORIZON)
        assert torch.isfinite(out).all()

    def test_hidden_values_and_targets_have_no_influence(self, kind, windows):
        batch = first(windows(0, 150))
        made = opened(kind, windows)
        changed = batch._replace(
            values=torch.where(batch.observed, batch.values, 99.0), target=torch.full_like(batch.target, 99.0)
        )
        assert not batch.observed.all()
        assert torch.equal(made(batch), made(changed))

    def test_a_window_is_forecast_alike_alone_and_in_company(self, kind, windows):
        made = opened(kind, windows)
        together = torch.cat([made(batch) for batch in windows(0, 150, batch_size=16)])
        alone = torch.cat([made(batch) for batch in windows(0, 150, batch_size=1)])
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)

    def test_nothing_observed_is_still_an_answer(self, kind, windows):
        batch = first(windows(0, 150))
        empty = batch._replace(values=torch.zeros_like(batch.values), observed=torch.zeros_like(batch.observed))
        out = opened(kind, windows)(empty)
        assert torch.isfinite(out).all()

    def test_gradients_are_finite_where_nothing_is_observed_or_changes(self, kind, windows):
        made = opened(kind, windows).train()
        if not any(p.requires_grad for p in made.parameters()):
            pytest.skip("in closed form")
        batch = first(windows(0, 150))
        values, observed = torch.zeros_like(batch.values), batch.observed.clone()
        observed[0] = False  # one window without values; the others constant
        made(batch._replace(values=values, observed=observed)).sum().backward()
        for name, parameter in made.named_parameters():
            assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name

    def test_gradients_reach_every_trained_parameter(self, kind, windows):
        made = opened(kind, windows).train()
        trained = {name: p for name, p in made.named_parameters() if p.requires_grad}
        if not trained:
            pytest.skip("in closed form")
        made(first(windows(0, 150))).square().sum().backward()
        for name, parameter in trained.items():
            if name.endswith("key.bias"):
                continue  # the same for all keys, so that it cancels in the softmax
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name
            assert parameter.grad.abs().sum() > 0, name

    def test_shift_and_scale_of_a_window_carry_over(self, kind, windows):
        """Without a period table, forecasts follow the level of the window; those of scale-free models its spread."""
        settings = {**SMALL.get(kind, {}), **({} if kind == "seasonal-naive" else {"period_table": False})}
        torch.manual_seed(0)
        made = build(kind, Inputs(lookback=LOOKBACK, horizon=HORIZON), settings).eval()
        made.solve(windows(0, 320), windows(320, 400))
        open_up(made)
        batch = first(windows(0, 150))
        moved = batch._replace(values=(3.0 * batch.values + 7.0) * batch.observed)
        torch.testing.assert_close(made(moved), 3.0 * made(batch) + 7.0, atol=2e-4, rtol=2e-4)


def test_the_informer_starts_from_the_ridge_floor(windows):
    batch = first(windows(0, 150))
    informer, ridge = model("informer"), model("ridge")
    for made in (informer, ridge):
        made.solve(windows(0, 320), windows(320, 400))
    assert informer.gate == 0
    assert torch.equal(informer(batch), ridge(batch))
    assert not torch.equal(opened("informer", windows)(batch), ridge(batch))


def test_tokens_of_which_nothing_is_observed_are_not_attended_to(windows):
    batch = first(windows(0, 320))
    observed = batch.observed.clone()
    observed[:, 2:14] = False  # three whole tokens of four rows; the first token holds two rows
    hidden = batch._replace(values=batch.values * observed, observed=observed)
    phases = hidden.phases.clone()
    phases[:, 2:14] = torch.rand(12, 3)
    made = model("informer")
    open_up(made)
    assert torch.equal(made(hidden), made(hidden._replace(phases=phases)))


def test_ridge_is_the_solution_of_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 6, generator=generator, dtype=torch.float64) + 3
    y = x @ torch.randn(6, 2, generator=generator, dtype=torch.float64) + torch.randn(200, 2, generator=generator)
    check_x, check_y = x[:50] + 0.1, y[:50]
    weight, error = ridge_weights([(x[:120], y[:120]), (x[120:], y[120:])], [(check_x, check_y)], 6, 2)
    unit = float(x.square().mean())
    errors = {}
    for penalty in PENALTIES:
        reference = SklearnRidge(alpha=penalty * unit * 200, fit_intercept=False).fit(x, y)
        errors[penalty] = (np.square(reference.predict(check_x) - check_y.numpy()).sum(), reference)
    least, best = min(errors.values(), key=lambda pair: pair[0])
    np.testing.assert_allclose(weight.T, best.coef_, rtol=1e-6)
    np.testing.assert_allclose(error, least / 100, rtol=1e-6)


def test_ridge_uses_what_is_known_ahead_and_the_lookback_of_the_rest(make_panel):
    generator = np.random.default_rng(0)
    wind, load = generator.normal(size=(2, 900)).astype(np.float32)
    panel = make_panel(2.0 * wind + np.append(np.zeros(3), load[:-3]))  # of three rows before
    panel = replace(panel, numbers={"wind": wind, "load": load})
    covariates = fit_covariates(panel, past=["load"], future=["wind"], static=[], used=np.ones(900, dtype=bool))
    inputs = Inputs(lookback=12, horizon=3, covariates=covariates)
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=12, horizon=3)
    rows = inputs.rows(panel, np.zeros(1), np.ones(1))
    windows = Windows(rows, *found, lookback=12, horizon=3, batch_size=1000)
    made = build("ridge", inputs, {})
    made.solve(windows, windows)
    batch = next(iter(windows))
    assert (made(batch) - batch.target).abs().max() < 0.05
    blind = made(batch._replace(future_covariates=torch.zeros_like(batch.future_covariates)))
    assert (blind - batch.target).abs().mean() > 1


def test_seasonal_naive_finds_the_day_and_repeats_it_by_time(make_panel):
    hours = np.arange(24 * 20)
    values = np.sin(2 * np.pi * hours / 24) + np.cos(6 * np.pi * hours / 24)
    panel = make_panel(values)
    panel.values[-30] = np.nan  # missing where it would be looked up: its neighbour stands in
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=48, horizon=30)
    windows = Windows(rows, *found, lookback=48, horizon=30, batch_size=64)
    made = build("seasonal-naive", Inputs(lookback=48, horizon=30), {})
    made.solve(windows, windows)
    assert made.season == 24
    clean = next(iter(windows))
    torch.testing.assert_close(made(clean), clean.target, atol=1e-5, rtol=0)


def test_seasonal_naive_looks_one_year_back_whatever_the_length_of_the_months(make_panel):
    """The December of the year before may lie a little more than a mean year back."""
    times = np.arange("1949-01", "1960-01", dtype="datetime64[M]").astype("datetime64[ns]").astype(np.int64)
    years, months = np.divmod(np.arange(132), 12)
    values = 100.0 * (months + 1) + years
    panel = replace(make_panel(values), times=times, steps=(infer_step(times, clock("UTC", 0, 0)),))
    panel = panel.extended(following(panel, INPUTS_OF_MONTHS, 1, 12).times, {}, {})
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    model = build("seasonal-naive", INPUTS_OF_MONTHS, {})
    model.season.fill_(12.0)
    batch = rows.gather(torch.tensor([0]), torch.tensor([len(times)]), lookback=36, horizon=12)
    assert model(batch)[0].tolist() == [100.0 * month + 10 for month in range(1, 13)]


def test_seasonal_naive_without_a_season_is_the_last_value(make_panel):
    walk = np.cumsum(np.random.default_rng(0).standard_normal(300))
    panel = make_panel(walk)
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=48, horizon=3)
    windows = Windows(Rows(panel, centre=np.zeros(1), scale=np.ones(1)), *found, lookback=48, horizon=3, batch_size=500)
    made = build("seasonal-naive", Inputs(lookback=48, horizon=3), {})
    made.solve(windows, windows)
    batch = next(iter(windows))
    assert made.season == 0
    assert torch.equal(made(batch), batch.values[:, -1:].expand(-1, 3))


def test_the_period_table_holds_the_mean_of_each_phase(make_panel):
    values = np.tile(np.arange(24.0), 70) + np.repeat(np.arange(70) % 2, 24)  # the hour, and half a unit by the day
    panel = make_panel(values, start=5 * 3600 * 10**9)  # begins at five o'clock
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=30, horizon=6)
    windows = Windows(rows, *found, lookback=30, horizon=6, batch_size=64)
    made = build("ridge", Inputs(lookback=30, horizon=6), {})
    made.solve(windows, windows)
    which, bins = made.floor.period.cycle.tolist()
    assert (which, bins) == (1, 168)  # 70 days are ten weeks
    clock = (np.arange(1680) + 5 + 3 * 24) % 168  # 1 January 1970 was a Thursday
    expected = [values[clock == hour].mean() for hour in range(168)]
    np.testing.assert_allclose(made.floor.period.table[:168], expected, atol=1e-5)


def test_unknown_models_and_settings_are_refused():
    with pytest.raises(ConfigError, match="there is no model 'prophet'"):
        build("prophet", Inputs(lookback=1, horizon=1), {})
    with pytest.raises(ConfigError, match="do not belong to ridge"):
        build("ridge", Inputs(lookback=1, horizon=1), {"dim": 3})
