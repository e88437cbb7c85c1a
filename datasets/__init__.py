"""Data sets: cards in YAML, sources that fetch and verify, generators.

The public face is these three functions. What they need is imported when they are called, so that importing
the package costs nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets.card import Card

__all__ = ["card_names", "get", "load_card"]


def card_names() -> list[str]:
    """Names of all data sets, sorted."""
    from datasets import card

    return card.card_names()


def load_card(name: str) -> Card:
    """Read the card of the data set ``name``.

    Raises:
        UsageError: If there is no such card; the message names close matches.
    """
    from datasets import card

    return card.load_card(name)


def get(name: str, output: Path) -> Path:
    """Fetch or generate the data set ``name`` into the folder ``output``, whole or not at all.

    Returns:
        ``output``.

    Raises:
        UsageError: If there is no such card, or ``output`` cannot be written.
        DatasetError: If a file cannot be fetched or is not the published one.
    """
    from datasets import fetch

    return fetch.get(name, output)
