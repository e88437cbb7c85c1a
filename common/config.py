"""Configuration files: YAML in, frozen models out, every mistake reported at once.

Configuration objects live at the edge: commands load them and hand plain arguments to modules.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from common.errors import ConfigError
from common.files import existing_file

_TEXT = re.compile(r"[%@`].*|[^\w\s]|on|off|yes|no", re.IGNORECASE)
"""Values that YAML keeps for itself: formats such as %Y, a comma for a decimal mark, a column that is called on."""


class Config(BaseModel):
    """Base of all configuration models: frozen, and a key nobody knows is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


ConfigT = TypeVar("ConfigT", bound=Config)


def load_config(path: Path, model: type[ConfigT], overrides: tuple[str, ...] = ()) -> ConfigT:
    """Read a YAML file into ``model``.

    Args:
        path: The configuration file.
        model: The pydantic model to fill.
        overrides: Settings from the command line, each ``a.b.c=value`` with the value in YAML.

    Returns:
        The validated, frozen configuration.

    Raises:
        InputError: If the file is not there.
        ConfigError: If it is not YAML, or breaks rules; the message lists all of them with their key
            paths and lines.
    """
    text = _read_text(existing_file(Path(path), "the configuration"))
    try:
        tree = yaml.safe_load(text)
        lines = _key_lines(yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ConfigError(
            f"not valid YAML: {_one_line(error)}", where=path, remedy="check indentation, quotes and colons"
        ) from error
    if tree is None:
        raise ConfigError("the file is empty", where=path, remedy="start from a file under configs/")
    if not isinstance(tree, dict):
        raise ConfigError(
            f"the top level must be keys and values, found {type(tree).__name__}",
            where=path,
            remedy="start from a file under configs/",
        )
    for override in overrides:
        apply_override(tree, override)
    return validate(tree, model, where=path, lines=lines)


def validate(
    tree: dict[str, Any], model: type[ConfigT], *, where: object, lines: dict[tuple[Any, ...], int] | None = None
) -> ConfigT:
    """Turn plain data into ``model``, or raise one error that lists every broken rule.

    Args:
        tree: The data, as read from YAML or JSON.
        model: The pydantic model to fill.
        where: File the data came from, for the message.
        lines: Line number of each key path, where known.

    Raises:
        ConfigError: If one or more rules are broken.
    """
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        problems = [_describe(detail, model, tree, lines or {}) for detail in error.errors()]
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        raise ConfigError(f"{count}\n" + "\n".join(f"  - {p}" for p in problems), where=where) from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read as UTF-8 text ({error})", where=path) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _key_lines(node: yaml.Node | None, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], int]:
    """Line (from 1) of each key path; a key given twice is refused, since YAML would drop the first."""
    lines: dict[tuple[Any, ...], int] = {}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, key.value)
            if here in lines:
                raise yaml.YAMLError(f"key {key.value!r} stands twice, again in line {key.start_mark.line + 1}")
            lines[here] = key.start_mark.line + 1
            lines.update(_key_lines(value, here))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*path, index)] = value.start_mark.line + 1
            lines.update(_key_lines(value, (*path, index)))
    return lines


def apply_override(tree: dict[str, Any], override: str) -> None:
    """Set one key of plain data.

    Args:
        tree: The data, changed in place.
        override: ``a.b.c=value`` with the value in YAML; a time format such as ``%d/%m/%Y``, which is none, is text.

    Raises:
        ConfigError: If it is not of this form, or the value not YAML.
    """
    key, separator, raw = override.partition("=")
    if not separator or not key:
        raise ConfigError(
            "an override is written key=value", where=f"--set {override}", remedy="--set training.steps=200"
        )
    try:
        value = raw if _TEXT.fullmatch(raw) else yaml.safe_load(raw)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"the value is not YAML: {_one_line(error)}",
            where=f"--set {override}",
            remedy=f"""quotes around each text, as in --set '{key}=["a", "b"]' or --set '{key}="a"'""",
        ) from error
    *parents, last = key.split(".")
    branch = tree
    for parent in parents:
        branch = branch.setdefault(parent, {})
        if not isinstance(branch, dict):
            raise ConfigError(f"{parent!r} is not a group of keys", where=f"--set {override}")
    branch[last] = value


def _describe(
    detail: ErrorDetails, model: type[BaseModel], tree: dict[str, Any], lines: dict[tuple[Any, ...], int]
) -> str:
    location = _location_in_file(detail["loc"], tree)
    line = lines.get(location)
    place = ".".join(map(str, location)) or "(top level)"
    place += f" (line {line})" if line else ""
    kind = detail["type"]
    if kind == "extra_forbidden":
        known = _fields_at(model, detail["loc"][:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.6)
        hint = f", did you mean {near[0]!r}?" if near else ""
        return f"{place}: unknown key{hint} (known here: {', '.join(known) or 'none'})"
    if kind == "missing":
        return f"{place}: this key is required"
    message = detail["msg"].removeprefix("Value error, ").rstrip(".")
    given = "" if isinstance(detail["input"], dict | list) else f", got {detail['input']!r}"
    return f"{place}: {message[:1].lower()}{message[1:]}{given}"


def _location_in_file(loc: tuple[Any, ...], tree: Any) -> tuple[Any, ...]:
    """Drop the parts of a pydantic location that are not in the file (tags of chosen union members)."""
    kept: list[Any] = []
    for index, part in enumerate(loc):
        is_last = index == len(loc) - 1
        if (isinstance(tree, dict) and part in tree) or (
            isinstance(tree, list) and isinstance(part, int) and part < len(tree)
        ):
            tree = tree[part]
        elif not is_last:
            continue
        kept.append(part)
    return tuple(kept)


def _fields_at(model: Any, loc: tuple[Any, ...]) -> list[str]:
    """Field names of the model that a pydantic location points into."""
    candidates: list[Any] = [model]
    for part in loc:
        following: list[Any] = []
        for candidate in candidates:
            if not (isinstance(candidate, type) and issubclass(candidate, BaseModel)):
                continue
            field = candidate.model_fields.get(part) if isinstance(part, str) else None
            if field is not None:
                following.extend(_models_in(field.annotation))
            elif _tag_of(candidate) == part or isinstance(part, int):
                following.append(candidate)
        candidates = following
    tagged = [c for c in candidates if loc and _tag_of(c) == loc[-1]]
    return [name for candidate in tagged or candidates for name in candidate.model_fields]


def _models_in(annotation: Any) -> list[Any]:
    """Every configuration model named anywhere in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in getattr(annotation, "__args__", ()) for found in _models_in(argument)]


def _tag_of(model: Any) -> Any:
    """The value of the ``kind`` discriminator of a model, if it has one."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return None
    field = model.model_fields.get("kind")
    return None if field is None else field.default
