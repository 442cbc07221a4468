"""Amsel et al. (arXiv 2407.16153): error by rank at equal parameters."""
