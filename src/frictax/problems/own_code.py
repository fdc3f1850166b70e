"""Modules of Python that stand beside a problem file."""

import contextlib
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def own_modules(folder: Path) -> Iterator[dict[str, str]]:
    """Let modules import their neighbours in `folder`, and forget them all afterwards: another
    problem may have others of these names.

    Yields the checksums of those that were used, file -> SHA-256, filled at the end.
    """
    used: dict[str, str] = {}
    home, mine = str(folder.resolve()), {path.stem for path in folder.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in mine if name in sys.modules}
    sys.path.insert(0, home)
    # No bytecode: Python takes it for that of a file of the same size and second, so that a number
    # changed just now would not count.
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield used
    finally:
        sys.dont_write_bytecode = wrote
        sys.path.remove(home)
        # the same order in each process: results are compared
        for name in sorted(mine & set(sys.modules)):
            file = Path(getattr(sys.modules.pop(name), "__file__", None) or "")
            if file.parent == folder.resolve():
                used[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        sys.modules.update(before)


def imported(path: Path) -> Any:
    """The module at `path`, made anew."""
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
