"""The command ``farview``: finds its groups by entry points and turns errors into exit codes.

Nothing heavy is imported here or in the ``cli`` modules of the applications; torch, pandas and rasterio
are imported where a command uses them, so that ``--help`` answers at once.
"""

from __future__ import annotations

import errno
import importlib.util
import signal
import sys
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Any

import click

from common.errors import FarviewError, UsageError
from common.progress import configure_logging

ENTRY_POINT_GROUP = "farview.commands"
OUR_PACKAGES = ("datasets", "forecasting", "laboratory", "segmentation")


class CommandFailed(click.ClickException):
    """An error shown as its message alone, with the exit code it carries."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # pyright: ignore[reportAttributeAccessIssue] - click reads it from the instance

    def show(self, file: Any = None) -> None:
        """Print the message on standard error."""
        click.echo(f"error: {self.format_message()}", file=file or sys.stderr)


class Command(click.Command):
    """A click command whose farview errors, interrupts and errors of the system end as one message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except FarviewError as error:
            raise CommandFailed(str(error), error.exit_code) from error
        except KeyboardInterrupt as error:
            raise CommandFailed("interrupted; no partial output was left", 1) from error
        except OSError as error:
            if error.errno in (None, errno.EPIPE):  # a fault of ours; or a closed pipe, which click ends quietly
                raise
            place = f"{error.filename}: " if error.filename else ""
            full = error.errno == errno.ENOSPC
            problem = "the disk is full; nothing was kept" if full else f"{error.strerror}"
            remedy = "free space, or another -o" if full else "check the path and your rights to it"
            raise CommandFailed(f"{place}{problem}\n  try: {remedy}", 1) from error


class Group(click.Group):
    """A group whose commands are of class :class:`Command`."""

    command_class = Command


class EntryPointGroup(Group):
    """The top-level group, which loads a sub-group only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all groups found, sorted."""
        return sorted({*super().list_commands(ctx), *_found_groups()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the group of that name."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        entry_point = _found_groups().get(cmd_name)
        return None if entry_point is None else entry_point.load()


def _found_groups() -> dict[str, EntryPoint]:
    return {entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINT_GROUP)}


def check_packages_are_ours() -> None:
    """Refuse to run where another package hides one of ours.

    Our packages have generic names; Hugging Face, for one, ships a ``datasets`` too.

    Raises:
        UsageError: If a package of that name would be imported from elsewhere.
    """
    home = Path(__file__).resolve().parent.parent
    for name in OUR_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise UsageError(f"farview's package {name!r} is missing", remedy="install farview again")
        found = (
            Path(spec.origin).resolve().parent
            if spec.origin
            else Path(next(iter(spec.submodule_search_locations or [""])))
        )
        if found != home / name or (name == "datasets" and not (found / "cards").is_dir()):
            raise UsageError(
                f"the package {name!r} found at {found} is not farview's and hides ours",
                remedy="install farview in an environment of its own (make, pipx, or a new venv)",
            )


@click.group(cls=EntryPointGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("farview"), prog_name="farview")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Log lines for people, or one JSON object a line.",
)
def farview(log_format: str) -> None:
    """Attention models that forecast series and map land from images.

    \b
    Start here:
      farview demo                     all three jobs on real data, in minutes
      farview forecast fit --help      train a forecaster on a CSV
      farview segment predict --help   a class map from GeoTIFFs of any size
    """
    configure_logging(log_format)


def main() -> None:
    """Entry point of the console command."""
    try:
        check_packages_are_ours()
    except UsageError as error:
        CommandFailed(str(error), error.exit_code).show()
        sys.exit(error.exit_code)
    # A batch system ends a job with SIGTERM: leave like on an error, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    farview(prog_name="farview")


if __name__ == "__main__":
    main()
