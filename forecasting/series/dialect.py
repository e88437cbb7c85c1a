"""What a CSV file looks like: separator, decimal mark, and where its heading stands."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from common.errors import InputError
from forecasting.series.opening import find_encoding, open_file

SAMPLE = 1 << 16  # bytes that a file is judged by
SEPARATORS = (";", "\t", "|", ",")  # in a tie the comma comes last: it may be a decimal mark
MISSING = (
    "", "NA", "N/A", "n/a", "na", "n.a.", "#N/A", "#N/A N/A", "#NA", "#VALUE!", "#DIV/0!", "<NA>", "NaN", "nan", "-NaN",
    "-nan", "NaT", "NULL", "Null", "null", "(null)", "\\N", "None", "none", "nil", "NIL", "missing", "unavailable",
    "unknown", "ND", "n/d", "n/e", "M", "#NV", "#REF!", "?", "*", "-", "--", "---", "\u2014", ".", "..", "...", ":",
    "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN",
)  # fmt: skip
"""How people and programs write a missing number."""
_TIME = re.compile(r"\s*(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([ T].*)?$")
_PERIOD = re.compile(r"(1[6-9]|2[0-2])\d\d([-_ ]?[QMHqmh]\d{1,2})?(\s*\[.*\])?$|[A-Z][a-z]{2}[- ]\d{2,4}$")  # of a year
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*$")
_MONTH = re.compile(r"(1[6-9]|2[0-2])\d\d[.](0?[1-9]|1[0-2])$")
_GROUPED = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}([{mark}]\d{{2,3}})*[{mark}]\d{{3}}$") for mark in ".,"}
_MANY_GROUPS = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}([{mark}]\d{{2,3}})+[{mark}]\d{{3}}$") for mark in ".,"}
_DECIMAL = {
    mark: re.compile(rf"[+-]?(\d*|[1-9]\d{{0,2}}([{other}]\d{{2,3}})*[{other}]\d{{3}})[{mark}]\d*([eE][+-]?\d+)?$")
    for mark, other in (".,", ",.")
}  # thousands may be grouped by the other mark
_SIGN = re.compile(r"[+-]?\s*([$€£¥])\s*[\d.,]+$|[+-]?[\d.,]+\s*([$€£¥%]|(?![AaPp][Mm]$)[^\W\d_]{1,5}|°[A-Z]?)$")
_UNIT = re.compile(r"(?<=[\d.,])\s*([^\W\d_]{1,5}|°[A-Z]?)$")
_FIELD_WIDTHS = re.compile(r"\d+[sdn]$")  # below the heading of tables of the USGS
_SEPARATOR_STATED = re.compile(r"\ufeff?\"?sep=(.)\"?\r?\n", re.IGNORECASE)
GROUPS = re.compile("(?<=\\d)[ \u00a0\u202f\u2009'\u2019](?=\\d{3}(?!\\d))")  # blanks and apostrophes by thousands
_TIME_WORDS = {
    "ds", "time", "timestamp", "time stamp", "date", "datetime", "date_time", "date time", "date/time", "datum", "zeit",
    "uhrzeit", "year", "_time", "time_period",
}  # fmt: skip
HEAD = 30  # rows among which the heading is looked for
LEAST_GROUPED = 5  # different numbers that may be grouped by points, before it is asked


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Attributes:
        encoding: Name of the encoding, as Python knows it.
        separator: What stands between two fields.
        decimal: ``.`` or ``,``.
        certain: Whether some number has a decimal mark that groups no thousands, or the mark is stated; then the other
            mark may group thousands.
        doubtful: A number such as 1.234, if all that have a mark are of this form.
        signs: Signs of a currency or of percent, or units, that all numbers of a column are written with.
        heading: Lines before the heading.
        skip: Lines before the first row: what precedes the heading, the heading, and units below it.
        returns: Whether lines end with a carriage return alone.
        multiline: Whether texts may hold line breaks.
        columns: Names from the heading, without surrounding blanks. A column without a name is called
            ``column 3`` after its place, and of two equal names the second is ``name.1``.
    """

    encoding: str
    separator: str
    decimal: str
    certain: bool
    doubtful: str | None
    signs: tuple[str, ...]
    heading: int
    skip: int
    returns: bool
    multiline: bool
    columns: tuple[str, ...]


