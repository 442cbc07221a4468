"""Judges: each takes tables of errors and names of axes, and returns a claim with its verdict and its evidence.

heads    error by heads and length (first paper, synthetic tasks)
ratios   of two errors, with an interval over seeds
width    error by hidden width (first paper)
labels   share of wrong answers by heads and length (first paper, real data)
rank     error by rank at equal parameters (second paper)
architectures  error by task and architecture at equal parameters (in neither paper)
memorise  share of wrong training labels by heads, context and number of examples (another paper)

A claim is undecided where what it speaks of was not measured, or too roughly to tell. Claims about length are judged on
the best of seeds, which says what the models can do: one seed that training left stuck can carry a mean. Where a mean
was published, ours is in the evidence too.

Each rule is applied to our table and, unchanged, to the published one (a table with a `source`), which counts as one
seed: without intervals, and undecided where a rule resamples seeds.
"""
