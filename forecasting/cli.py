"""The commands ``farview forecast ...``."""

from __future__ import annotations

from pathlib import Path

import click

from common.cli import Group

A_PATH = click.Path(path_type=Path)
SETTING = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a setting, as in training.steps=500."
)
DATA = click.option("--data", type=A_PATH, help="Read this file instead of the one CONFIG names.")


@click.group(cls=Group)
def forecast() -> None:
    """Forecasts with intervals from CSV or Parquet."""


@forecast.command()
@click.argument("data", type=A_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
@click.option("--suggest", type=A_PATH, help="Write a configuration that fit accepts as it is.")
@SETTING
def audit(data: Path, as_json: bool, suggest: Path | None, overrides: tuple[str, ...]) -> None:
    """Say what the series of DATA are like, and what is wrong or odd about them, before any training.

    What the file does not tell can be stated: --set data.time_format=%d/%m/%Y

    \b
    Example:
      farview forecast audit sine/sine.csv --suggest sine.yaml
    """
    from forecasting.job import run_audit

    click.echo(run_audit(data, overrides, as_json=as_json, suggest=suggest))


@forecast.command()
@click.argument("config", type=A_PATH)
@DATA
@click.option("-o", "--output", "run", type=A_PATH, help="Run folder to write; runs/NAME by default, after CONFIG.")
@SETTING
@click.option("--resume", is_flag=True, help="Go on with a training that was interrupted, kept in RUN.checkpoint.")
def fit(config: Path, data: Path | None, run: Path | None, overrides: tuple[str, ...], resume: bool) -> None:
    """Train the model that CONFIG describes, calibrate its intervals, and write a run folder.

    \b
    Example:
      farview forecast fit configs/forecast/sine.yaml --data sine/sine.csv -o runs/sine
    """
    from forecasting.job import load_job, run_fit

    run = run or Path("runs") / config.stem
    run_fit(load_job(config, data, overrides), run, resume=resume)
    click.echo(run)


@forecast.command()
@click.argument("run", type=A_PATH)
@click.argument("data", type=A_PATH)
@click.option("-o", "--output", type=A_PATH, required=True, help="File to write, .csv or .parquet.")
@click.option("--at", type=A_PATH, help="Forecast the times of this file, with the values known ahead that it holds.")
@click.option("--horizon", type=click.IntRange(min=1), help="Steps to forecast; as many as the run can by default.")
@click.option("--levels", help="Intervals to give, in percent, as in 80,95; all of the run by default.")
def predict(run: Path, data: Path, output: Path, at: Path | None, horizon: int | None, levels: str | None) -> None:
    """Forecast the times after the last value of each series of DATA.

    Series that cannot be forecast are listed with the reason in OUTPUT.failed.csv, and the exit code is 1.

    \b
    Example:
      farview forecast predict runs/sine sine/sine.csv -o forecasts.csv --levels 80
    """
    from forecasting.job import run_predict

    failed = run_predict(run, data, output, at=at, horizon=horizon, levels=levels)
    click.echo(output)
    if failed:
        raise SystemExit(1)


@forecast.command()
@click.argument("config", type=A_PATH)
@DATA
@click.option("-o", "--output", type=A_PATH, required=True, help="Folder to write the report and the runs into.")
@SETTING
def compare(config: Path, data: Path | None, output: Path, overrides: tuple[str, ...]) -> None:
    """Hold attention against baselines on the same data, and write a report.

    \b
    Example:
      farview forecast compare configs/forecast/sine.yaml --data sine/sine.csv -o comparison
    """
    from forecasting.job import load_job, run_compare

    click.echo(run_compare(load_job(config, data, overrides), output))