def find_dialect(
    path: Path, *, encoding: str | None = None, separator: str | None = None, decimal: str | None = None
) -> Dialect:
    """Recognise how a CSV file is written from its first rows.

    Args:
        path: The file.
        encoding: The encoding, if stated.
        separator: The separator, if stated.
        decimal: The decimal mark, if stated.

    Raises:
        InputError: If the file is empty or has no heading, or its numbers may be read in two ways.
    """
    with open_file(path) as file:
        raw = file.read(SAMPLE)
    encoding = encoding or find_encoding(raw, whole=len(raw) < SAMPLE)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(raw, final=len(raw) < SAMPLE)
    except (LookupError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read in the encoding {encoding!r} ({error})", where=path, remedy="another data.encoding"
        ) from error
    text = text.rstrip("\0")
    if len(raw) == SAMPLE:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text  # the last line may be cut
    passed = 0  # lines that are no row of the table
    stated = _SEPARATOR_STATED.match(text)  # for spreadsheets
    if stated:
        text, separator, passed = text[stated.end() :], separator or stated[1], 1
    if text.lstrip('"').startswith("TOA5"):  # a data logger, whose first line tells of the station
        text, passed = text[text.find("\n") + 1 :], passed + 1
    separator, records = _separator(text, separator)
    records = [(line + passed, fields) for line, fields in records]
    if not records:
        raise InputError("the file is empty", where=path, remedy="a CSV with a heading and rows")
    width = _width(records)
    place = _place_of_heading(records, width)
    if (
        place
        and len(records[place - 1][1]) == width - 1 > 1
        and not any(fields[-1].strip() for _, fields in records[place:])
    ):
        place -= 1  # every row ends in a separator, the heading does not
    if width == 1 and len(words := records[place][1][0].split()) > 1 and _all_of(len(words), records[place + 1 :]):
        raise InputError(
            "fields seem to be separated by blanks",
            where=path,
            remedy='save it with commas or tabs, or state data.separator: " " if one blank stands between two fields',
        )
    line, heading = records[place]
    heading = heading + [""] * (width - len(heading))
    heading = _with_words_above(heading, [fields for _, fields in records[:place] if len(fields) == width])
    units = _lines_of_units([fields for _, fields in records[place + 1 :]])
    below = records[place + units][0]
    rows = [fields for _, fields in records[place + 1 + units :]]
    _check_heading(heading, [fields for _, fields in records[place + 1 :]], path, line)
    signs = _signs(rows)
    found, certain, doubtful = _decimal([[_bare(cell) for cell in fields] for fields in rows], path, decimal)
    return Dialect(
        encoding=encoding, separator=separator, decimal=found, certain=certain, doubtful=doubtful, signs=signs,
        heading=line - 1 - sum(name.count("\n") for name in heading), skip=below,
        returns="\r" in text and "\n" not in text,
        multiline=any("\n" in field for fields in rows for field in fields), columns=_names(heading),
    )  # fmt: skip


def line_of(path: Path, dialect: Dialect, row: int) -> int:
    """Number of the line on which a row ends, counted from 1 as editors do.

    Args:
        path: The file.
        dialect: How it is written.
        row: Number of the row among those that are not blank, from 0.
    """
    with open_file(path) as file:
        reader = read_records(file, dialect)
        for number, _ in enumerate(reader_fields(reader)):
            if number == row:
                return dialect.skip + reader.line_num
    return dialect.skip + reader.line_num


def read_records(file: IO[bytes], dialect: Dialect) -> Any:
    """A ``csv.reader`` that stands behind the heading."""
    lines = io.TextIOWrapper(file, encoding=dialect.encoding, errors="replace", newline="")
    for _ in range(dialect.skip):
        next(lines, None)
    return csv.reader(lines, delimiter=dialect.separator)


def reader_fields(reader: Any) -> Iterator[list[str]]:
    """Fields of all rows that are not blank."""
    return (fields for fields in reader if fields)


