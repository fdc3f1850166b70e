"""What a fit to a sweep refuses, in one sentence."""

import jax
import numpy as np
import pytest

from frictax.fitting import (
    Huber,
    LevenbergMarquardt,
    Optax,
    SteadyFriction,
    fit,
    fit_many,
    starting_law,
)
from frictax.laws import Coulomb, Stribeck, Table
from frictax.measurements import Sweep

BAD = [
    (
        "start on its edge",
        lambda s: fit(Coulomb(F_Coulomb=1.0), s, free=["F_Coulomb", "F_prop"]),
        ["`Coulomb.F_prop` = 0", "edge"],
    ),
    (
        "unknown path",
        lambda s: fit(Coulomb(F_Coulomb=1.0), s, free=["F_coulomb"]),
        ["'F_coulomb'", "Did you mean 'F_Coulomb'"],
    ),
    (
        "nothing free",
        lambda s: fit(SteadyFriction(Coulomb(F_Coulomb=1.0)), s, free=["peak"]),
        ["Nothing is left to fit"],
    ),
    (
        "too few rows",
        lambda s: fit(Stribeck, Sweep(s.velocity[:4], s.force[:4])),
        ["4 rows", "5 is the least"],
    ),
    (
        "text for a law",
        lambda s: fit("stribeck", s),  # pyright: ignore
        ["'stribeck'", "fx.Stribeck"],
    ),
    (
        "offset beside f_neg",
        lambda s: fit(Stribeck, s, f_neg=Stribeck, offset=0.0),
        ["`offset`", "asymmetry of Coulomb friction"],
    ),
    (
        "offset in one direction",
        lambda s: fit(Stribeck, s.positive(), offset=0.0),
        ["`offset`", "both directions"],
    ),
    (
        "f_neg without its rows",
        lambda s: fit(Stribeck, s.positive(), f_neg=Stribeck),
        ["no rows with v < 0"],
    ),
    (
        "extras beside steady friction",
        lambda s: fit(SteadyFriction(Coulomb(F_Coulomb=1.0)), s, peak=1.1),
        ["inside the `SteadyFriction`"],
    ),
    ("level", lambda s: fit(Coulomb, s, level=95.0), ["between 0 and 1", "0.95"]),
    (
        "steps",
        lambda s: fit(Coulomb, s, method=LevenbergMarquardt(max_steps=0)),
        ["max_steps", ">= 1"],
    ),
    (
        "tolerance",
        lambda s: fit(Coulomb, s, method=LevenbergMarquardt(tolerance=1e-16)),
        ["tolerance", "64 bit"],
    ),
    (
        "not an optax rule",
        lambda s: fit(Coulomb, s, method=Optax(3)),  # pyright: ignore
        ["optax transformation", "optax.adam"],
    ),
    ("delta", lambda s: fit(Coulomb, s, loss=Huber(-1.0)), ["`Huber.delta`", "1.345"]),
    ("nodes", lambda s: starting_law(Table, s, nodes=90), ["2 to 31 nodes"]),
    ("law without a start", lambda s: fit(SteadyFriction, s), ["law"]),  # pyright: ignore
    (
        "shape of many measurements",
        lambda s: fit_many(Coulomb(F_Coulomb=1.0, F_prop=1.0), s, np.ones(3)),
        ["(k, 32)"],
    ),
]


@pytest.mark.parametrize(
    ("call", "words"), [pytest.param(call, words, id=name) for name, call, words in BAD]
)
def test_a_bad_request_gives_one_clear_sentence(drive, call, words: list[str]) -> None:
    with pytest.raises((ValueError, KeyError)) as caught:
        call(drive(1))
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_32_bits_are_refused_with_the_remedy(drive) -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        fit(Coulomb, drive(1))
