"""Outputs that appear whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.errors import InputError, UsageError


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target`` and rename it when the block succeeds.

    The temporary name keeps the suffix of the target, since writers choose their format by it. Whatever
    the block wrote is removed when it raises, an interrupt included, so no partial output stays behind.

    Args:
        target: The final path, of a file or of a folder. A file there is replaced; so is a folder.

    Yields:
        A path that does not exist yet, in the same folder as ``target``.

    Raises:
        UsageError: If the folder of ``target`` cannot be created or written to.
    """
    target = Path(target)
    made = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        _remove_empty(made)
        raise UsageError(
            f"cannot write here ({error.strerror})", where=target, remedy="choose another output path"
        ) from error
    try:
        partial = scratch / target.name
        yield partial
        if partial.is_dir() and target.is_dir():
            # A folder cannot be replaced in one step; the old one is moved aside first.
            target.replace(scratch / "replaced")
        partial.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        _remove_empty(made)


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders that were made for an output that did not come, the innermost first."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # it holds something, or was never made
            return


def check_output(target: Path, inputs: Mapping[str, Path]) -> None:
    """Refuse an output file that would destroy what it is made from.

    Args:
        target: The file to be written.
        inputs: Files and folders that are read, by what they are ("the data").

    Raises:
        UsageError: If the target is a folder, is one of the inputs, or lies in one of them.
    """
    if target.is_dir():
        raise UsageError("is a folder, but a file is to be written", where=target, remedy="add a file name")
    for what, path in inputs.items():
        same = target.exists() and path.exists() and target.samefile(path)
        if same or (path.is_dir() and target.resolve().is_relative_to(path.resolve())):
            raise UsageError(f"would be written over {what}, {path}", where=target, remedy="choose another -o")


def write_text(target: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``target`` in one step."""
    with atomic_path(target) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def write_json(target: Path, value: Any) -> None:
    """Write ``value`` as indented JSON in one step; NaN and infinities are refused."""
    write_text(target, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def existing_file(path: Path, what: str) -> Path:
    """Return ``path`` if a file is there.

    Args:
        path: The file a user named.
        what: What the file is, for the message ("the CSV of series").

    Raises:
        InputError: If there is nothing, or a folder.
    """
    if path.is_dir():
        raise InputError(f"this is a folder, but {what} must be a file", where=path)
    if not path.exists():
        raise InputError(f"there is no such file ({what})", where=path, remedy="check the path and its spelling")
    return path


@contextmanager
def atomic_folder(target: Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a new folder that becomes ``target`` when the block succeeds.

    Args:
        target: The final folder. If it exists, it must be empty, or of an earlier run of the same kind; such a
            folder is replaced as a whole.
        is_ours: Tells whether a folder is of an earlier run of the same kind.

    Yields:
        The folder to write into.

    Raises:
        UsageError: If ``target`` holds something else, or cannot be written.
    """
    target = Path(target)
    if target.exists() and not target.is_dir():
        raise UsageError("is a file, but a folder is to be written here", where=target, remedy="choose another -o")
    if target.is_dir() and any(target.iterdir()) and not is_ours(target):
        raise UsageError(
            "holds something else than an earlier result of this command, and is left alone",
            where=target,
            remedy="choose another -o, or empty the folder",
        )
    with atomic_path(target) as partial:
        partial.mkdir()
        yield partial
