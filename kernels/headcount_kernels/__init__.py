"""The compiled kernels of headcount: one shared library, which `headcount.backends` loads with `ctypes`.

The library has no Python ABI, so that one file serves every version of Python. This package only says where it is.
"""

import sys
from pathlib import Path

__version__ = "0.1.0"  # the one place: the wheel and the library are given it when they are built

LIBRARY_NAME = "libheadcount_kernels" + (".dylib" if sys.platform == "darwin" else ".so")


def library_path() -> Path:
    """Where the shared library is, or would be: a clone that was not built has none."""
    return Path(__file__).parent / LIBRARY_NAME
