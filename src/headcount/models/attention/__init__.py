"""Ways in which a head can read: what it shares, which places it sees, and how its scores become weights.

Each option is one file, written for one sequence, and both kinds of models use it.

grouped   heads that share their keys and values
window    places too far away
causal    later places
hard      all weight on the largest score
top_k     a softmax over the largest scores
linear    a kernel in place of the softmax

An absent token has weight exactly 0 in all of them.
"""

from .grouped import of_heads
from .options import ATTENTION_FIELDS, least_length, require_attention, require_tokens
from .unread import places_of, unread
from .weights import weights_of_scores

__all__ = [
    "ATTENTION_FIELDS",
    "least_length",
    "of_heads",
    "places_of",
    "require_attention",
    "require_tokens",
    "unread",
    "weights_of_scores",
]
