"""Draws docs/attention.svg: who attends to whom, and how much, measured from each mechanism itself.

Run from the root of the project: ``.venv/bin/python docs/draw_attention.py``. With the identity as values, the output
of a mechanism is its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from common.attention import additive, full, linear, local, probsparse, prototype, summarise, window2d

LENGTH, CELL, GAP, HEAD, COLUMNS, SHADES = 36, 5, 28, 22, 4, 8
GRID = (6, 6)
COLOUR = "#1f4e8c"

PATTERNS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "full": full,
    "full, causal": lambda q, k, v: full(q, k, v, causal=True),
    "local (window 4)": lambda q, k, v: local(q, k, v, window=4),
    "local, causal, 2 global": lambda q, k, v: local(q, k, v, window=4, global_tokens=2, causal=True),
    "probsparse": lambda q, k, v: probsparse(q, k, v, factor=1.5),
    "probsparse, causal": lambda q, k, v: probsparse(q, k, v, factor=1.0, causal=True),
    "linear": linear,
    "linear, causal": lambda q, k, v: linear(q, k, v, causal=True),
    "prototype (6)": lambda q, k, v: prototype(q, k, v, summary=summarise(q[0, :, ::6], k)),
    "window2d (6 x 6, window 3)": lambda q, k, v: window2d(q, k, v, grid=GRID, window=3),
    "window2d, shifted by 1": lambda q, k, v: window2d(q, k, v, grid=GRID, window=3, shift=1),
    "additive": lambda q, k, v: additive(q, k, v, score=q[0, :, 0]),
}


def weights(mechanism: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """Weights ``[L, S]`` of one head on random queries and keys."""
    generator = torch.Generator().manual_seed(3)
    query, key = (1.5 * torch.randn(1, 1, LENGTH, 16, generator=generator) for _ in range(2))
    return mechanism(query, key, torch.eye(LENGTH)[None, None])[0, 0]


def panel(name: str, pattern: Tensor, x: float, y: float) -> list[str]:
    """One picture: a row a query, a column a key, darker where the weight is larger."""
    side = LENGTH * CELL
    lines = [
        f'<text x="{x}" y="{y - 7}">{name}</text>',
        f'<rect x="{x}" y="{y}" width="{side}" height="{side}" fill="#f3f4f6"/>',
    ]
    # As few shades as tell weights apart, each one path, so that the file stays small.
    shade = (pattern.clamp(0, 1).sqrt() * SHADES).ceil().int()
    for level in range(1, SHADES + 1):
        path = "".join(
            f"M{column * CELL} {row * CELL}h{CELL}v{CELL}h-{CELL}z"
            for row, column in (shade == level).nonzero().tolist()
        )
        if path:
            lines.append(f'<path transform="translate({x} {y})" fill-opacity="{level / SHADES:.2f}" d="{path}"/>')
    return lines


def main() -> None:
    """Draw all patterns into one file."""
    side = LENGTH * CELL
    rows = -(-len(PATTERNS) // COLUMNS)
    width, height = COLUMNS * (side + GAP) + GAP, rows * (side + GAP + HEAD) + GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<g font-family="sans-serif" font-size="12" fill="{COLOUR}" shape-rendering="crispEdges">',
    ]
    for number, (name, mechanism) in enumerate(PATTERNS.items()):
        x = GAP + number % COLUMNS * (side + GAP)
        y = GAP + HEAD + number // COLUMNS * (side + GAP + HEAD) - GAP / 2
        lines += panel(name, weights(mechanism), x, y)
    lines += ["</g>", "</svg>"]
    (Path(__file__).parent / "attention.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
