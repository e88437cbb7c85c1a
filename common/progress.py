"""What a running command says: log lines and progress bars, all on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger("farview")


class _JsonLines(logging.Formatter):
    """One JSON object a line, with the time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        return json.dumps(entry, ensure_ascii=False)


def configure_logging(log_format: str) -> None:
    """Send farview's log to standard error.

    Args:
        log_format: ``text`` for people or ``json`` for one object a line.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if log_format == "json" else logging.Formatter("%(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a progress bar while the block runs, if standard error is a terminal.

    Args:
        description: What is being done.
        total: Number of units of work.

    Yields:
        ``advance(n=1, note="")``: marks ``n`` more units done and shows ``note`` beside the bar.
    """
    if not sys.stderr.isatty():
        yield lambda *_args, **_kwargs: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total, note="")

        def advance(n: int = 1, note: str = "") -> None:
            bar.update(task, advance=n, note=note)

        yield advance
