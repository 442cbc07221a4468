"""Shows results: documents, and how a page, a figure and a terminal show them."""
