"""Forecasting: series in, models, fit, predict, compare."""
