"""The demonstration: its commands, its configurations, and one run of it with a few training steps."""

import os
import shlex
from pathlib import Path

import click
import pandas as pd
import pytest
import rasterio
from click.testing import CliRunner

from common.cli import farview
from common.demo import run as demo

ROOT = Path(__file__).parents[2]


def farview_demo(*arguments):
    return CliRunner().invoke(farview, ["demo", *map(str, arguments)])


def test_its_configurations_are_those_of_the_repository():
    copies = sorted((ROOT / "common" / "demo" / "configs").rglob("*.yaml"))
    assert len(copies) == 4
    for copy in copies:
        original = ROOT / "configs" / copy.parent.name / copy.name
        assert copy.read_bytes() == original.read_bytes(), f"copy {original} over {copy}"


@pytest.mark.parametrize("line", [*demo.REAL, *demo.GENERATED])
def test_every_command_is_one_that_farview_has(line):
    command: click.Command = farview
    name, arguments = "", shlex.split(line)
    while isinstance(command, click.Group):
        name, *arguments = arguments
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    command.make_context(name, arguments)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The offline demonstration with a few training steps; the data comes from the generators all the same."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    short = tuple(line + " --set training.steps=3" if " compare " in line else line for line in demo.GENERATED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "GENERATED", short)
        result = farview_demo("-o", folder, "--offline")
    assert result.exit_code == 0, result.output
    return folder, result


def test_it_prints_what_it_made(made):
    folder, result = made
    for line in result.stdout.splitlines():
        assert Path(line.split("  ")[0]).is_file()
    assert [Path(line.split("  ")[0]).name for line in result.stdout.splitlines()] == list(demo.OUTPUTS)
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_forecasts_begin_one_step_after_the_last_row(made):
    folder, _ = made
    series = pd.read_csv(folder / "data" / "sine" / "sine.csv", parse_dates=["ds"])
    forecasts = pd.read_csv(folder / "forecasts.csv", parse_dates=["ds"])
    assert not forecasts.isna().to_numpy().any()
    step = series["ds"].diff().max()
    for name, rows in forecasts.groupby("unique_id"):
        last = series.loc[series["unique_id"] == name, "ds"].max()
        assert list(rows["ds"]) == [last + step * ahead for ahead in range(1, 25)]
    assert forecasts["unique_id"].nunique() == series["unique_id"].nunique()


def test_the_class_map_lies_on_the_grid_of_the_scene(made):
    folder, _ = made
    with (
        rasterio.open(folder / "data" / "synthetic-scene" / "optical.tif") as scene,
        rasterio.open(folder / "classes.tif") as classes,
    ):
        assert (classes.crs, classes.transform, classes.shape) == (scene.crs, scene.transform, scene.shape)


def test_the_report_holds_both_comparisons_and_names_the_commands(made):
    folder, _ = made
    page = (folder / "report.html").read_text(encoding="utf-8")
    for text in ("Forecasting", "Land cover of synthetic-scene", "seasonal-naive", "swin-fusion"):
        assert text in page
    assert "farview forecast compare configs/forecast/sine.yaml -o forecast" in page


def test_a_folder_of_the_user_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    result = farview_demo("-o", tmp_path)
    assert result.exit_code == 2
    assert "left alone" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_command_that_fails_is_named_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "REAL", ("datasets get nonesuch -o data/nonesuch",))
    result = farview_demo("-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "`farview datasets get nonesuch -o data/nonesuch` failed (exit code 2)" in result.output
    assert list(tmp_path.iterdir()) == []


def test_relative_folders_of_the_environment_hold_for_the_commands(tmp_path, monkeypatch):
    """The commands run elsewhere, and would look there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("FARVIEW_DATA", "mine")
    monkeypatch.setattr(demo, "REAL", ("datasets list",))
    seen = []
    monkeypatch.setattr(
        demo.subprocess, "run", lambda *_, env, **__: seen.append(env) or demo.subprocess.CompletedProcess([], 1)
    )
    farview_demo("-o", "out")
    assert seen[0]["FARVIEW_DATA"] == str(tmp_path / "mine")
    assert os.environ["FARVIEW_DATA"] == "mine"


def test_help_shows_examples_that_click_accepts():
    lines = [line.strip() for line in farview_demo("--help").output.splitlines()]
    examples = [shlex.split(line)[2:] for line in lines if line.startswith("farview demo")]
    assert len(examples) == 2
    command = farview.get_command(click.Context(farview), "demo")
    for example in examples:
        assert command is not None
        assert command.make_context("demo", example).params["output"]
