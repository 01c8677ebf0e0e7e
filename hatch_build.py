"""Compiles the search for an installation; without a compiler the wheel is pure Python, with equal results."""

import os
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Adds the compiled libraries to the wheel, which then is one for this platform and any Python 3."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is made; "editable" installations find the libraries in place."""
        tool = runpy.run_path(str(Path(self.root) / "tools" / "build_kernel.py"))
        try:
            libraries = tool["build"]()
        except tool["BuildError"] as error:
            if os.environ.get("NEIGHBORAGG_REQUIRE_KERNEL") == "1":
                raise
            self.app.display_warning(
                "neighboragg: the search could not be compiled and NumPy's will be used; it gives the same results "
                f"more slowly. {error}"
            )
            return
        build_data["artifacts"] += [str(path.relative_to(self.root)) for path in libraries]
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
