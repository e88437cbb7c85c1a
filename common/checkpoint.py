"""A training on its way, as one file, from which it goes on where it was interrupted."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from common.errors import InputError, UsageError
from common.files import atomic_path

_MADE_OF = "made_of"


class Checkpoint:
    """Where the state of a training is kept until it has ended.

    Args:
        path: The file.
        made_of: What the training hangs on, by name: settings, and hashes of the data. A state that was reached with
            anything else is refused.
    """

    def __init__(self, path: Path, made_of: Mapping[str, str]) -> None:
        self.path, self.made_of = path, dict(made_of)

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace what is kept, in one step."""
        content = io.BytesIO()  # torch's own writer tells of a full disk without saying so
        torch.save({_MADE_OF: self.made_of, **state}, content)
        with atomic_path(self.path) as partial:
            partial.write_bytes(content.getbuffer())

    def load(self) -> dict[str, Any] | None:
        """What is kept, or None.

        Raises:
            UsageError: If it was reached with other settings or data.
            InputError: If the file is damaged.
        """
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, weights_only=True, map_location="cpu")
            before = state.pop(_MADE_OF)
        except (OSError, RuntimeError, EOFError, KeyError, AttributeError, pickle.UnpicklingError) as error:
            raise InputError(
                "this checkpoint is damaged", where=self.path, remedy="remove it, or fit without --resume"
            ) from error
        changed = [
            f"{name} ({before.get(name, 'not there')}, now {self.made_of.get(name, 'not there')})"
            for name in sorted({*before, *self.made_of})
            if before.get(name) != self.made_of.get(name)
        ]
        if changed:
            raise UsageError(
                f"the training to go on with was another one: {', '.join(changed)}",
                where=self.path,
                remedy="the same settings and data as before, or fit without --resume",
            )
        return state

    def remove(self) -> None:
        """Forget what is kept."""
        self.path.unlink(missing_ok=True)
