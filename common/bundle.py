"""A trained model as a folder: ``model.safetensors``, ``bundle.json`` and ``card.md``.

Weights are plain tensors and everything else is JSON, so that reading a bundle from a stranger can load
wrong numbers but can never run code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import BundleError
from common.files import sha256, write_json, write_text

if TYPE_CHECKING:
    import torch
    from torch import nn

FORMAT = 1
MANIFEST = "bundle.json"
WEIGHTS = "model.safetensors"
CARD = "card.md"


@dataclass(frozen=True)
class Bundle:
    """What was read from a run folder.

    Attributes:
        path: The folder.
        spec: Everything needed to build the model again, as plain JSON data.
        state: Tensors by name.
    """

    path: Path
    spec: dict[str, Any]
    state: dict[str, torch.Tensor]

    def load_into(self, model: nn.Module) -> None:
        """Copy the tensors into ``model``.

        Raises:
            BundleError: If names or shapes do not fit the model that ``spec`` describes.
        """
        try:
            model.load_state_dict(self.state, strict=True)
        except RuntimeError as error:
            detail = " ".join(str(error).split())
            raise BundleError(f"the weights do not fit the model: {detail}", where=self.path / WEIGHTS) from error


def write_bundle(folder: Path, *, kind: str, spec: dict[str, Any], state: dict[str, torch.Tensor], card: str) -> None:
    """Write a bundle into an existing folder.

    Args:
        folder: The run folder.
        kind: ``forecast`` or ``segment``.
        spec: Everything needed to build the model again, as plain JSON data.
        state: Tensors by name, as from ``module.state_dict()``.
        card: The model card, in Markdown.
    """
    from safetensors.torch import save

    weights = folder / WEIGHTS
    # Written by Python, so that a full disk is the OSError that the command knows how to tell.
    weights.write_bytes(save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()}))
    manifest = {
        "format": FORMAT,
        "farview": version("farview"),
        "kind": kind,
        "weights_sha256": sha256(weights),
        "spec": spec,
    }
    write_json(folder / MANIFEST, manifest)
    write_text(folder / CARD, card)


def read_bundle(folder: Path, kind: str) -> Bundle:
    """Read and verify a bundle.

    Args:
        folder: The run folder.
        kind: The kind the caller can use, ``forecast`` or ``segment``.

    Raises:
        BundleError: If the folder is no run folder, is damaged, of another kind, or of a newer format.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    manifest = _read_manifest(folder)
    if manifest["kind"] != kind:
        raise BundleError(
            f"this run is of kind {manifest['kind']!r}, but this command needs {kind!r}",
            where=folder,
            remedy=f"farview {manifest['kind']} predict, or a run written by farview {kind} fit",
        )
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise BundleError(f"{WEIGHTS} is missing", where=folder, remedy="copy the whole run folder, or fit again")
    if sha256(weights) != manifest["weights_sha256"]:
        raise BundleError(
            f"does not have the sha256 that {MANIFEST} states, so it was damaged or changed",
            where=weights,
            remedy="copy the run folder again, or fit again",
        )
    try:
        state = load_file(weights)
    except SafetensorError as error:
        raise BundleError(f"is not a safetensors file ({error})", where=weights, remedy="fit again") from error
    return Bundle(path=folder, spec=manifest["spec"], state=state)


def is_run(folder: Path, kind: str) -> bool:
    """Whether a folder is a run of that kind."""
    try:
        return _read_manifest(folder)["kind"] == kind
    except BundleError:
        return False


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        what = "this folder has no" if folder.is_dir() else "there is no such folder, so no"
        raise BundleError(f"{what} {MANIFEST}", where=folder, remedy="give the folder that fit wrote with -o")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BundleError(
            f"is not JSON ({error})", where=path, remedy="copy the run folder again, or fit again"
        ) from error
    wanted = {"format": int, "kind": str, "weights_sha256": str, "spec": dict}
    broken = [
        key for key, kind in wanted.items() if not (isinstance(manifest, dict) and isinstance(manifest.get(key), kind))
    ]
    if broken:
        raise BundleError(f"lacks the keys {', '.join(broken)}", where=path, remedy="fit again")
    if not 1 <= manifest["format"] <= FORMAT:
        raise BundleError(
            f"is of format {manifest['format']}; this farview reads 1 to {FORMAT}",
            where=path,
            remedy="update farview",
        )
    return manifest
