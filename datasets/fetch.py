"""Write a data set into a folder: fetch, verify and convert, or generate."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from common.files import atomic_folder
from datasets.card import CARDS, Card, GeneratorSource, load_card
from datasets.sources import collect

CARD_FILE = "card.yaml"


def get(name: str, output: Path) -> Path:
    """Fetch or generate the data set ``name`` into the folder ``output``, whole or not at all.

    The card is copied beside the data, so that licence and origin travel with it.

    Args:
        name: Name of the data set.
        output: The folder to write. It may exist if it is empty or an earlier ``get`` wrote it.

    Returns:
        ``output``.

    Raises:
        UsageError: If there is no such card, or ``output`` cannot be written.
        DatasetError: If a file cannot be fetched or is not the published one.
    """
    card = load_card(name)
    with atomic_folder(output, lambda folder: (folder / CARD_FILE).exists()) as folder:
        if card.convert is None:
            _gather(card, folder)
        else:
            with tempfile.TemporaryDirectory(prefix="farview-") as raw:
                _gather(card, Path(raw))
                _convert(card, Path(raw), folder)
        shutil.copyfile(CARDS / f"{name}.yaml", folder / CARD_FILE)
    return output


def _gather(card: Card, folder: Path) -> None:
    for source in card.sources:
        if isinstance(source, GeneratorSource):
            _generate(card, source, folder)
        else:
            collect(source, card.folder or "", folder)


def _generate(card: Card, source: GeneratorSource, folder: Path) -> None:
    if source.function == "sine":
        from datasets.sine import sine_series

        sine_series(**source.arguments).to_csv(folder / f"{card.name}.csv", index=False, lineterminator="\n")
    else:
        from datasets.scene import write_scene

        write_scene(folder, classes=card.classes, **source.arguments)


def _convert(card: Card, raw: Path, folder: Path) -> None:
    if card.convert == "sentinel2-osm":
        from datasets.sentinel2_osm import convert
    else:
        from datasets.zurich import convert
    convert(raw, folder, classes=card.classes)
