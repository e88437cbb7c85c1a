"""Floor: gradient boosting on the bands of each pixel, with no view of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor, nn

DEPTH = 6
NEVER = -30.0  # log-odds of a class that stands in no training pixel
PIXELS_AT_ONCE = 1024  # so that the work on all trees stays in the cache


class PixelBoosting(nn.Module):
    """Boosted trees, grown by scikit-learn and held as plain tensors.

    So the floor is stored, loaded and tiled like every other model, and nothing is ever unpickled.

    Args:
        bands: Number of bands of each modality.
        classes: Number of classes.
        iterations: Boosting iterations; each grows one tree a class.
        leaves: Largest number of leaves a tree.
    """

    tolerates_absence = False

    def __init__(self, bands: Mapping[str, int], classes: int, *, iterations: int, leaves: int) -> None:
        super().__init__()
        self.modalities, self.bands = tuple(bands), sum(bands.values())
        self.iterations, self.classes, self.leaves = iterations, classes, leaves
        trees = iterations * classes
        self.feature: Tensor
        self.threshold: Tensor
        self.reachable: Tensor
        self.value: Tensor
        self.prior: Tensor
        nodes = (trees, leaves - 1)  # a binary tree has one inner node fewer than leaves
        self.register_buffer("feature", torch.zeros(nodes, dtype=torch.int64))  # see _logits for their order
        self.register_buffer("threshold", torch.full(nodes, torch.inf))
        self.register_buffer("reachable", torch.full(nodes, -1, dtype=torch.int32))  # leaves left if it goes right
        self.register_buffer("value", torch.zeros((trees, leaves)))
        self.register_buffer("prior", torch.full((classes,), NEVER))

    def grow(self, pixels: Tensor, labels: Tensor, weights: Tensor, *, seed: int) -> None:
        """Grow the trees.

        Args:
            pixels: ``[N, bands]``, NaN where unavailable.
            labels: Class of each pixel, ``[N]``.
            weights: Weight of each pixel, ``[N]``.
            seed: Seed of the binning.
        """
        booster: Any = HistGradientBoostingClassifier(
            max_iter=self.iterations,
            max_leaf_nodes=self.leaves,
            max_depth=DEPTH,
            early_stopping=False,  # pyright: ignore[reportArgumentType] - its default is a text
            random_state=seed,
        )
        booster.fit(pixels.numpy(), labels.numpy(), sample_weight=weights.numpy())
        # scikit-learn has no public view of these trees; a test holds ours against its predict_proba.
        present = booster.classes_
        binary = len(present) == 2  # then there is one tree an iteration, with the log-odds of the second class
        targets = present[1:] if binary else present
        self.prior[torch.as_tensor(present)] = 0.0
        self.prior[torch.as_tensor(targets)] = torch.as_tensor(booster._baseline_prediction[0], dtype=torch.float32)
        for iteration, grown in enumerate(booster._predictors):
            for target, tree in zip(targets, grown, strict=True):
                self._set_tree(iteration * self.classes + int(target), tree.nodes)

    def forward(self, images: Mapping[str, Tensor], available: Mapping[str, Tensor]) -> Tensor:
        """Predict; shapes as in :class:`segmentation.models.swin_fusion.SwinFusion`."""
        stacked = pixel_features(images, available, self.modalities)
        batch, _, height, width = stacked.shape
        pixels = stacked.permute(0, 2, 3, 1).flatten(0, 2)  # [B, bands, H, W] -> [B H W, bands]
        logits = torch.cat([self._logits(chunk) for chunk in pixels.split(PIXELS_AT_ONCE)])  # [B H W, classes]
        return logits.reshape(batch, height, width, self.classes).permute(0, 3, 1, 2)

    def _set_tree(self, tree: int, nodes: NDArray[Any]) -> None:
        """Number the leaves from left to right, and note for each inner node the leaves it hides by going right."""
        leaves: list[int] = []
        under: dict[int, int] = {}  # bit set of the leaves under a node

        def visit(node: int) -> int:
            if nodes["is_leaf"][node]:
                leaves.append(node)
                under[node] = 1 << (len(leaves) - 1)
            else:
                under[node] = visit(nodes["left"][node]) | visit(nodes["right"][node])
            return under[node]

        visit(0)
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        # Inputs are float32: `x <= t` holds in float64 exactly where it holds for the float32 at or below t.
        threshold = nodes["num_threshold"][inner].astype(np.float32)
        above = threshold > nodes["num_threshold"][inner]
        threshold[above] = np.nextafter(threshold[above], np.float32(-np.inf))
        hidden = [under[left] for left in nodes["left"][inner]]
        absent_right = nodes["missing_go_to_left"][inner] == 0
        feature = nodes["feature_idx"][inner].astype(np.int64) + self.bands * absent_right
        self.feature[tree, : len(inner)] = torch.as_tensor(feature)
        self.threshold[tree, : len(inner)] = torch.as_tensor(threshold)
        self.reachable[tree, : len(inner)] = torch.tensor([~bits for bits in hidden], dtype=torch.int32)
        self.value[tree, : len(leaves)] = torch.as_tensor(nodes["value"][leaves].astype(np.float32))

    def _logits(self, pixels: Tensor) -> Tensor:
        """Evaluate all trees at once, ``[P, bands]`` to ``[P, classes]``.

        Each node whose test fails strikes out the leaves on its left; the first leaf that remains is the one a walk
        would reach (QuickScorer, Lucchese et al. 2015).
        """
        # A comparison with NaN fails, so absence goes right; where it is to go left, it is replaced by -inf.
        columns = torch.cat([pixels.nan_to_num(-torch.inf).T, pixels.T])  # [2 bands, P]
        remaining = torch.full((len(self.feature), len(pixels)), -1, dtype=torch.int32, device=pixels.device)
        for node in range(self.leaves - 1):
            seen = columns.index_select(0, self.feature[:, node])  # [trees, P]
            goes_left = seen <= self.threshold[:, node, None]
            remaining &= torch.where(goes_left, -1, self.reachable[:, node, None])
        first = remaining & -remaining  # the lowest bit alone
        leaf = torch.frexp(first.double()).exponent.long() - 1  # its position
        values = self.value.gather(1, leaf).reshape(self.iterations, self.classes, -1)
        return values.sum(dim=0).T + self.prior  # [classes, P] -> [P, classes]


def pixel_features(
    images: Mapping[str, Tensor], available: Mapping[str, Tensor], modalities: tuple[str, ...]
) -> Tensor:
    """All bands side by side, ``[B, bands, H, W]``, NaN where unavailable."""
    return torch.cat([images[name].masked_fill(~available[name], torch.nan) for name in modalities], dim=1)
