"""What a program is made from, as text that is the same in every process."""

import contextlib
import dataclasses
import enum
import functools
import hashlib
import os
import platform
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import numpy as np

# whose classes and functions a version tells apart
_FAMILY = ("frictax", "diffrax", "optax", "equinox", "jax", "numpy")
_BEGUN = time.time()  # sources that change after this are not those that run


class Unknown(Exception):
    """Something whose meaning the next process could not be told by name."""


@functools.cache
def surroundings() -> str:
    """What else a program depends on: sources, versions and the processor; raises `Unknown` where
    sources have changed since they were imported.
    """
    digest = hashlib.sha256()
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    if not sources:  # frictax was imported from an archive
        raise Unknown(__file__)
    for source in sources:
        if source.stat().st_mtime > _BEGUN:
            raise Unknown(source)
        digest.update(source.read_bytes())
    # Of what is imported the version that is, whatever was installed since.
    names = ["jax", "jaxlib", "equinox", "diffrax", "optax", "numpy"]
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
    ]
    return "\n".join((*parts, os.environ.get("XLA_FLAGS", "")))


def key_text(thing: Any, fixed: bool = False) -> str:
    """`thing` as text that tells all that a program may depend on: of arrays shape and type alone,
    unless they are `fixed` in it.

    Raises `Unknown` for classes and functions whose sources are not those of a known version.
    """
    if isinstance(thing, np.ndarray | np.generic | jax.Array):
        content = (
            hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
            if fixed
            else getattr(thing, "weak_type", False)
        )
        return (
            f"{type(thing).__name__ if fixed else 'array'} {thing.dtype} {np.shape(thing)}"
            f" {content}"
        )
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
    """Where a class or function is written, where that is one of the packages known."""
    name = f"{thing.__module__}.{thing.__qualname__}"
    found: Any = sys.modules.get(thing.__module__)
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    # One that bears the name of another, as by `functools.wraps`, is not that.
    if (
        thing.__module__.partition(".")[0] not in _FAMILY
        or found is not thing
        or getattr(thing, "__closure__", None)
    ):
        raise Unknown(name)
    return name
