"""Files as tables: the columns asked for, in blocks, as text or as numbers; CSV in any dialect, and Parquet."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa

from common.errors import InputError
from common.files import existing_file
from forecasting.series.dialect import GROUPS, MISSING, Dialect, find_dialect, line_of, read_records, reader_fields
from forecasting.series.opening import open_file

PART = 1 << 24  # bytes of CSV that are read at a time
LINE = 1 << 12  # a part with more bytes than that is not blank
BLOCK = 1 << 20  # bytes of them that a core parses at a time
_TEXT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Source:
    """A file of series, known well enough to be read.

    Attributes:
        path: The file.
        dialect: How it is written; None for Parquet.
        columns: Names of its columns.
        types: Types of its columns in Parquet; None for CSV, which has text only.
    """

    path: Path
    dialect: Dialect | None
    columns: tuple[str, ...]
    types: dict[str, pa.DataType] | None = None

    def place(self, row: int) -> str:
        """Name a row for messages: the line in a CSV, the number in Parquet."""
        if self.dialect is None:
            return f"{self.path}, row {row + 1}"
        return f"{self.path}, line {line_of(self.path, self.dialect, row)}"

    def require(self, name: str, key: str) -> str:
        """Check that there is a column; blanks around its name do not count.

        Args:
            name: The column.
            key: Where it was stated, for the message.

        Raises:
            InputError: If there is none.
        """
        if name.strip() not in self.columns:
            raise InputError(
                f"there is no column {name!r}; the columns are {', '.join(map(repr, self.columns))}",
                where=self.path,
                remedy=f"state {key} in the configuration, or let 'farview forecast audit --suggest' find it",
            )
        return name.strip()


def open_source(path: Path, *, encoding: str | None, separator: str | None, decimal: str | None) -> Source:
    """Look at a file: CSV (also compressed) or Parquet, whichever its first bytes say.

    Args:
        path: The file.
        encoding: Of a CSV, if stated.
        separator: Of a CSV, if stated.
        decimal: Of a CSV, if stated.

    Raises:
        InputError: If there is no such file, or it cannot be read.
    """
    path = existing_file(path, "the data")
    with path.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    if not parquet and path.suffix == ".parquet":
        raise InputError("this is not Parquet", where=path, remedy="a CSV ends in .csv")
    if parquet:
        schema = _parquet(path).schema_arrow
        return Source(path, None, tuple(schema.names), dict(zip(schema.names, schema.types, strict=True)))
    dialect = find_dialect(path, encoding=encoding, separator=separator, decimal=decimal)
    return Source(path, dialect, dialect.columns)


class NotANumber(Exception):  # noqa: N818 - a signal between two passes, never shown
    """A column of numbers holds something that the fast parser does not take for one."""


def scan(
    source: Source,
    *,
    text: Sequence[str],
    numbers: Sequence[str] = (),
    times: Sequence[str] = (),
    missing: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[dict[str, pa.Array]]:
    """Read columns in blocks.

    Args:
        source: The file.
        text: Columns to give as text, as written; of Parquet, columns that are no text come in their own type.
        numbers: Columns to give as float64.
        times: Columns of ISO 8601 times to give as nanoseconds.
        missing: Texts that mean a missing number, beside :data:`MISSING`.
        limit: Most blocks.

    Yields:
        Arrays by the name of their column.

    Raises:
        NotANumber: If a number or time cannot be parsed in the plain way.
        InputError: If a row does not have as many fields as the heading, or the file is damaged.
    """
    wanted = list(dict.fromkeys((*text, *numbers, *times)))
    blocks = _scan_parquet(source, wanted, numbers) if source.dialect is None else None
    if blocks is None:
        blocks = _scan_csv(source, source.dialect, wanted, text, numbers, times, missing)  # pyright: ignore[reportArgumentType]
    for number, block in enumerate(blocks):
        if limit is not None and number >= limit:
            return
        yield block


def numbers_of(texts: pd.Series, dialect: Dialect | None, missing: Sequence[str]) -> np.ndarray:
    """Numbers of texts, ``float64 [N]``; NaN where missing, infinite where the text is no number.

    Args:
        texts: The texts.
        dialect: How the file writes numbers.
        missing: Texts that mean a missing number, beside :data:`MISSING`.
    """
    plain = texts.str.strip().str.replace("\u2212", "-", regex=False)
    absent = (plain.isna() | plain.isin((*MISSING, *missing))).to_numpy()
    if dialect is not None:
        plain = _without_signs(plain, absent, dialect.signs)
    truth = plain.str.lower()
    if not absent.all() and bool(truth[~absent].isin(("true", "false")).all()):
        return np.where(absent, np.nan, (truth == "true").to_numpy(dtype=np.float64, na_value=np.nan))
    plain = plain.str.replace(GROUPS, "", regex=True)
    if dialect is not None:
        plain = _with_point(plain, dialect)
    values = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(absent, np.nan, np.where(np.isnan(values), np.inf, values))


def _without_signs(texts: pd.Series, absent: np.ndarray, signs: tuple[str, ...]) -> pd.Series:
    """Numbers without their signs or units, which all of them must have, and with the minus before."""
    texts = texts.str.replace(r"^\(\s*(.*\d.*?)\s*\)$", r"-\1", regex=True)
    texts = texts.str.replace(r"^(\S*\d)-$", r"-\1", regex=True)
    for sign in signs:
        if bool(texts[~absent].str.contains(sign, regex=False).all()):
            texts = texts.str.replace(sign, "", n=1, regex=False).str.replace(r"^([+-]?)\s+", r"\1", regex=True)
            texts = texts.str.strip()
    return texts


def _with_point(texts: pd.Series, dialect: Dialect) -> pd.Series:
    """Numbers with a decimal point and without groups of thousands; no number where a mark stands elsewhere."""
    other = "." if dialect.decimal == "," else ","
    marked = texts.str.contains(other, regex=False)
    if dialect.certain:
        form = rf"[+-]?[1-9]\d{{0,2}}([{other}]\d{{2,3}})*[{other}]\d{{3}}([{dialect.decimal}]\d*)?"
        grouped = marked & texts.str.fullmatch(form)
        texts = texts.mask(grouped, texts.str.replace(other, "", regex=False))
        marked = marked & ~grouped
    return texts.str.replace(dialect.decimal, ".", regex=False).mask(marked, "not a number")


def _scan_csv(
    source: Source,
    dialect: Dialect,
    wanted: list[str],
    text: Sequence[str],
    numbers: Sequence[str],
    times: Sequence[str],
    missing: Sequence[str],
) -> Iterator[dict[str, pa.Array]]:
    import pyarrow.csv as csv

    types: dict[str, pa.DataType] = {
        **dict.fromkeys(text, _TEXT),
        **dict.fromkeys(numbers, pa.float64()),
        **dict.fromkeys(times, pa.timestamp("ns")),
    }
    options = {
        "read_options": csv.ReadOptions(block_size=BLOCK, column_names=list(dialect.columns)),
        "parse_options": csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=dialect.multiline),
        "convert_options": csv.ConvertOptions(
            include_columns=wanted,
            column_types=types,
            null_values=[*MISSING, *missing],
            strings_can_be_null=False,  # a series may be called NA
            decimal_point=dialect.decimal,
        ),
    }
    with open_file(source.path) as file:
        try:
            for part in _parts(file, dialect):
                for batch in csv.read_csv(pa.BufferReader(pa.py_buffer(part)), **options).to_batches():
                    yield dict(zip(wanted, batch.columns, strict=True))
        except UnicodeDecodeError as error:
            raise _encoding_error(source, dialect) from error
        except pa.ArrowInvalid as error:
            detail = " ".join(str(error).split())
            if "invalid utf8" in detail.lower():
                raise _encoding_error(source, dialect) from error
            if "conversion error" in detail.lower():
                raise NotANumber from error
            raise _named(source, dialect, detail) from error


def _parts(file: IO[bytes], dialect: Dialect) -> Iterator[memoryview]:
    """The rows of a file in UTF-8, whole rows at a time, some megabytes each, which all cores then parse at once."""
    plain = dialect.encoding in ("utf-8", "utf-8-sig")
    decoder = codecs.getincrementaldecoder(dialect.encoding)()
    rest, skip = b"", dialect.skip
    while raw := file.read(PART):
        part = rest + (raw if plain else decoder.decode(raw).encode())
        if dialect.returns:
            part = part.replace(b"\r", b"\n")
        begin = 0
        while skip and (end := part.find(b"\n", begin) + 1):
            begin, skip = end, skip - 1
        end = part.rfind(b"\n") + 1
        # A line break between quotes ends no row.
        if skip or end <= begin or (dialect.multiline and part.count(b'"', begin, end) % 2):
            rest = part[begin:]
            continue
        rest = part[end:]
        if end - begin > LINE or part[begin:end].strip():
            yield memoryview(part)[begin:end]  # copied neither here nor by pyarrow
    if not skip and rest.strip(b"\0 \t\r\n"):  # some loggers fill the file with zeros
        yield memoryview(rest)


def _encoding_error(source: Source, dialect: Dialect) -> InputError:
    return InputError(
        f"not all of it is text in the encoding {dialect.encoding!r}", where=source.path,
        remedy="state data.encoding, such as cp1252",
    )  # fmt: skip


def _named(source: Source, dialect: Dialect, detail: str) -> InputError:
    """An error that names the first row that does not fit the heading."""
    with open_file(source.path) as file:
        reader = read_records(file, dialect)
        for fields in reader_fields(reader):
            if len(fields) != len(dialect.columns):
                return InputError(
                    f"the row has {len(fields)} field{'' if len(fields) == 1 else 's'}, the heading has "
                    f"{len(dialect.columns)}",
                    where=f"{source.path}, line {dialect.skip + reader.line_num}",
                    remedy="complete or remove the row; a text with a separator in it stands in quotes",
                )
    return InputError(f"cannot be read as CSV ({detail})", where=source.path, remedy="data.separator, data.encoding")


def _parquet(path: Path):
    import pyarrow.parquet as parquet

    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        detail = " ".join(str(error).split())
        raise InputError(
            f"cannot be read as Parquet ({detail})", where=path, remedy="write or copy it again"
        ) from error


def _scan_parquet(source: Source, wanted: list[str], numbers: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
    file = _parquet(source.path)
    try:
        for batch in file.iter_batches(columns=wanted):
            block = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name, column in block.items():
                block[name] = _number(column) if name in numbers else _as_text(column)
            yield block
    except (pa.ArrowInvalid, OSError) as error:
        detail = " ".join(str(error).split())
        raise InputError(f"cannot be read as Parquet ({detail})", where=source.path, remedy="copy it again") from error


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()).dictionary_encode()


def _number(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return column.cast(pa.float64())
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.float64())
    raise NotANumber
