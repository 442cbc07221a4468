"""Named keys are JAX's, derived without compiling."""

import zlib

import jax
import jax.random as jr
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount.keys import named_key, named_keys

names = st.lists(st.one_of(st.text(max_size=5), st.integers(0, 9)), max_size=3)


seeds = st.one_of(st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(seeds, min_size=1, max_size=3), names)
def test_a_named_key_is_what_folding_in_its_names_gives(seeds, names):
    keys = named_keys(seeds, *names)
    for seed, key in zip(seeds, keys, strict=True):
        folded = jr.key(seed)
        for name in names:
            folded = jr.fold_in(folded, zlib.crc32(str(name).encode()))
        for same in (key, named_key(seed, *names)):
            assert np.array_equal(jr.key_data(same), jr.key_data(folded))


@given(seeds, names)
def test_a_named_key_is_the_same_under_64_bits(seed, names):
    """Of JAX's own key that is so from 0 to 2^32: under 64 bits it has the upper half of a larger seed."""
    usual = jr.key_data(named_key(seed, *names))
    with jax.enable_x64(True):
        assert np.array_equal(jr.key_data(named_key(seed, *names)), usual)
        if 0 <= seed < 2**32:
            assert np.array_equal(jr.key_data(jr.key(seed)), jr.key_data(named_key(seed)))
