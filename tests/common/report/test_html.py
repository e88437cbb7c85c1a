from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from common.errors import UsageError
from common.report.comparison import Comparison, Figure
from common.report.figures import matrix_figure
from common.report.html import render, write_report

HOSTILE = "</script><script>alert(1)</script>"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Reads a page, checks that tags nest, and keeps scripts, cells and attributes that could fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[tuple[dict, str]] = []
        self.rows: list[list[str]] = []
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data
        elif "style" not in self.open:
            self.text += data


@pytest.fixture
def comparison(make):
    tests = [("informer", "ridge", -0.04, 0.003), ("informer", "naive", -0.14, 0.0004)]
    figure = matrix_figure(np.array([[3, 1], [1, 2]]), ["a", "b"], title="Confusion", caption="Of two classes.")
    return make({"informer": (0.35, 0.37)}, {"ridge": (0.4,)}, {"naive": (0.5,)}, tests, figures=(figure,))


def test_page_is_well_formed_and_holds_plotly_once(comparison):
    text = render([comparison, comparison], title="Two")
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert text.count(get_plotlyjs()) == 1
    assert len([None for attributes, _ in page.scripts if "data-chart" in attributes]) == 6
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["data-chart"] for attributes, _ in page.scripts if "data-chart" in attributes} <= set(ids)
    assert ("html", {"lang": "en"}) in page.tags
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")


def test_nothing_is_fetched(comparison):
    text = render([comparison], title="One").replace(get_plotlyjs(), "")
    page = Page(text)
    fetched = [
        attributes[name]
        for _, attributes in page.tags
        for name in ("src", "href", "srcset", "data", "action", "poster")
        if name in attributes
    ]
    assert all(re.match(r"#|data:", target) for target in fetched)
    assert not re.search(r"https?:|//cdn|@import|url\(", text)
    policies = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert policies == [
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    ]
    # Plotly's button that uploads a chart is not among those offered.
    assert 'modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]]' in text


def test_numbers_and_sentences_are_those_given(comparison):
    page = Page(render([comparison], title="One"))
    rows = [[cell.replace("\N{NO-BREAK SPACE}", " ").rstrip() for cell in row] for row in page.rows]
    assert rows[1][:4] == ["informer", "attention", "0.3600 ± 0.0141", "0.1800 ± 0.0071"]
    assert rows[2][2:5] == ["0.4000", "0.2000", "+20.0"]
    assert rows[5] == ["informer", "ridge", "-0.0400", "-0.0500 to -0.0300", "0.003", "0.003", "20"]
    assert "Attention is better here" in page.text
    for shown in ("Every window counted.", "farview forecast compare made-up.yaml", "Of two classes.", "Confusion"):
        assert shown in page.text


def test_hostile_text_stays_text(make):
    figure = Figure(HOSTILE, HOSTILE, {"data": [{"type": "scatter", "name": HOSTILE + "\u2028&"}], "layout": {}})
    comparison = make(
        {HOSTILE: (0.35,)}, {'"><img src=x onerror=alert(1)>': (0.4,)}, {"naive": (0.5,)},
        title=HOSTILE, data={HOSTILE: HOSTILE}, protocol=HOSTILE, provenance={HOSTILE: HOSTILE}, figures=(figure,),
    )  # fmt: skip
    text = render([comparison, comparison], title=HOSTILE)
    page = Page(text)
    assert "alert(1)</script>" not in text.replace(get_plotlyjs(), "")
    assert not any(tag == "img" for tag, _ in page.tags)
    assert len(page.scripts) == 1 + 2 * 3 + 1
    assert HOSTILE in page.text  # shown, as written
    charts = [json.loads(content) for attributes, content in page.scripts if "data-chart" in attributes]
    assert charts[2] == figure.plotly
    assert all(ord(letter) < 128 for attributes, content in page.scripts if attributes for letter in content)


def test_page_is_written_whole_or_not_at_all(comparison, tmp_path):
    target = tmp_path / "new" / "report.html"
    write_report([comparison], target, title="One")
    assert target.read_text(encoding="utf-8") == render([comparison], title="One")
    broken = replace(comparison, figures=(Figure("T", "C", {"data": [float("nan")], "layout": {}}),))
    with pytest.raises(ValueError, match="JSON compliant"):
        write_report([broken], tmp_path / "broken.html", title="One")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write here"):
        write_report([comparison], tmp_path / "file" / "report.html", title="One")


def test_comparison_comes_back_from_json(comparison, tmp_path):
    untested = replace(comparison.tests[0], low=None, high=None, blocks=1)
    comparison = replace(comparison, tests=(*comparison.tests, untested))
    comparison.write(tmp_path / "comparison.json")
    read = Comparison.read(tmp_path / "comparison.json")
    assert read == comparison
    assert render([read], title="One") == render([comparison], title="One")


def test_a_diverged_model_does_not_stop_the_writing(make, tmp_path):
    comparison = make({"informer": (float("nan"), 0.3)}, {"ridge": (0.4,)}, {})
    comparison.write(tmp_path / "comparison.json")
    read = Comparison.read(tmp_path / "comparison.json")
    assert read.rows[0].scores == ({}, {"mse": 0.3, "mae": 0.15})
    assert render([read], title="One") == render([comparison], title="One")


def test_reading_a_comparison_needs_no_heavy_import():
    heavy = "{'numpy', 'plotly', 'jinja2', 'pandas', 'torch'}"
    code = f"import sys, common.report.comparison; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
