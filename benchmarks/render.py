"""Makes RESULTS.md of all results: ``python benchmarks/render.py``."""

from __future__ import annotations

import json

from measure import HERE


def main() -> None:
    """Write one section a result, in order of name."""
    parts = ["# Results", "", "Made by `benchmarks/render.py` from `benchmarks/results/`. Do not edit."]
    for path in sorted((HERE / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        headings = list(result["table"][0])
        parts += [
            "",
            f"## {result['name']}",
            "",
            result["note"],
            "",
            "| " + " | ".join(headings) + " |",
            "| " + " | ".join("---" for _ in headings) + " |",
            *("| " + " | ".join(str(row[heading]) for heading in headings) + " |" for row in result["table"]),
            "",
            f"`{result['command']}`, {result['date']}, {result['machine']}, {result['versions']}, "
            f"seeds {', '.join(map(str, result['seeds'])) or 'none'}.",
        ]
    (HERE / "RESULTS.md").write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
