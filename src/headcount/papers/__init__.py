"""Reproducing the papers: a file per table or figure. `registry` lists them; importing it needs no JAX."""
