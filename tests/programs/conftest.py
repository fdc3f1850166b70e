"""Tests of programs that are kept begin without JAX's own cache, which the rest may keep."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def _without_jax_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = ("jax_compilation_cache_dir", "jax_enable_compilation_cache")
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    # A command that a test called in this process may have switched the cache off.
    jax.config.update("jax_enable_compilation_cache", True)
    monkeypatch.delenv("JAX_ENABLE_COMPILATION_CACHE", raising=False)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
