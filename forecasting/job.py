"""Forecasting jobs: from a configuration or a run folder to files, with plain arguments in between."""

from __future__ import annotations

import json
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from common.bundle import MANIFEST, is_run, read_bundle
from common.config import apply_override, load_config, validate
from common.errors import InputError, UsageError
from common.files import atomic_folder, atomic_path, check_output, existing_file, sha256
from common.progress import log
from common.report.comparison import FILE, is_comparison
from forecasting.config import AuditConfig, DataConfig, ForecastConfig, LayoutConfig, ModelConfig, period_length
from forecasting.covariates import Covariate, fit_covariates
from forecasting.fit import Forecaster
from forecasting.inputs import Inputs
from forecasting.models import build
from forecasting.requests import read_requests
from forecasting.series.panel import Panel
from forecasting.series.read import read_panel
from forecasting.spec import RunSpec
from forecasting.windows import Split, before, has_values, split_rows

READING = ("time_format", "timezone", "missing", "encoding", "separator", "decimal")


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
        overrides = (*overrides, f"data.path={json.dumps(str(data.absolute()))}")  # quoted, as overrides are YAML
    job = load_config(path, ForecastConfig, overrides)
    resolved = job.data.model_copy(update={"path": path.parent / job.data.path})
    return job.model_copy(update={"data": resolved})


def run_audit(path: Path, overrides: tuple[str, ...], *, as_json: bool, suggest: Path | None) -> str:
    """Audit a file.

    Args:
        path: The file.
        overrides: What is known of it, as ``data.key=value``.
        as_json: Whether to give JSON instead of a table.
        suggest: Where to write a configuration, if anywhere.

    Returns:
        The text to print.

    Raises:
        FarviewError: If the file or an override cannot be used, or the configuration not be written.
    """
    from forecasting.audit.run import audit
    from forecasting.audit.write import as_config, as_text

    stated = {}
    if overrides:
        tree: dict[str, Any] = {"data": {"path": str(path)}}
        for override in overrides:
            apply_override(tree, override)
        known = validate(tree, AuditConfig, where="--set").data
        stated = known.model_dump(exclude={"path"}, exclude_unset=True, mode="json")
    found = audit(path, stated)
    if suggest is not None:
        check_output(suggest, {"the data": path})
        with atomic_path(suggest) as scratch:
            scratch.write_text(as_config(found, suggest), encoding="utf-8")
    return json.dumps(found.as_dict(), indent=2, ensure_ascii=False) if as_json else as_text(found)


def run_fit(job: ForecastConfig, run: Path, *, resume: bool) -> None:
    """Fit the job's model and write its run folder.

    The state of the training is kept beside the folder, in ``RUN.checkpoint``, until that is written.

    Args:
        job: The job.
        run: The run folder.
        resume: Whether to go on from a state that is kept.

    Raises:
        FarviewError: If the data cannot be used or the folder not be written, or another training is kept.
    """
    from common.checkpoint import Checkpoint
    from forecasting.card import model_card
    from forecasting.fit import fit

    with atomic_folder(run, partial(is_run, kind="forecast")) as folder:
        panel, split = _prepared(job)
        checkpoint = Checkpoint(run.with_name(f"{run.name}.checkpoint"), _made_of(job))
        forecaster, record = fit(
            panel, split, seed=job.seed, checkpoint=checkpoint, resume=resume,
            **_model(job.model), **_common(job, panel, split),
        )  # fmt: skip
        card = model_card(forecaster, panel, split, record)
        forecaster.write(folder, data=_layout(job.data), card=card)
    checkpoint.remove()


