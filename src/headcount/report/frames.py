"""Images as a model is shown them, drawn side by side."""

import io
from collections.abc import Sequence

import numpy as np


def frames_png(rows: Sequence[Sequence[np.ndarray]], sides: Sequence[int]) -> bytes:
    """A picture with a column for each side, images below one another, drawn at their true sizes."""
    from matplotlib.figure import Figure  # a second to import, and only this draws

    count = max(len(row) for row in rows)
    largest = max(sides)
    figure = Figure(figsize=(1.5 * len(sides), 1.45 * count), layout="constrained", dpi=110)
    axes = figure.subplots(count, len(sides), squeeze=False)
    for column, (side, row) in enumerate(zip(sides, rows, strict=True)):
        axes[0][column].set_title(f"{side} x {side}", fontsize=9)
        for place in range(count):
            panel = axes[place][column]
            panel.set_axis_off()
            panel.set_xlim(-0.5, largest - 0.5)
            panel.set_ylim(largest - 0.5, -0.5)
            if place < len(row):
                panel.imshow(row[place], extent=(-0.5, side - 0.5, side - 0.5, -0.5), interpolation="nearest")
    drawn = io.BytesIO()
    # Without the time it was made, the same images give the same bytes.
    figure.savefig(drawn, format="png", metadata={"Software": None})
    return drawn.getvalue()
