"""Does headcount's answer carry over to stock transformers? On tasks of known D and on real data sets."""
