"""What the documents show runs."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parents[1] / "docs"
BLOCKS = re.findall(r"```python\n(.*?)```", (DOCS / "attention.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(3))
def test_the_examples_on_attention_run(number):
    real = torch.ones(2, 9, dtype=torch.bool)
    names = [
        {"tokens": torch.randn(2, 50, 64), "memory": torch.randn(2, 9, 64), "real": real},
        {},
        {"tokens": torch.randn(2, 5, 256)},
    ]
    assert len(BLOCKS) == len(names)
    exec(BLOCKS[number], names[number])
    result = names[number][("tokens", "answers", "hidden")[number]]
    assert result.shape == ((2, 50, 64), (2, 3, 64), (2, 1, 256))[number]


def test_every_pattern_is_drawn(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("draw_attention", DOCS / "draw_attention.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, mechanism in script.PATTERNS.items():
        weights = script.weights(mechanism)
        torch.testing.assert_close(weights.sum(1), torch.ones(script.LENGTH), msg=name)
    monkeypatch.setattr(script, "__file__", str(tmp_path / "draw_attention.py"))
    script.main()
    drawn = (tmp_path / "attention.svg").read_text()
    assert all(name in drawn for name in script.PATTERNS)
    assert len(drawn) == pytest.approx(len((DOCS / "attention.svg").read_text()), rel=0.02)
