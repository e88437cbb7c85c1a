"""A card as text for people."""

from __future__ import annotations

import textwrap

from datasets.card import Card, GeneratorSource, HttpsSource, PypiSource, files_of, load_card

MANY = 12  # longer lists of files are cut


def render(name: str) -> str:
    """The card of the data set ``name`` as readable text.

    Raises:
        UsageError: If there is no such card.
    """
    card = load_card(name)
    facts = {
        "task": card.task,
        "size": card.size,
        "licence": card.licence,
        **({"homepage": card.homepage} if card.homepage else {}),
        "split": card.split,
    }
    sections = [
        f"{card.name}: {card.summary}",
        _wrap(card.description),
        _pairs(facts),
        _titled("columns", card.columns),
        _titled("bands", card.bands),
        _titled("classes", {str(each.code): each.name for each in card.classes}),
        "\n".join(_wrap(note, bullet="- ") for note in card.notes),
        _sources(card),
    ]
    return "\n\n".join(section for section in sections if section)


def _wrap(text: str, bullet: str = "") -> str:
    return textwrap.fill(" ".join(text.split()), 100, initial_indent=bullet, subsequent_indent=" " * len(bullet))


def _pairs(pairs: dict[str, str]) -> str:
    width = max(map(len, pairs))
    return "\n".join(
        textwrap.fill(value, 100, initial_indent=f"{key.ljust(width)}  ", subsequent_indent=" " * (width + 2))
        for key, value in pairs.items()
    )


def _titled(title: str, pairs: dict[str, str]) -> str:
    return f"{title}:\n{textwrap.indent(_pairs(pairs), '  ')}" if pairs else ""


def _sources(card: Card) -> str:
    lines = []
    for source in card.sources:
        if isinstance(source, GeneratorSource):
            arguments = ", ".join(f"{key} {value}" for key, value in source.arguments.items())
            lines.append(f"generated: {source.function} ({arguments})")
            continue
        if isinstance(source, PypiSource):
            lines.append(f"from the package {source.package} {source.version} of the Python package index:")
        elif isinstance(source, HttpsSource):
            lines.append(f"from {source.base}:")
        else:
            lines.append(_wrap(f"not fetched: {source.remedy}"))
        files = files_of(source)
        lines += [f"  {file.sha256}  {card.folder}/{file.path}" for file in files[:MANY]]
        if len(files) > MANY:
            lines.append(f"  and {len(files) - MANY} more")
    if card.folder:
        lines.append("The paths are those below FARVIEW_DATA, where files are looked for first.")
    return "\n".join(lines)
