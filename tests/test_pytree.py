"""Dataclasses that JAX takes apart."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import frictax as fx
from frictax.pytree import pytree_dataclass, static


@pytree_dataclass
class Load:
    mass: Any
    name: str = static()

    def doubled(self) -> "Load":
        return dataclasses.replace(self, mass=2.0 * self.mass)


def test_arrays_go_in_and_names_stay_in_the_structure() -> None:
    leaves, structure = jax.tree_util.tree_flatten(Load(np.array(3.0), "block"))
    assert leaves == [np.array(3.0)]
    assert (
        structure
        == jax.tree_util.tree_structure(Load(0.0, "block"))
        != jax.tree_util.tree_structure(Load(0.0, "other"))
    )
    (path, _), *_ = jax.tree_util.tree_leaves_with_path(Load(1.0, "block"))
    assert jax.tree_util.keystr(path) == ".mass"
    heavier = eqx.filter_jit(lambda load: load.doubled())(Load(np.array(3.0), "block"))
    assert (float(heavier.mass), heavier.name) == (6.0, "block")
    assert float(eqx.tree_at(lambda load: load.mass, heavier, 1.5).mass) == 1.5


def test_it_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Load(1.0, "block").mass = 2.0  # pyright: ignore[reportAttributeAccessIssue]


def test_objectives_that_say_the_same_are_equal() -> None:
    assert fx.Windows(0.5) == fx.Windows(0.5) != fx.Windows(0.6)
    assert len({fx.FreeRun(), fx.FreeRun(), fx.FreeRun(measured_start=True)}) == 2
    # what is as usual is not said
    assert repr(fx.Windows(0.6)) == str(fx.Windows(0.6)) == "Windows(length=0.6)"
