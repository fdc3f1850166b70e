"""What a result was made with."""

import contextlib
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import frictax

_PACKAGES = "jax jaxlib diffrax equinox optax optimistix numpy scipy".split()


def versions() -> dict[str, str]:
    """Name -> version of frictax, Python and the packages that numbers depend on, as far as they
    are installed.
    """
    known = {"frictax": frictax.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            known[package] = version(package)
    return known


def in_words(spelled: Callable[[str], str] = str) -> str:
    """The same in a row, the name of the language as it is `spelled`."""
    return ", ".join(
        f"{spelled(name) if name == 'python' else name} {number}"
        for name, number in versions().items()
    )
