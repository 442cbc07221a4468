"""Named keys are JAX's, derived without compiling."""

import zlib

import jax.random as jr
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount._keys import named_key, named_keys

names = st.lists(st.one_of(st.text(max_size=5), st.integers(0, 9)), max_size=3)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=3), names)
def test_a_named_key_is_what_folding_in_its_names_gives(seeds, names):
    keys = named_keys(seeds, *names)
    for seed, key in zip(seeds, keys, strict=True):
        folded = jr.key(seed)
        for name in names:
            folded = jr.fold_in(folded, zlib.crc32(str(name).encode()))
        for same in (key, named_key(seed, *names)):
            assert np.array_equal(jr.key_data(same), jr.key_data(folded))
