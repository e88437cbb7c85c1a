"""Times written as spans from a beginning to an end, ``01.03.2021 00:00 - 01.03.2021 01:00``: the beginning counts."""

from __future__ import annotations

import re
from typing import NamedTuple

import pandas as pd

_BETWEEN = (r"^(.*\S)(\s+(?:-|\u2013|to|bis|/)\s+|\s*--\s*)(\d.*)$", r"^(.*\S)(/)(\d.*)$")
LEAST_DIGITS = 3  # of a beginning and of an end


class Span(NamedTuple):
    """How a file writes the ends of the spans that its times are.

    Attributes:
        separator: What stands between the beginning and the end.
        length: Nanoseconds from one to the other.
        words: Words of an end that is the time of day alone; 0 if it is written as a beginning is.
        hour24: Whether an end at midnight is written as 24:00.
    """

    separator: str
    length: int
    words: int
    hour24: bool


def split_spans(texts: pd.Series) -> tuple[pd.Series, pd.Series, str, int] | None:
    """Beginnings, whole ends, what stands between them, and the words that ends are written in; None for no spans.

    An end is written as its beginning is (0 words), or as the time of day of that.
    """
    found = (texts.str.extract(between) for between in _BETWEEN)
    parts = next((parts for parts in found if len(parts) and not bool(parts.isna().any(axis=None))), None)
    if parts is None or bool((parts[1] != parts[1].iloc[0]).any()):
        return None
    first, last = parts[0], parts[2]
    if min(first.str.count(r"\d").min(), last.str.count(r"\d").min()) < LEAST_DIGITS:
        return None
    shapes = [part.str.replace(r"\d+|[A-Za-z]+", _kind, regex=True) for part in (first, last)]
    separator = str(parts[1].iloc[0])
    if bool((shapes[0] == shapes[1]).all()):
        return first, last, separator, 0
    words = int(last.str.count(" ").iloc[0]) + 1
    if all(a.endswith(f" {b}") for a, b in zip(*shapes, strict=True)):
        return first, first.str.rsplit(" ", n=words).str[0] + " " + last, separator, words
    return None


def _kind(match: re.Match[str]) -> str:
    return "0" if match[0].isdecimal() else "a"


def beginnings(texts: pd.Series, separator: str) -> pd.Series:
    """The beginnings of spans; missing where a text is none."""
    parts = texts.str.partition(separator)
    return parts[0].mask(parts[1] == "")
