"""What is missing for trained models is named with the line to type."""

import importlib.metadata
import importlib.util

import pytest

from headcount.pretrained.plugin import need
from tests.helpers.refusals import refused


@pytest.fixture
def installed(monkeypatch):
    """Set which packages there are, and which transformers."""

    def install(*packages, transformers="5.9.0"):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in packages else None)
        monkeypatch.setattr(importlib.metadata, "version", lambda name: transformers)

    return install


ALL = ("torch", "transformers", "safetensors")


@pytest.mark.parametrize("missing", ALL)
def test_a_missing_package_is_named_with_the_extra(installed, missing):
    installed(*(set(ALL) - {missing}))
    with refused(missing, "pip install 'headcount[hf]'"):
        need()


def test_another_package_is_named_by_itself(installed):
    installed(*ALL)
    need()
    with refused("pip install gguf"):
        need("gguf")


@pytest.mark.parametrize("version", ["4.57.6", "5.8.1", "5.8rc1"])
def test_an_old_transformers_is_named_with_its_version(installed, version):
    installed(*ALL, transformers=version)
    with refused(version, "5.9"):
        need()


@pytest.mark.parametrize("version", ["5.9.0", "5.10rc1", "6.0.0.dev0"])
def test_a_newer_transformers_will_do(installed, version):
    installed(*ALL, transformers=version)
    need()
