"""One base error and a small subclass for each thing a user can get wrong.

A message names the place (file, line, key or series), the rule that was broken and the remedy, so that
the command line can print it as it is and a caller can match on the class.
"""

from __future__ import annotations


class FarviewError(Exception):
    """Base of every error farview raises on purpose.

    Args:
        problem: What is wrong, as one sentence without a final full stop.
        where: File, line, key or series the problem was found in.
        remedy: What to do about it, as one sentence without a final full stop.
    """

    exit_code = 1

    def __init__(self, problem: str, *, where: object = None, remedy: str | None = None) -> None:
        self.problem = problem
        self.where = None if where is None else str(where)
        self.remedy = remedy
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  try: {remedy}" if remedy else ""
        super().__init__(f"{place}{problem}{advice}")


class UsageError(FarviewError):
    """The request itself is wrong; nothing was done."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration that breaks one or more rules, all of them listed."""


class InputError(UsageError):
    """An input file that cannot be used as it is."""


class BundleError(UsageError):
    """A run folder that is missing, damaged, or of another kind than the command needs."""


class ShapeError(FarviewError, ValueError):
    """A tensor or size that a module cannot work with."""


class DatasetError(FarviewError):
    """A data set that could not be fetched or verified."""