def _records(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """Rows that are not blank, with the number of the line each ends on."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    records = []
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                records.append((reader.line_num, fields))  # noqa: PERF401 - a csv.Error must not lose what came before
    except csv.Error:
        pass
    return records


def _width(records: list[tuple[int, list[str]]]) -> int:
    """The usual number of fields."""
    return Counter(len(fields) for _, fields in records).most_common(1)[0][0]


def _separator(text: str, stated: str | None) -> tuple[str, list[tuple[int, list[str]]]]:
    if stated is not None:
        return stated, _records(text, stated)
    best, found = 0.0, (",", _records(text, ","))
    for candidate in SEPARATORS:
        records = _records(text, candidate)
        if not records or (width := _width(records)) < 2:
            continue
        # A separator within quotes leaves half of them in a field.
        whole = [fields for _, fields in records if not any(field.count('"') % 2 for field in fields)]
        share = round(sum(len(fields) == width for fields in whole) / len(records), 2)
        if share > best:
            best, found = share, (candidate, records)
    return found


def _check_heading(heading: list[str], rows: list[list[str]], path: Path, line: int) -> None:
    names = [name.strip() for name in heading if name.strip()]
    times = sum(bool(_TIME.match(name) or _PERIOD.match(name)) for name in names)
    numbers = sum(bool(_NUMBER.match(name)) and not _TIME.match(name) and not _PERIOD.match(name) for name in names)
    if times > 2 and times > len(names) // 2:
        raise InputError(
            "the heading holds times, so that each row is a series",
            where=f"{path}, line {line}",
            remedy="transpose the table: one row a time, one column a series",
        )
    below = rows[: len(rows) // 2 + 1]
    in_columns_of_times = any(
        _TIME.match(name) and below and all(j < len(fields) and _TIME.match(fields[j]) for fields in below)
        for j, name in enumerate(heading)
    )
    if in_columns_of_times or times + numbers == len(names):
        raise InputError(
            f"the first row holds data ({', '.join(names[:3])}) and no names of columns",
            where=f"{path}, line {line}",
            remedy="put a line of names before it, such as ds,y",
        )


def _place_of_heading(records: list[tuple[int, list[str]]], width: int) -> int:
    """The row as wide as the table that names the columns.

    Of several it is the first that names a time, else the first before the rows that has the most different names.
    """
    wide = [i for i, (_, fields) in enumerate(records) if len(fields) == width][:HEAD]
    for i in wide:
        cells = [cell.strip().lower() for cell in records[i][1]]
        if _TIME_WORDS & set(cells) and not any(_NUMBER.match(cell) or _TIME.match(cell) for cell in cells):
            return i
    before = wide[: 1 + _lines_of_units([fields for _, fields in records[wide[0] + 1 :]])]
    return max(before, key=lambda i: len({cell.strip() for cell in records[i][1]} - {""}))


def _all_of(words: int, records: list[tuple[int, list[str]]]) -> bool:
    """Whether all rows have one field of so many words."""
    return bool(records) and all(len(fields) == 1 and len(fields[0].split()) == words for _, fields in records)


def _lines_of_units(rows: list[list[str]]) -> int:
    """Lines below the heading that have no time where the rows have one: units, and what else is told of the columns.

    The last of them has words for a time or texts where the rows have numbers, and no number.
    """
    width = min(map(len, rows), default=0)
    if rows and all(_FIELD_WIDTHS.match(cell.strip()) for cell in rows[0]):
        return 1
    rest = rows[min(HEAD, len(rows) // 2) :]
    dated = [j for j in range(width) if rest and all(_digits(fields[j]) >= 4 for fields in rest)]
    numbers = [j for j in range(width) if _holds_numbers([fields[j] for fields in rest])]
    times = [j for j in dated if j not in numbers] or dated[:1]
    numbers = [j for j in numbers if j not in times]
    if not times or not numbers:
        return 0
    untimed = itertools.takewhile(lambda fields: all(_digits(fields[j]) < 2 for j in times), rows[: len(rows) - 3])
    said = [
        any(fields[j].strip() not in MISSING for j in (*times, *numbers))
        and not any(_NUMBER.match(_bare(fields[j])) for j in numbers)
        for fields in untimed
    ]
    return len(said) - said[::-1].index(True) if True in said else 0


def _holds_numbers(cells: list[str]) -> bool:
    there = [cell for cell in cells if cell.strip() not in MISSING]
    return bool(there) and all(_NUMBER.match(_bare(cell)) for cell in there)


def _signs(rows: list[list[str]]) -> tuple[str, ...]:
    """Signs and units that nearly all cells of a column have."""
    found = set()
    for column in itertools.zip_longest(*rows, fillvalue=""):
        cells = [GROUPS.sub("", cell.strip()) for cell in column if cell.strip() not in MISSING]
        signs = Counter(match[1] or match[2] for cell in cells if (match := _SIGN.match(cell)))
        found |= {sign for sign, times in signs.items() if times > 0.9 * len(cells) or not sign.isalpha()}
    return tuple(sorted(found))


def _digits(cell: str) -> int:
    return sum(map(str.isdecimal, cell))


def _bare(cell: str) -> str:
    """A number without signs of currency or percent, and without groups of thousands that are no marks elsewhere."""
    bare = _UNIT.sub("", cell.strip().strip("$€£¥%() ")).replace("\u2212", "-")
    return GROUPS.sub("", bare[:-1] if bare.endswith("-") else bare)  # some write the minus behind


def _with_words_above(heading: list[str], above: list[list[str]]) -> list[str]:
    """A heading whose names are blank or stand twice, made of all lines of a heading of several."""
    times = Counter(heading)
    return [
        " ".join(dict.fromkeys(word for fields in (*above, heading) if (word := fields[j].strip())))
        if times[name] > 1 or not name.strip()
        else name
        for j, name in enumerate(heading)
    ]


def _names(heading: list[str]) -> tuple[str, ...]:
    names: list[str] = []
    for place, raw in enumerate(heading):
        name = raw.strip() or f"column {place + 1}"
        again = sum(other == name or other.startswith(f"{name}.") for other in names) if name in names else 0
        names.append(f"{name}.{again}" if again else name)
    return tuple(names)


def _decimal(rows: list[list[str]], path: Path, stated: str | None) -> tuple[str, bool, str | None]:
    """Decimal mark, whether it is certain, and a number that could be meant otherwise if it is not."""
    if stated is not None:
        return stated, True, None
    columns = [[cell for cell in column if _digits(cell)] for column in itertools.zip_longest(*rows, fillvalue="")]
    columns = [column for column in columns if _are_numbers(column)]
    marked = [cell for column in columns for cell in column if "." in cell or "," in cell]
    votes = {
        mark: sum(bool(_DECIMAL[mark].match(cell)) and not _GROUPED[mark].match(cell) for cell in marked)
        for mark in ".,"
    }
    if any(votes.values()):
        return "," if votes[","] > votes["."] else ".", True, None
    for mark, other in (".,", ",."):
        if any(_MANY_GROUPS[other].match(cell) for cell in marked):
            return mark, True, None
    commas = next((cell for cell in marked if "," in cell), None)
    doubtful = commas or _among_integers(columns)
    if doubtful:
        raise InputError(
            f"{doubtful!r} may have a decimal {'comma' if commas else 'point'} or group thousands by it, and no cell "
            "decides it",
            where=path,
            remedy='data.decimal: "," or "."',
        )
    return ".", False, next((cell for cell in marked if _GROUPED["."].match(cell)), None)


def _are_numbers(cells: list[str]) -> bool:
    """Whether most cells are numbers, with whatever marks, and not months such as 2021.05."""
    numbers = sum(any(form.match(cell) for form in (_NUMBER, *_DECIMAL.values(), *_GROUPED.values())) for cell in cells)
    return 2 * numbers > len(cells) and not all(map(_MONTH.match, cells))


def _among_integers(columns: list[list[str]]) -> str | None:
    """A number such as 1.012 of a column whose other numbers are 987 and the like: never 1.01, 1.0125 or 1012."""
    for column in columns:
        cells = {cell.lstrip("+-") for cell in column if _NUMBER.match(cell)}
        grouped = {cell for cell in cells if _GROUPED["."].match(cell)}
        others = cells - grouped
        if len(grouped) >= LEAST_GROUPED and others and all(cell.isdecimal() and len(cell) <= 3 for cell in others):
            return min(grouped)
    return None
