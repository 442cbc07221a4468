"""How many heads a task looks like it needs, from one model that has more than enough.

Its heads are removed one by one, the least missed first, and what each carried is predicted from the rest (see
`head_removal`). As long as heads repeat each other the answers hardly change; when D are left, the next removal changes
them by what that head alone knew. The estimate is the number of heads before the first large jump of the change.
"""

import numpy as np

from ..models.base import Elimination

NEGLIGIBLE = 3e-3
"""Changes of the answers below this share of their variance count as this: no jump among them means anything."""
LARGE = 0.5
"""A jump is large if it is this share of the largest, in decades: a first head may know almost everything."""


def heads_of(elimination: Elimination) -> int:
    """The estimate. Without any head the answers are constant: a change of 1."""
    changes = np.array([0.0, *elimination.distances, 1.0])
    jumps = np.diff(np.log(np.maximum(changes, NEGLIGIBLE)))
    return len(changes) - 1 - int(np.argmax(jumps >= LARGE * jumps.max()))
