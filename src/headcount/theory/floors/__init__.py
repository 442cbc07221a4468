"""Floors for every model of a class, and the upper bounds: one head with a steep readout."""
