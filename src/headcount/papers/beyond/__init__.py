"""Studies beyond the two papers: depth, shared keys, sparse attention, other architectures, norms."""
