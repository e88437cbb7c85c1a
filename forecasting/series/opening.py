"""Files opened: compression and encoding, which the first bytes tell."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from common.errors import InputError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that may be compressed (gzip, bzip2, xz, or a zip of one file), which its first bytes tell.

    Raises:
        InputError: If it is a spreadsheet, a zip of several files, or damaged.
    """
    with path.open("rb") as plain:
        start = plain.read(8)
        plain.seek(0)
        try:
            if start.startswith(b"\x1f\x8b"):
                with gzip.open(plain) as file:
                    yield file  # pyright: ignore[reportReturnType]
            elif start.startswith(b"BZh"):
                with bz2.open(plain) as file:
                    yield file
            elif start.startswith(b"\xfd7zXZ"):
                with lzma.open(plain) as file:
                    yield file
            elif start.startswith(b"PK\x03\x04"):
                with zipfile.ZipFile(plain) as archive, archive.open(_only_member(archive, path)) as file:
                    yield file
            elif start.startswith(b"\xd0\xcf\x11\xe0"):
                raise _spreadsheet(path)
            else:
                yield plain
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(
                f"the compressed file is damaged ({error})", where=path, remedy="copy or download it again"
            ) from error


def _only_member(archive: zipfile.ZipFile, path: Path) -> str:
    names = [name for name in archive.namelist() if not name.endswith("/")]
    if any(name.startswith("xl/") for name in names):
        raise _spreadsheet(path)
    if len(names) != 1:
        raise InputError(f"the zip holds {len(names)} files", where=path, remedy="unpack it, and give one file")
    return names[0]


def _spreadsheet(path: Path) -> InputError:
    return InputError("this is a spreadsheet", where=path, remedy="save it as CSV (UTF-8), one table a file")


def find_encoding(raw: bytes, *, whole: bool) -> str:
    """The encoding of a text by its first bytes; ``whole`` tells whether they are all of it."""
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return name
    even, odd = raw[0::2].count(0), raw[1::2].count(0)
    if max(even, odd) > max(
        len(raw) // 8, 2 * min(even, odd)
    ):  # letters of Latin scripts leave every other byte of UTF-16 zero
        return "utf-16-le" if odd > even else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw, final=whole)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
