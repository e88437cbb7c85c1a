"""Training: seeds, the learning-rate schedule, and a Lightning trainer that keeps the best weights."""

from __future__ import annotations

import logging
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from lightning import Callback, LightningModule, Trainer
from lightning import seed_everything as lightning_seed
from lightning.fabric.utilities import move_data_to_device
from torch import Tensor, nn

from common.checkpoint import Checkpoint
from common.progress import log, progress

Objective = Callable[[nn.Module, Any], tuple[Tensor, Tensor]]
Precision = Literal["float32", "bf16"]
_LIGHTNING_PRECISION = {"float32": "32-true", "bf16": "bf16-mixed"}


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
    training: Callable[[int], Iterator[Any]],
    validation: Iterable[Any] | None,
    steps: int,
    validate_every: int,
    patience: int,
    learning_rate: float,
    weight_decay: float,
    warmup: float,
    clip: float,
    accumulate: int,
    precision: Precision,
    seed: int,
    description: str,
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
) -> TrainingRecord:
    """Train with AdamW under a warm-up and cosine schedule, and leave the best weights in the model.

    Args:
        model: The network; changed in place, and left in evaluation mode.
        objective: Maps model and batch to the sum of losses and the number of elements summed over. A
            training step takes their ratio; validation takes the ratio of their totals, so that it does not
            depend on how the validation set is cut into batches.
        training: Gives batches without end, from the one of a number on; which batch has which number is fixed.
        validation: Batches to choose the weights by, or None to keep the last.
        steps: Most optimiser steps to make.
        validate_every: Steps between two checks on validation.
        patience: Checks without a better score after which training ends.
        learning_rate: Largest learning rate.
        weight_decay: Decoupled weight decay, on matrices only (not on biases, norms or gates).
        warmup: Share of the steps over which the learning rate rises.
        clip: Largest norm of the gradient.
        accumulate: Batches whose gradients are averaged for one step.
        precision: Of the products in training; weights, and all of validation, are float32.
        seed: Seed of dropout and of whatever else draws from torch's generator in training.
        description: What is being trained, for the progress bar.
        checkpoint: Where to keep the state at each check; it is left there for the caller to remove.
        resume: Whether to go on from the state that is kept, if there is one. The result is that of a training
            without interruption, bit for bit on a CPU.

    Returns:
        The record of the training.

    Raises:
        UsageError: If what is kept is another training.
        InputError: If it is damaged.
    """
    seed_everything(seed)
    started = time.perf_counter()
    task = _Task(
        model, objective, learning_rate=learning_rate, weight_decay=weight_decay, warmup=round(warmup * steps),
        steps=steps,
    )  # fmt: skip
    with progress(description, steps) as advance, _quiet_lightning():
        keeper = _Keeper(
            validation, steps=steps, validate_every=validate_every, patience=patience, advance=advance,
            checkpoint=checkpoint, begun=checkpoint.load() if checkpoint and resume else None,
        )  # fmt: skip
        if not keeper.ended:
            trainer = Trainer(
                max_steps=steps - keeper.step,
                max_epochs=-1,
                accelerator="auto",
                devices=1,
                precision=_LIGHTNING_PRECISION[precision],  # pyright: ignore[reportArgumentType]
                accumulate_grad_batches=accumulate,
                gradient_clip_val=clip,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                callbacks=[keeper],
            )
            try:
                trainer.fit(task, train_dataloaders=_Batches(training, start=keeper.step * accumulate))
            except SystemExit as end:
                if checkpoint and keeper.saved:
                    log.warning("interrupted: --resume goes on from step %d", keeper.saved)
                if end.code == 128 + signal.SIGTERM:
                    raise
                # Lightning turns an interrupt into an exit; the caller decides what an interrupt means.
                raise KeyboardInterrupt from end
    keeper.restore(model)
    model.eval()
    return TrainingRecord(
        steps=keeper.step,
        best_step=keeper.best_step,
        best_score=keeper.best_score,
        seconds=keeper.seconds + time.perf_counter() - started,
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
    device = next(model.parameters()).device
    total, count = 0.0, 0.0
    for batch in batches:
        summed, elements = objective(model, move_data_to_device(batch, device))
        total += float(summed)
        count += float(elements)
    model.train(was_training)
    return total / count if count else math.nan


class _Batches:
    """Batches from one of them on, as the loader that Lightning wants."""

    def __init__(self, batches: Callable[[int], Iterator[Any]], *, start: int) -> None:
        self._batches, self._start = batches, start

    def __iter__(self) -> Iterator[Any]:
        return self._batches(self._start)


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
    """Scores the model on validation every few steps, keeps the best weights, stops when patience ends.

    Args:
        validation: Batches to score on, or None.
        steps: Steps after which training ends.
        validate_every: Steps between two checks.
        patience: Checks without a better score after which training ends.
        advance: Moves the progress bar.
        checkpoint: Where the state is kept at each check.
        begun: A state to go on from.
    """

    def __init__(
        self,
        validation: Iterable[Any] | None,
        *,
        steps: int,
        validate_every: int,
        patience: int,
        advance: Callable[..., None],
        checkpoint: Checkpoint | None,
        begun: dict[str, Any] | None,
    ) -> None:
        self.validation, self.steps, self.validate_every = validation, steps, validate_every
        self.patience, self.advance, self.checkpoint = patience, advance, checkpoint
        self.step, self.best_step, self.best_score = 0, 0, math.nan
        self.saved = 0
        self.seconds = 0.0  # of what went before an interruption
        self.history: list[tuple[int, float, float]] = []
        self._started = time.perf_counter()
        self._best: dict[str, Tensor] | None = None
        self._losses: list[Tensor] = []
        self._checks_since_best = 0
        self._begun = begun
        if begun is not None:
            for name in _PROGRESS:
                setattr(self, name, begun[name])
            self.history = [tuple(entry) for entry in begun["history"]]
            log.info("going on from step %d of %d", self.step, steps)
            advance(self.step)

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to train."""
        return self.step >= self.steps or self._checks_since_best >= self.patience

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._begun is None:
            self._check(trainer, pl_module)
            return
        pl_module.load_state_dict(self._begun["task"])
        trainer.optimizers[0].load_state_dict(self._begun["optimizer"])
        trainer.lr_scheduler_configs[0].scheduler.load_state_dict(self._begun["schedule"])
        torch.set_rng_state(self._begun["random"])
        self._begun = None

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,  # noqa: ARG002 - Lightning passes all of these by position
        batch_idx: int,
    ) -> None:
        # Lightning divides the loss of each batch by the number of those that are averaged.
        self._losses.append(outputs["loss"].detach() * trainer.accumulate_grad_batches)
        if (batch_idx + 1) % trainer.accumulate_grad_batches:
            return
        self.step += 1
        self.advance(1, note="" if math.isnan(self.best_score) else f"best {self.best_score:.4g}")
        if self.step % self.validate_every == 0 or self.step == self.steps:
            self._check(trainer, pl_module)
            trainer.should_stop = self.ended

    def restore(self, model: nn.Module) -> None:
        """Put the best weights back."""
        if self._best is not None:
            model.load_state_dict(self._best)

    def _check(self, trainer: Trainer, task: LightningModule) -> None:
        self._judge(task)
        if self.checkpoint is None or not self.step:
            return
        state = {
            "task": task.state_dict(),
            "optimizer": trainer.optimizers[0].state_dict(),
            "schedule": trainer.lr_scheduler_configs[0].scheduler.state_dict(),
            "random": torch.get_rng_state(),
            **{name: getattr(self, name) for name in _PROGRESS},
        }
        state["seconds"] += time.perf_counter() - self._started
        self.checkpoint.save(state)
        self.saved = self.step

    def _judge(self, task: LightningModule) -> None:
        """Keep the weights if they are the best."""
        model: nn.Module = task.model  # pyright: ignore[reportAssignmentType]
        if self.validation is None:
            self.best_step, self._best = self.step, _copy(model) if self.ended else None
            return
        training_loss = float(torch.stack(self._losses).mean()) if self._losses else math.nan
        self._losses.clear()
        value = score(model, task.objective, self.validation)  # pyright: ignore[reportArgumentType]
        self.history.append((self.step, training_loss, value))
        if math.isnan(self.best_score) or value < self.best_score:
            self.best_step, self.best_score, self._checks_since_best = self.step, value, 0
            self._best = _copy(model)
        else:
            self._checks_since_best += 1


_PROGRESS = ("step", "best_step", "best_score", "seconds", "history", "_best", "_checks_since_best")
"""What a keeper keeps beside the states of model, optimiser and schedule."""


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


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
