"""Builds the shared library into a wheel, which then fits every Python on machines of this kind.

Without CMake: one compiler and a dozen commands need no generator, which would be 30 MB more to download.
"""

import platform
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """What hatchling calls around the building of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the library and its platform to a wheel; for an editable install, builds the library in place."""
        sys.path.insert(0, self.root)
        from build_library import BuildError, build
        from headcount_kernels import LIBRARY_NAME, library_path

        self.folder = tempfile.TemporaryDirectory()
        editable = version == "editable"
        library = library_path() if editable else Path(self.folder.name, LIBRARY_NAME)
        try:
            self.app.display_info(f"Kernels built for {build(library, verbose=True)}.")
        except BuildError as failure:
            self.app.abort(f"headcount-kernels cannot be built: {failure}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{wheel_platform()}"
        if not editable:
            build_data["force_include"][str(library)] = f"headcount_kernels/{LIBRARY_NAME}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what was built: it is in the wheel."""
        self.folder.cleanup()


def wheel_platform() -> str:
    """The last part of a wheel's tag. For Linux, auditwheel makes a manylinux tag of it afterwards."""
    from build_commands import MACOS

    if platform.system() == "Darwin":  # where sysconfig would name what Python itself was built for
        return f"macosx_{MACOS.replace('.', '_')}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_")
