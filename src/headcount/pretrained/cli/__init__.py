"""The verbs of trained models: inspect, prune, group, shrink."""
