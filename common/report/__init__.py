"""Comparison reports: the data of a comparison, its statistics, and one HTML page that opens offline."""
