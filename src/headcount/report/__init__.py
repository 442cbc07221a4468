"""Shows analysis results: what a section says, and how a page, a figure and a terminal show it."""
