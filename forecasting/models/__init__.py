"""Forecasters: each maps a batch of windows to forecasts ``[B, H]`` in the units of the series' scale.

A model may have a method ``solve(training, validation)`` that sets what has a closed form or is chosen
directly; parameters that require gradients are then trained.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from common.errors import ConfigError
from forecasting.inputs import Inputs
from forecasting.models.dlinear import DLinear
from forecasting.models.informer import Informer
from forecasting.models.lstm import LSTM
from forecasting.models.lstma import LSTMA
from forecasting.models.normalised import Normalised
from forecasting.models.ridge import Ridge
from forecasting.models.seasonal_naive import SeasonalNaive
from forecasting.models.tcn import TCN
from forecasting.models.transformer import Transformer

WHOLE: dict[str, type[nn.Module]] = {"informer": Informer, "ridge": Ridge, "seasonal-naive": SeasonalNaive}
NETWORKS: dict[str, type[nn.Module]] = {
    "dlinear": DLinear,
    "lstm": LSTM,
    "lstma": LSTMA,
    "tcn": TCN,
    "transformer": Transformer,
}
"""Networks of baselines, which :class:`Normalised` makes models of."""
MODELS = tuple(sorted({*WHOLE, *NETWORKS}))


def build(kind: str, inputs: Inputs, settings: dict[str, Any]) -> nn.Module:
    """Build a model from plain data, as a configuration or a bundle gives it.

    Args:
        kind: One of :data:`MODELS`.
        inputs: What the model is given.
        settings: Keyword arguments of the model.

    Raises:
        ConfigError: If the kind is not known, or the settings are not the model's.
    """
    if kind not in MODELS:
        raise ConfigError(f"there is no model {kind!r}", where="model.kind", remedy=f"one of {', '.join(MODELS)}")
    try:
        if kind in WHOLE:
            return WHOLE[kind](inputs, **settings)
        table = {name: settings[name] for name in ("period_table",) if name in settings}
        network = NETWORKS[kind](inputs, **{name: value for name, value in settings.items() if name not in table})
        return Normalised(network, **table)
    except TypeError as error:
        raise ConfigError(f"the settings do not belong to {kind}: {error}", where="model") from error
