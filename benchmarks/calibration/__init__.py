"""How often headcount is right: tasks of known D, measured, and the record of what came out."""
