"""Machines for fits, and records that they would give."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

import frictax as fx

T = np.linspace(0.0, 6.0, 601)
# Sticks, breaks away and reaches speeds well above 1/fexp.
U = 3.0 * np.sin(2 * np.pi * 0.5 * T) + 1.5 * np.sin(2 * np.pi * 0.37 * T)
LAW = ["friction.f_pos"]
TRUE_LAW = {"F_prop": 0.2, "F_Coulomb": 1.0, "F_Stribeck": 0.4, "fexp": 5.0}
AWAY_LAW = {"F_prop": 0.17, "F_Coulomb": 1.1, "F_Stribeck": 0.34, "fexp": 6.0}
FINE = fx.OnSamples(substeps=4)  # records are made four times as finely as they are fitted
NOISE = 0.002


def block(
    *,
    m: float = 1.0,
    s: float = 0.0,
    v: float = 0.0,
    peak: float = 1.2,
    f_neg: Any = None,
    parts: Any = None,
    **law: float,
) -> Any:
    """A mass with Stribeck friction under a force; what is not given is true."""
    return fx.Mechanism(
        mass=fx.Mass(m=m, s=s, v=v),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Stribeck(**{**TRUE_LAW, **law}), f_neg=f_neg, peak=peak
        ),
        drive=fx.Force("mass", 0.0),
        **(parts or {}),
    )


def motion(machine: Any, t: np.ndarray = T, u: np.ndarray = U, hold: bool = False) -> Any:
    """The machine's run under the force `u`."""
    parts = {
        **dict(machine.named_parts()),
        "drive": fx.Force("mass", fx.Sampled(jnp.asarray(t), jnp.asarray(u), hold=hold)),
    }
    return fx.simulate(fx.Mechanism(**parts), t, FINE)


def record(
    machine: Any,
    sd: Mapping[str, float] | None = None,
    *,
    t: np.ndarray = T,
    u: np.ndarray = U,
    hold: bool = False,
    seed: int = 0,
    name: str = "run",
) -> fx.Record:
    """What sensors with white noise `sd` measure of it: its speed unless said otherwise."""
    sd = {"mass.v": NOISE} if sd is None else sd
    run, rng = motion(machine, t, u, hold), np.random.default_rng(seed)
    outputs = {
        n: np.asarray(getattr(run["mass"], n[-1])) + s * rng.standard_normal(t.size)
        for n, s in sd.items()
    }
    return fx.Record(t, {"drive": u}, outputs, dict(sd), hold=hold, name=name)


def assert_recovered(found: Any, truth: Mapping[str, Any], errors: float = 4.0) -> None:
    """Each number within so many of its standard errors of the truth, and the search at its end."""
    assert found.converged, found
    for path, true in truth.items():
        off = np.abs(np.asarray(found.values[path]) - true) / np.asarray(
            found.standard_errors[path]
        )
        assert np.all(off < errors), f"{path}: {off} standard errors off\n{found}"


TRUE = {f"friction.f_pos.{name}": value for name, value in TRUE_LAW.items()}
