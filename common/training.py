"""Training: seeds, the learning-rate schedule, and a Lightning trainer that keeps the best weights."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning import seed_everything as lightning_seed
from torch import Tensor, nn

from common.progress import log, progress

Objective = Callable[[nn.Module, Any], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class TrainingRecord:
    """What a training did.

    Attributes:
        steps: Optimiser steps made.
        best_step: Step whose weights were kept; 0 is the model as it was given.
        best_score: Validation loss at that step, or NaN without validation.
        seconds: Wall-clock time.
        history: ``(step, training loss since the last check, validation loss)`` at each check.
    """

    steps: int
    best_step: int
    best_score: float
    seconds: float
    history: tuple[tuple[int, float, float], ...]


def train(
    model: nn.Module,
    objective: Objective,
    *,
    training: Iterable[Any],
    validation: Iterable[Any] | None,
    steps: int,
    validate_every: int,
    patience: int,
    learning_rate: float,
    weight_decay: float,
    warmup: int,
    clip: float,
    seed: int,
    description: str,
) -> TrainingRecord:
    """Train with AdamW under a warm-up and cosine schedule, and leave the best weights in the model.

    Args:
        model: The network; changed in place, and left in evaluation mode.
        objective: Maps model and batch to the sum of losses and the number of elements summed over. A
            training step takes their ratio; validation takes the ratio of their totals, so that it does not
            depend on how the validation set is cut into batches.
        training: Batches; gone through again until ``steps`` are made.
        validation: Batches to choose the weights by, or None to keep the last.
        steps: Most optimiser steps to make.
        validate_every: Steps between two checks on validation.
        patience: Checks without a better score after which training ends.
        learning_rate: Largest learning rate.
        weight_decay: Decoupled weight decay, on matrices only (not on biases, norms or gates).
        warmup: Steps over which the learning rate rises.
        clip: Largest norm of the gradient.
        seed: Seed of dropout and of whatever else draws from torch's generator in training.
        description: What is being trained, for the progress bar.

    Returns:
        The record of the training.
    """
    seed_everything(seed)
    started = time.perf_counter()
    task = _Task(model, objective, learning_rate=learning_rate, weight_decay=weight_decay, warmup=warmup, steps=steps)
    with progress(description, steps) as advance, _quiet_lightning():
        keeper = _Keeper(validation, validate_every=min(validate_every, steps), patience=patience, advance=advance)
        trainer = Trainer(
            max_steps=steps,
            max_epochs=-1,
            accelerator="auto",
            devices=1,
            gradient_clip_val=clip,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[keeper],
        )
        try:
            trainer.fit(task, train_dataloaders=_Batches(training))
        except SystemExit as end:
            # Lightning turns an interrupt into an exit; the caller decides what an interrupt means.
            raise KeyboardInterrupt from end
    keeper.restore(model)
    model.eval()
    return TrainingRecord(
        steps=trainer.global_step,
        best_step=keeper.best_step,
        best_score=keeper.best_score,
        seconds=time.perf_counter() - started,
        history=tuple(keeper.history),
    )


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch."""
    with _quiet_lightning():
        lightning_seed(seed, workers=True, verbose=False)


@torch.no_grad()
def score(model: nn.Module, objective: Objective, batches: Iterable[Any]) -> float:
    """Total of the losses over the number of elements, over all batches, in evaluation mode."""
    was_training = model.training
    model.eval()
    total, count = 0.0, 0.0
    for batch in batches:
        summed, elements = objective(model, batch)
        total += float(summed)
        count += float(elements)
    model.train(was_training)
    return total / count if count else math.nan


class _Batches:
    """Any iterable as one loader; Lightning would take a list for several."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)


class _Task(LightningModule):
    """Model, objective and optimiser, as Lightning wants them."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        *,
        learning_rate: float,
        weight_decay: float,
        warmup: int,
        steps: int,
    ) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.warmup, self.steps = warmup, steps

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:  # noqa: ARG002 - the name Lightning calls by
        summed, elements = self.objective(self.model, batch)
        return summed / elements.clamp(min=1)

    def configure_optimizers(self) -> Any:
        trained = [p for p in self.model.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in trained if p.dim() > 1], "weight_decay": self.weight_decay},
            {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._rate)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _rate(self, step: int) -> float:
        """Linear warm-up, then a half cosine down to a hundredth (Loshchilov & Hutter 2017)."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


class _Keeper(Callback):
    """Scores the model on validation every few steps, keeps the best weights, stops when patience ends."""

    def __init__(
        self, validation: Iterable[Any] | None, *, validate_every: int, patience: int, advance: Callable[..., None]
    ) -> None:
        self.validation = validation
        self.validate_every, self.patience, self.advance = validate_every, patience, advance
        self.best_step, self.best_score = 0, math.nan
        self.history: list[tuple[int, float, float]] = []
        self._best: dict[str, Tensor] | None = None
        self._losses: list[Tensor] = []
        self._checks_since_best = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        self._check(0, pl_module)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,  # noqa: ARG002 - Lightning passes all of these by position
        batch_idx: int,  # noqa: ARG002
    ) -> None:
        self._losses.append(outputs["loss"].detach())
        step = trainer.global_step
        self.advance(1, note="" if math.isnan(self.best_score) else f"best {self.best_score:.4g}")
        if step % self.validate_every == 0 or step == trainer.max_steps:
            self._check(step, pl_module)
            trainer.should_stop = self._checks_since_best >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Put the best weights back."""
        if self._best is not None:
            model.load_state_dict(self._best)

    def _check(self, step: int, task: LightningModule) -> None:
        if self.validation is None:
            self.best_step = step
            return
        training_loss = float(torch.stack(self._losses).mean()) if self._losses else math.nan
        self._losses.clear()
        value = score(task.model, task.objective, self.validation)  # pyright: ignore[reportArgumentType]
        self.history.append((step, training_loss, value))
        if math.isnan(self.best_score) or value < self.best_score:
            self.best_step, self.best_score, self._checks_since_best = step, value, 0
            self._best = {name: tensor.detach().clone() for name, tensor in task.model.state_dict().items()}  # pyright: ignore
        else:
            self._checks_since_best += 1


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Keep Lightning's notes on devices and loaders out of the log; its warnings do not fit our loaders."""
    names = ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero")
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"lightning\..*")
        warnings.filterwarnings("ignore", message=r".*(LeafSpec|isinstance\(treespec).*")
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)


def log_training(description: str, record: TrainingRecord) -> None:
    """One log line on how a training went."""
    log.info(
        "%s: %d steps in %.1f s, best validation loss %.4g at step %d",
        description,
        record.steps,
        record.seconds,
        record.best_score,
        record.best_step,
    )
