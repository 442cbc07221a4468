"""Models and tasks with explicit weights, each with a bound on its error."""
