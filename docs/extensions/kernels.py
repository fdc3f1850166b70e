"""Settings of the kernels that run the site's notebooks: each has its own folder with a link to the
shipped data. Compiled programs are kept for the next build, outside of the tree.
"""

import os
from pathlib import Path

STARTUP = """
import os as _os, tempfile as _tempfile
_here = _tempfile.TemporaryDirectory(prefix="frictax-docs-")
_os.chdir(_here.name)
_os.symlink({data!r}, "data")
"""
CONFIG = """
c.IPKernelApp.log_level = "ERROR"
c.IPKernelApp.matplotlib = "inline"
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {
    "figure.figsize": (7.0, 3.6), "figure.facecolor": "white", "svg.hashsalt": "frictax"
}
"""


def prepare(root: Path) -> None:
    """Write the IPython profile of the kernels into the folder of build products."""
    home = root / "build" / "docs-kernels"
    profile = home / "profile_default"
    (profile / "startup").mkdir(parents=True, exist_ok=True)
    (profile / "startup" / "folder.py").write_text(
        STARTUP.format(data=str(root / "data")), encoding="utf-8"
    )
    (profile / "ipython_kernel_config.py").write_text(CONFIG, encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(home)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frictax-docs"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    os.environ.pop("MPLBACKEND", None)  # figures go into the page
