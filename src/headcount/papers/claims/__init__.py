"""Judges that several studies share: each takes tables of errors, and returns a claim with its verdict and evidence.

judge    cases in, verdict out; the statistics of claims
heads    error by heads and length (first paper, synthetic tasks)
labels   share of wrong answers by heads and length (first paper, real data)
rank     error by rank at equal parameters (second paper)
depth    maxima learned by layers and heads
memorise share of wrong training labels by heads, context and number of examples (another paper)

A claim is undecided where nothing was measured for it, or too roughly to tell. Claims about length are judged on the
best of seeds, the capability of the models: one seed that training left stuck can carry a mean. Where a mean was
published, ours is in the evidence too.

Each rule is applied to our table and, unchanged, to the published one (a table with a `source`), which counts as one
seed: without intervals, and undecided where a rule resamples seeds.
"""
