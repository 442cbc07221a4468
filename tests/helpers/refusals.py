"""How every bad request is refused."""

from contextlib import contextmanager

import jaxtyping
import pytest

from headcount.errors import InputError


@contextmanager
def refused(*given: str):
    """What a user without a type checker meets: an `InputError` of one line that names what was `given`."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with pytest.raises(InputError) as caught:
            yield caught
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)
    message = str(caught.value)
    assert "\n" not in message, f"more than one line: {message}"
    assert message.endswith((".", "?")), f"not a sentence: {message}"
    assert not message.endswith(".."), f"two full stops: {message}"
    missing = [words for words in given if words not in message]
    assert not missing, f"{missing} not named in: {message}"
