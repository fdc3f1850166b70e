"""Tests of programs that are kept begin without JAX's own cache, which the rest may keep."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def _without_jax_cache() -> Iterator[None]:
    before = getattr(jax.config, "jax_compilation_cache_dir")  # noqa: B009
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)
