"""Data sets: cards in YAML, sources that fetch and verify, generators."""
