"""The one place that chooses which kernel computes attention.

Dense attention goes to torch's ``scaled_dot_product_attention``, which itself picks flash, memory-efficient or math
by device, type and mask (``torch.nn.attention.sdpa_kernel`` forces one). Sparse patterns known beforehand go to
FlexAttention on a GPU where sequences are long enough that skipping whole blocks pays; elsewhere to views of blocks.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from common.attention.masks import near

FLEX_LENGTH = 4096  # queries from which on a block mask pays
FLEX_WIDTH = 16  # least width of a head that its kernels take


def fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Softmax attention by a fused kernel.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        mask: Boolean, or added to the scores; broadcastable to ``[B, H, L, S]``. No row may be masked out entirely.
        causal: See no later key; for ``L = S`` and without a mask.
        dropout: Probability of dropping a weight.
        scale: Factor on the scores; ``1 / sqrt(D)`` by default.

    Returns:
        ``[B, H, L, Dv]``.
    """
    return scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=causal,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )


def flex_pays(query: Tensor, *, masked: bool, dropout: float) -> bool:
    """Whether FlexAttention should compute a windowed pattern; it knows neither dropout nor masks made elsewhere."""
    long, wide = query.shape[2] >= FLEX_LENGTH, query.shape[3] >= FLEX_WIDTH
    return query.is_cuda and long and wide and not masked and not dropout


def windowed_flex(
    query: Tensor, key: Tensor, value: Tensor, *, window: int, global_tokens: int, causal: bool
) -> Tensor:
    """The pattern of :func:`common.attention.local.local` by FlexAttention (Dong et al. 2024)."""
    from torch.nn.attention.flex_attention import flex_attention

    queries, keys = query.shape[2], key.shape[2]
    pattern = _block_mask(queries, keys, window, global_tokens, causal, str(query.device))
    kernel = _compiled_flex() if query.is_cuda else flex_attention
    return kernel(query, key, value, block_mask=pattern, enable_gqa=query.shape[1] != key.shape[1])


@lru_cache(maxsize=32)
def _block_mask(queries: int, keys: int, window: int, global_tokens: int, causal: bool, device: str) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    def seen(batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:  # noqa: ARG001 - torch's signature
        return near(row + keys - queries, column, window=window, global_tokens=global_tokens, causal=causal)

    # Compiled, the mask is made block by block, and never as a whole.
    return create_block_mask(seen, None, None, queries, keys, device=device, _compile=device.startswith("cuda"))


@cache
def _compiled_flex() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    # Sizes become symbols at the second shape: past a few recompilations torch would compute all scores instead.
    return torch.compile(flex_attention)
