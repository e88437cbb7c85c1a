"""Segmentation: scenes in, models, fit, predict, compare."""
