"""The Fisher information of a run, to be differentiated."""

from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.annotations import ArrayLike
from frictax.engine import Adaptive, Engine, OnSamples, walk
from frictax.engine.sensitive import Sensitive
from frictax.fitting import Instrument
from frictax.fitting.build_problem import sensors
from frictax.fitting.problem.setup import Setup
from frictax.mechanism import Machine
from frictax.parameters import select

from .informed import Informed, UnderTest


def information(
    machine: Machine,
    ts: ArrayLike,
    outputs: Mapping[str, float],
    *,
    free: str | Iterable[str] | None = None,
    inputs: Mapping[str, ArrayLike] | None = None,
    instruments: Mapping[str, Instrument] | None = None,
    windows: float | None = None,
    hold: bool = False,
    engine: Engine | None = None,
) -> Float[Array, "p p"]:
    """What a record of `outputs` at the times `ts` tells of the parameters `free`: the integral of
    ``rate/sd**2 * S' S`` over the run, S the derivatives of an output by the parameters.

    It is a state of the run, so that its own derivatives, forward and reverse, by inputs and by
    values of the machine, are exact through all events. The sum over samples, ``J' J`` of the
    derivatives of a simulation, is the same number as nearly as samples are dense, and must not be
    differentiated: it jumps where an event passes a sample, and its derivative between leaves out
    all that events contribute, half of it or more.

    **Arguments:**

    - `machine`, `free`, `instruments`: as for `fit`; a hybrid system of one's own says how it
      starts, and names its `variables`.
    - `ts` (n,) [s]; `outputs`: variable -> standard deviation of the noise of a sample.
    - `inputs`: part -> (n,), drives at the times `ts`; `hold`: held between.
    - `windows`: length [s] of windows that a fit will cut the record into, each of which begins
      where the machine is; None for one run.
    - `engine`: unless given, `OnSamples()` with inputs, else `Adaptive()`.

    **Returns:** (p, p), in the order of ``fx.parameters.select(machine, free)``, tables entry by
    entry; nan where the run does not reach its end.

    A mass that slides to rest tells its friction by when it stops:

    >>> import frictax as fx, jax, jax.numpy as jnp, numpy as np
    >>> def told(v):
    ...     block = fx.Mechanism(
    ...         mass=fx.Mass(m=1.0, v=v),
    ...         friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ...     )
    ...     ts = np.linspace(0.0, 1.0, 101)
    ...     return fx.information(block, ts, {"mass.v": 0.1}, free="friction.f_pos.F_Coulomb")[0, 0]
    >>> [round(float(x), 6) for x in (told(1.0), jax.grad(told)(1.0))]  # 1e4/3*(v/2)**3
    [416.666667, 1250.0]
    """
    t = np.asarray(ts, dtype=float)
    if t.ndim != 1 or t.size < 2 or not np.all(np.diff(t) > 0):
        raise ValueError(
            "`information`: `ts` must be at least two times [s] that increase, got shape"
            f" {t.shape}."
        )
    given = {name: jnp.asarray(u, dtype=float) for name, u in (inputs or {}).items()}
    wrong = [name for name, u in given.items() if u.shape != t.shape]
    if wrong:
        raise ValueError(
            f"`information`: the input {wrong[0]!r} must have a value at each of the {t.size}"
            f" times, got shape {given[wrong[0]].shape}."
        )
    if not outputs:
        raise ValueError(
            '`information`: `outputs` must name what is measured, such as {"mass.v": 2e-3}.'
        )
    known = dict(instruments or {})
    setup = Setup(
        machine, sensors("inputs", tuple(given), known), sensors("outputs", tuple(outputs), known)
    )
    paths = tuple(p.path for p in select(setup, free))
    under_test = UnderTest(setup, t, given, paths, tuple(outputs), hold)
    rate = (t.size - 1) / (t[-1] - t[0])
    weight = jnp.asarray([rate / sd**2 for sd in outputs.values()])
    restarts = np.zeros(0) if windows is None else np.arange(t[0] + windows, t[-1], windows)
    if engine is None:
        engine = OnSamples() if given else Adaptive()
    informed = informed_of(under_test, under_test.values(), weight, restarts)
    path = walk(
        informed,
        *informed.start(jnp.asarray(t[0])),
        t if isinstance(engine, OnSamples) else t[[0, -1]],
        options=engine,
    )
    return informed.matrix(path.ys[-1])


def informed_of(
    under_test: UnderTest, x: Float[Array, " p"], weight: Any, restarts: Any
) -> Informed:
    """The machine with values `x`, with its information as a state."""
    n = under_test.system(x).start(jnp.asarray(under_test.t[0]))[0].shape[0]
    return Informed(Sensitive(under_test, x, n), jnp.asarray(weight), jnp.asarray(restarts))