def run_predict(
    run: Path, data: Path, output: Path, *, at: Path | None, horizon: int | None, levels: str | None
) -> int:
    """Forecast a file with a run, and write forecasts and, if any, the list of failed series.

    Args:
        run: The run folder.
        data: File of series, laid out as the one the run was fitted on.
        output: File to write, ``.csv`` or ``.parquet``.
        at: File of the times to forecast, with what is known of them; None for the times that follow.
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
    if at is not None and horizon is not None:
        raise UsageError("--at asks for times of its own", where="--horizon", remedy="one of the two")
    chosen = None if levels is None else _parse_levels(levels)
    forecaster, layout = load_run(run)
    failures = output.with_name(f"{output.name}.failed.csv")
    for path in (output, failures):
        check_output(path, {"the data": data, "the run": run, **({} if at is None else {"the times to forecast": at})})
    requests = None
    if at is not None:
        requests = partial(
            read_requests, existing_file(at, "the times to forecast"), inputs=forecaster.inputs, usual=forecaster.step,
            wide=layout.layout == "wide", resampled=layout.resample is not None,
            **layout.model_dump(include=set(READING)),
        )  # fmt: skip
    result = forecast(forecaster, _read(data, layout), horizon=horizon, levels=chosen, requests=requests)

    failures.unlink(missing_ok=True)  # of an earlier run
    if len(result.failed):
        with atomic_path(failures) as scratch:
            result.failed.to_csv(scratch, index=False)
        log.warning("%d series failed, see %s", len(result.failed), failures)
    with atomic_path(output) as scratch:
        if output.suffix == ".csv":
            result.table.to_csv(scratch, index=False)
        else:
            result.table.to_parquet(scratch, index=False)
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

    with atomic_folder(output, partial(is_comparison, task="forecast")) as folder:
        panel, split = _prepared(job)
        models = list(map(_model, job.compare.models))
        name = panel.ids[0] if len(panel.ids) == 1 else f"{len(panel.ids)} series"
        title = f"Forecasting {name} of {job.data.path.name}"
        comparison, contenders = compare(
            panel, split, models, seeds=job.compare.seeds, title=title, **_common(job, panel, split)
        )
        comparison.write(folder / FILE)
        write_report([comparison], folder / "report.html", title=title)
        for kind, contender in contenders.items():
            run = folder / "runs" / kind
            run.mkdir(parents=True)
            card = model_card(contender.forecasters[0], panel, split, contender.records[0])
            contender.forecasters[0].write(run, data=_layout(job.data), card=card)
    return summary_text(comparison)


def load_run(run: Path) -> tuple[Forecaster, LayoutConfig]:
    """Read a run folder: the forecaster, and how the file it was fitted on was laid out.

    Raises:
        BundleError: If it is no run of a forecaster, or is damaged.
        ConfigError: If what it says of itself breaks a rule.
    """
    bundle = read_bundle(run, "forecast")
    spec = validate(bundle.spec, RunSpec, where=run / MANIFEST)
    settings = _model(spec.model)["settings"]
    inputs = Inputs(
        lookback=spec.lookback,
        horizon=spec.horizon,
        covariates=tuple(Covariate(**each.model_dump()) for each in spec.covariates),
        periods=tuple(round(seconds * 1e9) for seconds in spec.period_seconds),
    )
    model = build(spec.model.kind, inputs, settings)
    bundle.load_into(model)
    forecaster = Forecaster(
        kind=spec.model.kind,
        settings=settings,
        inputs=inputs,
        levels=spec.levels,
        model=model.eval(),
        widths=torch.tensor(spec.widths, dtype=torch.float64),
        naive_widths=torch.tensor(spec.naive_widths, dtype=torch.float64),
        scales=spec.scales,
        spreads=spec.spreads,
        step=round(spec.step_seconds * 1e9),
    )
    return forecaster, spec.data


def _made_of(job: ForecastConfig) -> dict[str, str]:
    """What a fit hangs on, by name: the content of the data, and all settings that matter to it."""
    settings = job.model_dump(mode="json", exclude={"compare": True, "data": {"path"}})
    return {
        "farview": version("farview"),
        "the data": sha256(job.data.path),
        **{
            f"{group}.{name}" if name else group: json.dumps(value)
            for group, values in settings.items()
            for name, value in (values.items() if isinstance(values, dict) else [("", values)])
        },
    }


def _read(path: Path, layout: LayoutConfig) -> Panel:
    panel = read_panel(path, **layout.model_dump(exclude={"path"}))
    for note in panel.notes:
        log.info("%s: %s", path, note)
    return panel


def _prepared(job: ForecastConfig) -> tuple[Panel, Split]:
    """The series that can be trained on, and how they are split."""
    panel = _read(job.data.path, job.data)
    shares = {"validation": job.split.validation, "test": job.split.test}
    split = split_rows(panel, **shares)
    trainable = has_values(panel, split.validation)
    if trainable.all():
        return panel, split
    if not trainable.any():
        raise InputError(
            "no series has a value in its training part",
            where=job.data.path,
            remedy="check data.target (long) or data.channels (wide), or leave more rows to train on",
        )
    left_out = [name for name, good in zip(panel.ids, trainable, strict=True) if not good]
    log.warning(
        "warning: %d of %d series have no value in their training part, and are left out: %s",
        len(left_out), len(panel.ids), ", ".join(left_out[:5]) + (", ..." if len(left_out) > 5 else ""),
    )  # fmt: skip
    panel = panel.select([int(i) for i in trainable.nonzero()[0]])
    return panel, split_rows(panel, **shares)


def _layout(data: DataConfig) -> dict[str, Any]:
    """What a run must know of the data's layout to read more of it."""
    return data.model_dump(exclude={"path"}, mode="json")


def _model(model: ModelConfig) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "settings": model.model_dump(exclude={"kind", "learning_rate"}),
        "learning_rate": getattr(model, "learning_rate", None),
    }


def _common(job: ForecastConfig, panel: Panel, split: Split) -> dict[str, Any]:
    """What all models of a job are fitted with."""
    covariates = fit_covariates(
        panel, past=job.data.past, future=job.data.future, static=job.data.static,
        used=before(panel, split.validation),
    )  # fmt: skip
    periods = tuple(map(period_length, job.periods))
    return {
        "inputs": Inputs(job.lookback, job.horizon, covariates, periods),
        "levels": tuple(sorted(job.levels)),
        "training": job.training.model_dump(),
    }


def _parse_levels(text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError as error:
        raise UsageError(f"{text!r} is not a list of numbers", where="--levels", remedy="--levels 80,95") from error
