"""The verbs of the theory: prove, bounds, collide, tasks."""
