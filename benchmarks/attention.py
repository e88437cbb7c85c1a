"""Attention mechanisms: time against full attention and against the published ProbSparse, growth, and memory.

Run from the root of the project: ``.venv/bin/python benchmarks/attention.py [probsparse] [memory] [growth]`` (about ten
minutes, one thread). All figures are ratios of times taken in the same run; the minimum of several repetitions.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import torch
from measure import save
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

from common.attention import linear, local, probsparse

HEADS, WIDTH = 8, 64
WINDOW = 128
LENGTHS = ((96, 1), (96, 8), (336, 8), (720, 8), (4096, 1), (8192, 1))  # and how many sequences at once
BUDGET = 3.0  # seconds of repetitions, at least three of them
GOALS = {96: (1.8, 1.4), 336: (2.5, 3.4), 720: (5.5, 6.1), 4096: (30, 43), 8192: (55, 84)}
GATHER_GOALS = {96: (15, 5), 720: (13, 6.5), 8192: (20, 9)}


def published(query: Tensor, key: Tensor, value: Tensor, factor: float = 5.0) -> Tensor:
    """ProbSparse as published: each query has a key sample of its own, gathered into ``[B, H, L, U, D]``."""
    batch, heads, queries, width = query.shape
    keys = key.shape[2]
    samples = min(keys, math.ceil(factor * math.log(keys)))
    active = min(queries, math.ceil(factor * math.log(queries)))
    places = torch.randint(keys, (queries, samples))
    gathered = key.unsqueeze(2).expand(-1, -1, queries, -1, -1)[:, :, torch.arange(queries)[:, None], places]
    scores = (query.unsqueeze(3) @ gathered.transpose(-2, -1)).squeeze(3)  # [B, H, L, U]
    chosen = (scores.amax(-1) - scores.sum(-1) / keys).topk(active, sorted=False).indices
    rows = torch.arange(batch)[:, None, None], torch.arange(heads)[None, :, None], chosen
    weights = (query[rows] @ key.transpose(-2, -1) / width**0.5).softmax(-1)
    mixed = value.mean(2, keepdim=True).expand(-1, -1, queries, -1).clone()
    mixed[rows] = weights @ value
    return mixed


def parts(length: int, batch: int) -> list[Tensor]:
    """Query, key and value."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(batch, HEADS, length, WIDTH, generator=generator) for _ in range(3)]


def fastest(call: Callable[[], object]) -> float:
    """Least seconds of a call, repeated at least three times and up to the budget."""
    call()
    seconds: list[float] = []
    while len(seconds) < 3 or sum(seconds) < BUDGET:
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def timed(mechanism: Callable[..., Tensor], tensors: list[Tensor], *, backward: bool) -> float:
    """Least seconds of a forward pass, or of forward and backward."""
    if not backward:
        with torch.inference_mode():
            return fastest(lambda: mechanism(*tensors))
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    gradient = torch.randn_like(tensors[0])

    def both() -> None:
        for leaf in leaves:
            leaf.grad = None
        mechanism(*leaves).backward(gradient)

    return fastest(both)


def floor(tensors: list[Tensor]) -> float:
    """One pass over query, key, value and output."""
    with torch.inference_mode():
        return fastest(lambda: torch.addcmul(*tensors))


