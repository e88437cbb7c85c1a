"""Forecasting jobs: from a configuration or a run folder to files, with plain arguments in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.bundle import MANIFEST, read_bundle
from common.config import load_config, validate
from common.errors import UsageError
from common.files import atomic_folder, atomic_path
from common.progress import log
from forecasting.config import DataConfig, ForecastConfig, ModelConfig
from forecasting.fit import Forecaster
from forecasting.series import Panel, read_panel
from forecasting.windows import Split, split_rows

COMPARISON = "comparison.json"


def load_job(path: Path, data: Path | None, overrides: tuple[str, ...]) -> ForecastConfig:
    """Read a configuration; a relative ``data.path`` in it is relative to the file.

    Args:
        path: The configuration file.
        data: File to read instead of the one the configuration names.
        overrides: Settings from the command line.

    Raises:
        InputError: If there is no such file.
        ConfigError: If the configuration breaks a rule.
    """
    if data is not None:
        overrides = (*overrides, f"data.path={data.absolute()}")
    job = load_config(path, ForecastConfig, overrides)
    resolved = job.data.model_copy(update={"path": path.parent / job.data.path})
    return job.model_copy(update={"data": resolved})


def run_fit(job: ForecastConfig, run: Path) -> None:
    """Fit the job's model and write its run folder.

    Raises:
        FarviewError: If the data cannot be used or the folder not be written.
    """
    from forecasting.card import model_card
    from forecasting.fit import fit

    with atomic_folder(run, MANIFEST) as folder:
        panel = _read(job.data)
        split = _split(job, panel)
        forecaster, record = fit(panel, split, seed=job.seed, **_model(job.model), **_common(job))
        card = model_card(forecaster, panel, split, record)
        forecaster.write(folder, data=_layout(job.data), card=card)


def run_predict(run: Path, data: Path, output: Path, *, horizon: int | None, levels: str | None) -> int:
    """Forecast a file with a run, and write forecasts and, if any, the list of failed series.

    Args:
        run: The run folder.
        data: File of series, laid out as the one the run was fitted on.
        output: File to write, ``.csv`` or ``.parquet``.
        horizon: Steps to forecast; None for as many as the run can.
        levels: Levels of the intervals, separated by commas; None for all of the run.

    Returns:
        Number of series that failed.

    Raises:
        FarviewError: If run, data or options cannot be used; nothing is written then.
    """
    from forecasting.predict import forecast

    if output.suffix not in (".csv", ".parquet"):
        raise UsageError(
            f"cannot write {output.suffix or 'this'}", where=output, remedy="a name ending in .csv or .parquet"
        )
    chosen = None if levels is None else _parse_levels(levels)
    bundle = read_bundle(run, "forecast")
    forecaster = Forecaster.from_bundle(bundle)
    layout = validate({**bundle.spec["data"], "path": data}, DataConfig, where=run / MANIFEST)
    result = forecast(forecaster, _read(layout), horizon=horizon, levels=chosen)

    failures = output.with_name(f"{output.name}.failed.csv")
    failures.unlink(missing_ok=True)  # of an earlier run
    if len(result.failed):
        with atomic_path(failures) as partial:
            result.failed.to_csv(partial, index=False)
        log.warning("%d series failed, see %s", len(result.failed), failures)
    with atomic_path(output) as partial:
        if output.suffix == ".csv":
            # Nine digits hold what a float32 network can tell apart.
            result.table.to_csv(partial, index=False, float_format="%.9g")
        else:
            result.table.to_parquet(partial, index=False)
    return len(result.failed)


def run_compare(job: ForecastConfig, output: Path) -> str:
    """Compare the job's models; write the report, its data and a run folder a model.

    Returns:
        The table and verdict as text.

    Raises:
        FarviewError: If the data cannot be used or the folder not be written.
    """
    from common.report.html import write_report
    from common.report.table import summary_text
    from forecasting.card import model_card
    from forecasting.compare import compare

    with atomic_folder(output, COMPARISON) as folder:
        panel = _read(job.data)
        split = _split(job, panel)
        models = list(map(_model, job.compare.models))
        name = panel.ids[0] if len(panel.ids) == 1 else f"{len(panel.ids)} series"
        title = f"Forecasting {name} of {job.data.path.name}"
        comparison, contenders = compare(panel, split, models, seeds=job.compare.seeds, title=title, **_common(job))
        comparison.write(folder / COMPARISON)
        write_report([comparison], folder / "report.html", title=title)
        for kind, contender in contenders.items():
            run = folder / "runs" / kind
            run.mkdir(parents=True)
            card = model_card(contender.forecasters[0], panel, split, contender.records[0])
            contender.forecasters[0].write(run, data=_layout(job.data), card=card)
    return summary_text(comparison)


def _read(data: DataConfig) -> Panel:
    return read_panel(
        data.path,
        layout=data.layout,
        id_name=data.id,
        time_name=data.time,
        target=data.target,
        channels=data.channels,
        time_format=data.time_format,
        timezone=data.timezone,
        duplicates=data.duplicates,
    )


def _split(job: ForecastConfig, panel: Panel) -> Split:
    return split_rows(panel, validation=job.split.validation, test=job.split.test)


def _layout(data: DataConfig) -> dict[str, Any]:
    """What a run must know of the data's layout to read more of it."""
    return data.model_dump(exclude={"path"}, mode="json")


def _model(model: ModelConfig) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "settings": model.model_dump(exclude={"kind", "learning_rate"}),
        "learning_rate": getattr(model, "learning_rate", None),
    }


def _common(job: ForecastConfig) -> dict[str, Any]:
    return {
        "lookback": job.lookback,
        "horizon": job.horizon,
        "levels": tuple(sorted(job.levels)),
        "training": job.training.model_dump(),
    }


def _parse_levels(text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError as error:
        raise UsageError(f"{text!r} is not a list of numbers", where="--levels", remedy="--levels 80,95") from error
