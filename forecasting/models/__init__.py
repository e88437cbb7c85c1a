"""Forecasters: each maps a batch of windows to forecasts ``[B, H]`` in the units of the series' scale.

A model may have a method ``solve(training, validation)`` that sets what has a closed form or is chosen
directly; parameters that require gradients are then trained.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from common.errors import ConfigError
from forecasting.inputs import Inputs
from forecasting.models.informer import Informer
from forecasting.models.lstm import LSTM
from forecasting.models.ridge import Ridge
from forecasting.models.seasonal_naive import SeasonalNaive
from forecasting.models.tcn import TCN

MODELS: dict[str, type[nn.Module]] = {
    "informer": Informer,
    "lstm": LSTM,
    "ridge": Ridge,
    "seasonal-naive": SeasonalNaive,
    "tcn": TCN,
}


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
        return MODELS[kind](inputs, **settings)
    except TypeError as error:
        raise ConfigError(f"the settings do not belong to {kind}: {error}", where="model") from error
