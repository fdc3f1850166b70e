"""The key of a compiled program: a text with everything that the program depends on. The key of a
program is equal in every process.
"""

import contextlib
import dataclasses
import enum
import functools
import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import numpy as np

from frictax.handover import IMPORT_TIME

# The version of each package identifies the code of its classes and functions.
KNOWN_PACKAGES = ("frictax", "diffrax", "optax", "equinox", "jax", "numpy")


class Unknown(Exception):
    """The error for an object that a key cannot contain: its name does not identify it."""


@functools.cache
def surroundings() -> str:
    """Return the part of the key that all programs share, as text. This text contains a hash of the
    sources, the versions of packages, and the processor. Raise `Unknown` if a source file has
    changed since the import of frictax, because the running code may be older than the file.
    """
    digest = hashlib.sha256()
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    if not sources:  # An import from an archive has no source files.
        raise Unknown(__file__)
    for source in sources:
        about = source.stat()
        # Installers can set an old `st_mtime`, but not `st_ctime`.
        if max(about.st_mtime, about.st_ctime) > IMPORT_TIME:
            raise Unknown(source)
        digest.update(source.read_bytes())
    # Use the version that was imported, even if another version was installed later.
    names = ["jax", "jaxlib", "equinox", "diffrax", "optimistix", "lineax", "optax", "numpy"]
    with contextlib.suppress(PackageNotFoundError):
        names += ["blackjax"] if version("blackjax") else []
    versions = [
        f"{name} {getattr(sys.modules.get(name), '__version__', None) or version(name)}"
        for name in names
    ]
    device = jax.devices()[0]
    processor = platform.node()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(
            (line for line in lines if line.startswith(("flags", "Features"))), processor
        )
    parts = [
        digest.hexdigest(),
        *versions,
        sys.version,
        platform.platform(),
        processor,
        device.platform,
        device.device_kind,
        device.client.platform_version,  # on a GPU the version of its runtime
    ]
    return "\n".join((*parts, os.environ.get("XLA_FLAGS", "")))


def key_text(thing: Any, fixed: bool = False) -> str:
    """Return a text that contains everything in `thing` that a program may depend on. The text of
    an array contains shape and type, and a hash of the values if the array is `fixed` (a constant).
    Raise `Unknown` for classes and functions of packages other than `KNOWN_PACKAGES`.
    """
    if isinstance(thing, np.ndarray | np.generic | jax.Array):
        name, content = "array", getattr(thing, "weak_type", False)
        if fixed:
            name = type(thing).__name__
            content = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
        return f"{name} {thing.dtype} {np.shape(thing)} {content}"
    inside = functools.partial(key_text, fixed=fixed)
    kind = type(thing)
    if thing is None or kind in (bool, int, float, complex, str, bytes):
        return repr(thing)
    if kind in (tuple, list):
        return f"{kind.__name__}({', '.join(map(inside, thing))})"
    if kind in (set, frozenset):
        return f"{kind.__name__}({', '.join(sorted(map(inside, thing)))})"
    if isinstance(thing, Mapping) and kind is dict:
        return f"dict({', '.join(f'{inside(k)}: {inside(v)}' for k, v in thing.items())})"
    if isinstance(thing, type | FunctionType):
        return _name(thing)
    if isinstance(thing, enum.Enum):
        return f"{_name(kind)}.{thing.name}"
    if isinstance(thing, np.dtype):
        return f"dtype {thing}"
    if dataclasses.is_dataclass(kind):
        fields = dataclasses.fields(kind)
        texts = (
            f"{f.name}={key_text(getattr(thing, f.name), fixed or f.metadata.get('static', False))}"
            for f in fields
            if hasattr(thing, f.name)
        )
        return f"{_name(kind)}({', '.join(texts)})"
    raise Unknown(kind)


def _name(thing) -> str:
    """Return module and name of a class or function. Raise `Unknown` if its package is not in
    `KNOWN_PACKAGES`, or if the name does not identify it.
    """
    name = f"{thing.__module__}.{thing.__qualname__}"
    found: Any = sys.modules.get(thing.__module__)
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    # A function can have the name of another function, for example by `functools.wraps`. Such a
    # name does not identify the function.
    if (
        thing.__module__.partition(".")[0] not in KNOWN_PACKAGES
        or found is not thing
        or getattr(thing, "__closure__", None)
    ):
        raise Unknown(name)
    return name
