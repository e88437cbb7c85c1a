"""What an attention module may be made of; each rule is stated once."""

from __future__ import annotations

from typing import Literal, get_args

from common.attention.full import check_normalise
from common.errors import ShapeError

Mechanism = Literal["full", "probsparse", "local", "linear", "prototype", "window2d", "additive"]
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
Position = Literal["rotary", "relative"]


def check_sizes(dim: int, heads: int, kv_heads: int, key_dim: int, dropout: float) -> None:
    """Check sizes and the rate of dropout.

    Raises:
        ShapeError: If one is out of range, or they do not divide.
    """
    if min(dim, heads, kv_heads, key_dim) < 1:
        raise ShapeError(f"dim {dim}, heads {heads}, kv_heads {kv_heads} and key_dim {key_dim} must be at least 1")
    if dim % heads:
        raise ShapeError(
            f"dim {dim} does not divide by {heads} heads",
            remedy=f"dim {heads * max(1, round(dim / heads))}, or another number of heads",
        )
    if heads % kv_heads:
        raise ShapeError(
            f"{heads} heads cannot share {kv_heads} key/value heads",
            remedy="make heads a multiple of kv_heads",
        )
    if not 0 <= dropout < 1:
        raise ShapeError(f"dropout {dropout} is not within 0 and 1")


def check_position(mechanism: str, position: str | None, width: int) -> None:
    """Check the mechanism, and that the kind of position goes with it.

    Raises:
        ShapeError: If not; the message says what does.
    """
    if mechanism not in MECHANISMS:
        raise ShapeError(f"mechanism {mechanism!r} is not known", remedy=f"one of {', '.join(MECHANISMS)}")
    if position not in (None, *get_args(Position)):
        raise ShapeError(f"position {position!r} is not known", remedy="rotary, relative, or None")
    if position == "relative" and mechanism not in ("full", "window2d"):
        raise ShapeError(f"position 'relative' does not go with {mechanism!r}", remedy="use full or window2d")
    # Elsewhere scores are no products of one query with one key, and would not depend on the distance alone.
    if position == "rotary" and mechanism not in ("full", "probsparse", "local"):
        raise ShapeError(f"position 'rotary' does not go with {mechanism!r}", remedy="use full, probsparse or local")
    if position == "rotary" and width % 2:
        raise ShapeError(f"rotary positions need an even width a head, got {width}")


def check_options(mechanism: str, *, dropout: float, scaled: bool, normalise: str) -> None:
    """Check options that not every mechanism has.

    Raises:
        ShapeError: If the mechanism does not have one that is given.
    """
    check_normalise(normalise)
    if mechanism != "full" and (not scaled or normalise != "softmax"):
        raise ShapeError("scaled=False and normalise are options of 'full' alone", remedy="mechanism='full'")
    if mechanism == "linear" and dropout:
        raise ShapeError("linear attention writes out no weights to drop", remedy="dropout=0")


def check_own(mechanism: str, position: str | None, **given: float | None) -> None:
    """Check options of one mechanism: given to it alone, and within their range.

    Args:
        mechanism: The mechanism.
        position: Kind of position.
        given: Options by name; None where it is left at its default.

    Raises:
        ShapeError: If one belongs to another mechanism, or is out of range.
    """
    owners = {
        "window": ("window2d", "local"), "shift": ("window2d",), "global_tokens": ("local",),
        "prototypes": ("prototype",), "factor": ("probsparse",), "reach": ("full",),
    }  # fmt: skip
    for name, value in given.items():
        if value is None:
            continue
        if mechanism not in owners[name] or (name == "reach" and position != "relative"):
            whom = "position='relative' in 'full'" if name == "reach" else " and ".join(map(repr, owners[name]))
            raise ShapeError(f"{name} is an option of {whom}", remedy=f"leave out {name}")
        least = 1 if name == "prototypes" or (name == "window" and mechanism == "window2d") else 0
        if not least <= value < float("inf") or (name == "factor" and value == 0):
            raise ShapeError(f"{name} {value} is too small" if value < 1 else f"{name} {value} is not finite")
    if given["shift"] is not None and given["shift"] >= (given["window"] or 8):  # pyright: ignore[reportArgumentType]
        raise ShapeError(f"shift {given['shift']} must be smaller than the window")
