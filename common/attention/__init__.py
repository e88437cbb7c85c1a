"""Attention: one module that owns the projections, one function a mechanism.

Shapes, here and in the files of this package: ``B`` batch, ``H`` query heads, ``G`` key/value heads
(``G`` divides ``H``), ``L`` query length, ``S`` key length, ``D`` head width. Every mechanism takes
``query [B, H, L, D]``, ``key [B, G, S, D]``, ``value [B, G, S, Dv]`` and returns ``[B, H, L, Dv]``.
Boolean masks are True where a query may attend to a key.
"""

from common.attention.additive import additive
from common.attention.cache import KeyValueCache
from common.attention.checks import MECHANISMS
from common.attention.full import attention_weights, full
from common.attention.linear import linear
from common.attention.local import local
from common.attention.module import Attention
from common.attention.probsparse import probsparse
from common.attention.prototype import prototype, summarise
from common.attention.window2d import window2d

__all__ = [
    "MECHANISMS",
    "Attention",
    "KeyValueCache",
    "additive",
    "attention_weights",
    "full",
    "linear",
    "local",
    "probsparse",
    "prototype",
    "summarise",
    "window2d",
]
