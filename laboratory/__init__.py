"""The laboratory: ablations, probes and a training doctor; may import everything, nothing imports it."""
