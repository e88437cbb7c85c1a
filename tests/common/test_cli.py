"""The command as a process: start-up, help, exit codes, and packages that hide ours."""

import json
import os
import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner

from common.cli import Group, farview
from common.errors import InputError
from common.progress import configure_logging, log


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-P", "-m", "common.cli", *arguments], capture_output=True, text=True, check=False, **options
    )


def test_help_lists_the_groups_and_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['farview', '--help']\n"
        "from common.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code)\n"
        "heavy = {'torch', 'timm', 'rasterio', 'pandas', 'numpy', 'sklearn', 'lightning'} & set(sys.modules)\n"
        "print(sorted(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for group in ("datasets", "demo", "forecast", "segment"):
        assert f"\n  {group} " in done.stdout
    assert done.stdout.splitlines()[-2:] == ["0", "[]"]


def test_help_is_fast():
    times = []
    for _ in range(3):
        started = time.perf_counter()
        command("--help")
        times.append(time.perf_counter() - started)
    assert min(times) < 0.4


def test_a_foreign_package_of_our_name_is_one_clear_line(tmp_path):
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "__init__.py").write_text("")
    done = command("datasets", "list", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: the package 'datasets' found at {tmp_path / 'datasets'} is not farview's")
    assert "Traceback" not in done.stderr


@click.group(cls=Group)
def group():
    pass


@group.command()
@click.argument("how")
def fail(how):
    if how == "input":
        raise InputError("the rule", where="file.csv, line 3", remedy="the remedy")
    if how == "full":
        raise OSError(28, "No space left on device", "out.tif")
    if how == "denied":
        raise PermissionError(13, "Permission denied", "load.csv")
    if how == "interrupt":
        raise KeyboardInterrupt
    raise RuntimeError("a bug")


def test_errors_become_messages_and_exit_codes():
    done = CliRunner().invoke(group, ["fail", "input"])
    assert (done.exit_code, done.stderr) == (2, "error: file.csv, line 3: the rule\n  try: the remedy\n")
    done = CliRunner().invoke(group, ["fail", "full"])
    assert done.exit_code == 1
    assert done.stderr.startswith("error: out.tif: the disk is full")
    done = CliRunner().invoke(group, ["fail", "denied"])
    assert done.exit_code == 1
    assert done.stderr == "error: load.csv: Permission denied\n  try: check the path and your rights to it\n"
    done = CliRunner().invoke(group, ["fail", "interrupt"])
    assert (done.exit_code, done.stderr) == (1, "error: interrupted; no partial output was left\n")
    assert isinstance(CliRunner().invoke(group, ["fail", "bug"]).exception, RuntimeError)


def test_wrong_usage_is_exit_code_2():
    assert CliRunner().invoke(farview, ["nonsense"]).exit_code == 2
    assert CliRunner().invoke(farview, ["forecast", "fit"]).exit_code == 2


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_log_formats(log_format, capsys):
    configure_logging(log_format)
    try:
        log.warning("100%% of %s", 'a "b"')
    finally:
        log.handlers.clear()
    captured = capsys.readouterr()
    assert captured.out == ""
    if log_format == "text":
        assert captured.err == '100% of a "b"\n'
    else:
        entry = json.loads(captured.err)
        assert (entry["level"], entry["message"]) == ("warning", '100% of a "b"')


def test_a_terminated_command_leaves_nothing(tmp_path):
    """As a batch system ends a job: by SIGTERM."""
    code = (
        "import time, common.cli, click\n"
        "from pathlib import Path\n"
        "from common.files import atomic_path\n"
        "@common.cli.farview.command(cls=common.cli.Command)\n"
        "def wait():\n"
        f"    with atomic_path(Path({str(tmp_path)!r}) / 'out' / 'o.txt') as partial:\n"
        "        partial.write_text('half')\n"
        "        click.echo('writing')\n"
        "        time.sleep(60)\n"
        "import sys; sys.argv = ['farview', 'wait']; common.cli.main()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "writing\n"
    child.terminate()
    assert child.wait(timeout=20) == 143
    assert list(tmp_path.iterdir()) == []
