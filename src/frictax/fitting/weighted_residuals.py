"""The residuals of a fit as a pure function of the model, for your own optimisers and studies."""

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.engine import Engine, OnSamples
from frictax.laws import AbstractLaw
from frictax.measurements import Record, Sweep
from frictax.mechanism import Machine

from .build_problem import prepare_record, sensors
from .checks import check_deviations
from .problem.inverse_dynamics import InverseDynamics
from .problem.objectives import AbstractObjective, Steady
from .problem.problem import steady_plan
from .problem.setup import Instrument, Setup
from .problem.simulations import FreeRun
from .problem.steady import SteadyFriction


def weighted_residuals(
    model: AbstractLaw | SteadyFriction | Machine,
    data: Sweep | Record,
    objective: AbstractObjective | None = None,
    *,
    engine: Engine | None = None,
    instruments: Mapping[str, Instrument] | None = None,
) -> Float[Array, " n"]:
    """Return (predicted - measured) / sd of all values that an objective compares, with 0 for
    samples without weight.

    The function is pure in `model`, so `jax.grad`, `jacfwd`, `vmap` and `jit` can transform it.
    `fit` minimises half the sum of squares of these residuals. With `Windows`, only the first
    search minimises this sum, because the second search corrects the initial states of the windows.
    If a simulation fails, the residuals are not finite.

    **Arguments:** `model`: a law or `SteadyFriction` for a sweep, a machine for a record. For a
    record only, `objective` (default `FreeRun()`), `engine` (default `OnSamples()`) and
    `instruments` have the same meaning as in `fit`.

    >>> import frictax as fx, jax, jax.numpy as jnp
    >>> sweep = fx.Sweep([1, 2, 4], [7.0, 8.0, 10.5], velocity_unit="m/s", force_unit="N")

    >>> law = fx.Coulomb(F_Coulomb=6.0, F_prop=1.0)
    >>> fx.weighted_residuals(law, sweep).round(6).tolist()
    [0.0, 0.0, -0.5]
    >>> cost = lambda law: 0.5 * jnp.sum(fx.weighted_residuals(law, sweep) ** 2)
    >>> jax.grad(cost)(law)
    Coulomb(F_Coulomb=-0.5, F_prop=-2.0)
    """
    if isinstance(data, Sweep):
        prepared, setup = (
            steady_plan(model, data.name, data),
            Setup(model, *(sensors(k, (), {}) for k in ("inputs", "outputs"))),
        )
        return jnp.ravel(
            prepared.weight
            * (prepared.predict(setup, Steady(), None, frozenset()) - prepared.measured)
        )
    objective = FreeRun() if objective is None else objective
    if not isinstance(model, Machine):
        raise ValueError(
            "`weighted_residuals` of a record needs a `Mechanism` or a hybrid system of your own,"
            f" got {model!r}. A law's data are a `Sweep`."
        )
    check_deviations({data.name: data}, objective.in_units_of_outputs())
    delays = {name: float(one.delay) for name, one in (instruments or {}).items()}
    if isinstance(objective, InverseDynamics) and any(
        delay != 0 for name, delay in delays.items() if name.startswith("outputs.")
    ):
        objective = dataclasses.replace(objective, at_samples=True)  # as in `fit`
    engine = OnSamples() if engine is None else engine
    setup, prepared, delayed = prepare_record(
        objective.machine(model), data, objective, instruments, engine
    )
    predicted = prepared.predict(setup, objective, engine, delayed)
    return jnp.ravel(prepared.weight * (predicted - prepared.measured))
