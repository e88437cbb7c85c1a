"""CSV and Parquet files as tables, with the mistakes of people and programs named or allowed for."""

from __future__ import annotations

import gzip
import lzma
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from common.errors import InputError
from common.progress import log

MISSING = [
    "", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None",
    "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN",
]  # fmt: skip
"""How programs write a missing number; those that pandas knows."""


def column_names(path: Path) -> list[str]:
    """Names of the columns of a file.

    Raises:
        InputError: If the file cannot be read.
    """
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        with _parquet_errors(path):
            return parquet.read_schema(path).names
    return list(_parse_csv(path, nrows=0).columns)


def read_table(path: Path, text_columns: list[str]) -> pd.DataFrame:
    """Read a CSV (also ``.gz``, ``.xz``) or Parquet file.

    Args:
        path: The file.
        text_columns: Columns that stay text.

    Returns:
        All rows but blank ones; the index is their number in the file, from 0.

    Raises:
        InputError: If the file cannot be read.
    """
    if path.suffix == ".parquet":
        with _parquet_errors(path):
            frame = pd.read_parquet(path).reset_index(drop=True)
        kept = [name for name in text_columns if name in frame]
        return frame.astype(dict.fromkeys(kept, "string"))
    # A series may be called NA: in columns of text, only an empty cell is missing.
    missing = {name: [""] if name in text_columns else MISSING for name in column_names(path)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        frame = _parse_csv(
            path,
            dtype=dict.fromkeys(text_columns, "string"),
            na_values=missing,
            keep_default_na=False,
            skip_blank_lines=False,  # so that rows keep the numbers of their lines
            index_col=False,  # else a comma at the end of each row moves every column
        )
    if any(issubclass(each.category, pd.errors.ParserWarning) for each in caught):
        log.warning("warning: %s: rows are longer than the heading; what is beyond it is left out", path)
    return frame.dropna(how="all")


def _parse_csv(path: Path, **options: object) -> pd.DataFrame:
    try:
        return pd.read_csv(path, **options)  # pyright: ignore[reportCallIssue, reportArgumentType]
    except pd.errors.EmptyDataError as error:
        raise InputError("the file is empty", where=path, remedy="a CSV with a heading and rows") from error
    except (pd.errors.ParserError, UnicodeDecodeError, EOFError, gzip.BadGzipFile, lzma.LZMAError) as error:
        detail = " ".join(str(error).split())
        raise InputError(f"cannot be read as CSV ({detail})", where=path, remedy="UTF-8 and commas") from error


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except pyarrow.ArrowInvalid as error:
        detail = " ".join(str(error).split())
        raise InputError(f"cannot be read as Parquet ({detail})", where=path, remedy="a CSV ends in .csv") from error
