"""The section of an inspected model."""
