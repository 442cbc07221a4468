"""Does headcount's answer carry over to stock transformers? Tasks of known D and real data sets, measured, then trained."""
