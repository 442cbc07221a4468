"""Readers of the data of the papers: CIFAR-10, and queries with passages, with the hard negatives of a query."""