def against_full() -> None:
    """ProbSparse against full attention and the published formulation."""
    table = []
    for length, batch in LENGTHS:
        tensors = parts(length, batch)
        for backward in (False, True):
            full = timed(scaled_dot_product_attention, tensors, backward=backward)
            ours = timed(probsparse, tensors, backward=backward)
            theirs = timed(published, tensors, backward=backward)
            goal = GOALS.get(length, ("", ""))[backward] if batch > 1 or length > 1000 else ""
            gather_goal = GATHER_GOALS.get(length, ("", ""))[backward] if goal else ""
            table.append(
                {
                    "L": length,
                    "batch": batch,
                    "pass": "forward + backward" if backward else "forward",
                    "ProbSparse (ms)": f"{1e3 * ours:.2f}",
                    "full / ProbSparse": f"{full / ours:.1f}",
                    "goal: above": goal,
                    "published / ProbSparse": f"{theirs / ours:.1f}",
                    "its goal: above": gather_goal,
                    "times the floor": "" if backward else f"{ours / floor(tensors):.1f}",
                }
            )
            print(table[-1], flush=True)
    save(
        "attention_probsparse",
        table,
        note=f"ProbSparse (factor 5) against scaled_dot_product_attention (full) and the published formulation, which "
        f"gathers keys of its own for each query. {HEADS} heads of {WIDTH}, float32, one thread, ratios of the "
        "least times in one run. The floor is one pass over query, key, value and output.",
        seeds=[0],
    )


def growth() -> None:
    """Sliding windows and linear attention from 1k to 32k."""
    table = []
    mechanisms: dict[str, Callable[..., Tensor]] = {
        "local": lambda q, k, v: local(q, k, v, window=WINDOW),
        "local, causal": lambda q, k, v: local(q, k, v, window=WINDOW, causal=True),
        "linear": linear,
        "linear, causal": lambda q, k, v: linear(q, k, v, causal=True),
    }
    for backward in (False, True):
        for name, mechanism in mechanisms.items():
            causal = name.endswith("causal")
            last = None
            for length in (1024, 2048, 4096, 8192, 16384, 32768):
                tensors = parts(length, 1)
                ours = timed(mechanism, tensors, backward=backward)
                row = {
                    "mechanism": name,
                    "pass": "forward + backward" if backward else "forward",
                    "L": length,
                    "ms": f"{1e3 * ours:.1f}",
                    "times that of half the length": "" if last is None else f"{ours / last:.2f}",
                    "full / this": "",
                }
                if length <= (4096 if backward else 8192):
                    whole = timed(
                        lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=causal),  # noqa: B023
                        tensors,
                        backward=backward,
                    )
                    row["full / this"] = f"{whole / ours:.1f}"
                table.append(row)
                print(row, flush=True)
                last = ours
    save(
        "attention_growth",
        table,
        note=f"Sliding windows (window {WINDOW}) and linear attention: linear growth is a factor of 2 a doubling. "
        f"One sequence, {HEADS} heads of {WIDTH}, float32, one thread, least times in one run.",
        seeds=[0],
    )


MECHANISMS: dict[str, Callable[..., Tensor]] = {
    "full": scaled_dot_product_attention,
    "probsparse": probsparse,
    "probsparse, causal": lambda q, k, v: probsparse(q, k, v, causal=True),
    "local": lambda q, k, v: local(q, k, v, window=WINDOW),
    "linear": linear,
    "published": published,
}


def memory() -> None:
    """Extra memory of a forward pass at L = 8192."""
    table = []
    tensors = parts(8192, 1)
    size = tensors[0].nbytes
    for name, mechanism in MECHANISMS.items():
        extra = peak(mechanism, tensors)
        goal = "under 3" if name.startswith("probsparse") else ""
        row = {"mechanism": name, "extra (MB)": f"{extra / 1e6:.0f}", "times the query": f"{extra / size:.1f}"}
        table.append({**row, "goal": goal})
        print(table[-1], flush=True)
    save(
        "attention_memory",
        table,
        note="Most memory that tensors made by one forward pass take at a time at L = 8192, output included; one "
        f"sequence, {HEADS} heads of {WIDTH}, float32.",
        seeds=[0],
    )


def peak(mechanism: Callable[..., Tensor], tensors: list[Tensor]) -> int:
    """Most bytes allocated at a time, as torch's profiler records each allocation and release."""
    with torch.inference_mode(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        mechanism(*tensors)
    held = most = 0
    for event in record.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


PARTS = {"probsparse": against_full, "memory": memory, "growth": growth}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
