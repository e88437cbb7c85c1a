"""The command ``farview demo``."""

from __future__ import annotations

from pathlib import Path

import click

from common.cli import Command


@click.command(cls=Command)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder to write; one of an earlier demo is replaced.",
)
@click.option("--offline", is_flag=True, help="Use generated data, for a machine without a package index.")
def demo(output: Path, offline: bool) -> None:
    """Run all three jobs end to end on real data, within minutes, and print what was made.

    Each job is run by the commands a user would type; they are shown as they start. The folder then holds
    the data, the configurations, and all that the commands wrote, ready to be tried again with changes.

    \b
    Examples:
      farview demo
      farview demo --offline -o demo-offline
    """
    from common.demo.run import run

    for path, what in run(output, offline=offline).items():
        click.echo(f"{path}  {what}")
