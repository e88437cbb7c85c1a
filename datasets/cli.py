"""The commands ``farview datasets list``, ``show`` and ``get``."""

from __future__ import annotations

from pathlib import Path

import click

from common.cli import Group


@click.group(cls=Group)
def datasets() -> None:
    """List, describe and fetch data sets."""


@datasets.command("list")
def list_() -> None:
    """Print all data sets, one a line.

    Example: farview datasets list
    """
    from datasets import card_names, load_card

    header = ("NAME", "TASK", "SIZE", "LICENCE", "SUMMARY")
    cards = [load_card(name) for name in card_names()]
    rows = [header, *((card.name, card.task, card.size, card.licence, card.summary) for card in cards)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@datasets.command()
@click.argument("name")
def show(name: str) -> None:
    """Print what is known of the data set NAME.

    Example: farview datasets show hourly-electricity
    """
    from datasets.show import render

    click.echo(render(name))


@datasets.command()
@click.argument("name")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder to write.  [default: ./NAME]")
def get(name: str, output: Path | None) -> None:
    """Fetch the data set NAME, verify it by sha256, and print the folder it is in.

    Files under the folder that FARVIEW_DATA names are used instead of being fetched; downloads are kept
    in FARVIEW_CACHE, or in the cache folder of the operating system.

    Example: farview datasets get hourly-electricity -o data/electricity
    """
    from datasets import get as get_dataset

    click.echo(get_dataset(name, output or Path(name)))
