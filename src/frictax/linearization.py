"""Linearise a machine about a state, while the modes of its contacts are constant."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.engine.sensitive import jvp_columns
from frictax.mechanism import Machine, MechanicalSystem, Mechanism
from frictax.mechanism.layout import signal_of
from frictax.parameters import Integer, Number
from frictax.signals import AbstractSignal


class Linearization(eqx.Module):
    """The linearisation d(dy)/dt = A dy + B du, for small changes dy of the state and du of the
    inputs. The linearisation is valid until a contact changes its mode.

    - `A`, shape (n, n): derivative of the state rates with respect to the states. The relative
      acceleration of a stuck contact is 0, so two bodies that are stuck together accelerate as one.
    - `B`, shape (n, k): derivative of the state rates with respect to the signals of the parts
      `inputs`, each in the unit of its signal.
    - `states`: names of the rows of A and B; `inputs`: names of the columns of B.

    **Example:** at `linearize`.
    """

    A: Float[Array, "n n"]
    B: Float[Array, "n k"]
    states: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)


def linearize(
    machine: Machine,
    t: ScalarLike | None,
    y: ArrayLike | None,
    mode: ArrayLike | None,
    inputs: str | Iterable[str] = (),
    args: PyTree = None,
) -> Linearization:
    """Linearise `machine` about time `t` [s], state `y` and `mode`, for example ``run.ts[i],
    run.ys[i], run.modes[i]``.

    **Arguments:** `y`, shape (n,): state; `mode`, shape (m,): mode vector; `inputs`: names of
    forces, torques, brakes or clutches of a `Mechanism` whose signals are the inputs u; `args`:
    arguments of a user's own hybrid system.

    **Returns:** a `Linearization`. The result can be differentiated, and batched by `jax.vmap`.

    **Raises:** `ValueError` if an input does not have a signal or is a prescribed motion, or if a
    hybrid system has `inputs`. For a `Mechanism`, `y` and `mode` must have the right shape.

    At v = 0, a bristle that carries the force F has two slopes of dF/dt over v. With a `LuGre`
    bristle of limit g, the slope is sigma_0*(1 - F/g) for forward motion and sigma_0*(1 + F/g) for
    backward motion. `A` contains the slope for forward motion.

    A mass of 2 kg on a spring of 8 N/m is linearised twice: while friction keeps it at rest, and
    while it slides with viscous friction of 3 N.s/m:

    >>> import frictax as fx, jax.numpy as jnp
    >>> machine = fx.Mechanism(
    ...     wall=fx.Fixed(),
    ...     mass=fx.Mass(m=2.0),
    ...     spring=fx.Spring("wall", "mass", c=8.0),
    ...     push=fx.Force("mass", 0.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=3.0)),
    ... )
    >>> run = fx.simulate(machine, jnp.array([0.0, 1.0]))
    >>> fx.linearize(machine, 0.0, run.ys[0], run.modes[0]).A.tolist()
    [[0.0, 1.0], [0.0, 0.0]]

    >>> sliding = run.modes[0].at[0].set(fx.Mode.FORWARD)
    >>> there = fx.linearize(machine, 0.0, jnp.array([0.0, 0.5]), sliding, inputs="push")
    >>> there.A.tolist(), there.B.tolist(), there.states
    ([[0.0, 1.0], [-4.0, -1.5]], [[0.0], [0.5]], ('mass.s', 'mass.v'))
    """
    names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    y, t = jnp.asarray(y, dtype=float), jnp.asarray(t, dtype=float)
    mode = jnp.asarray(mode, dtype=jnp.int32)
    places: dict[str, tuple[int, str]] = {}  # part name -> its index, and the field of its signal

    def system(u: Array) -> Any:
        """Return the hybrid system with the numbers u added to its input signals."""
        raised: Any = machine
        for name, by in zip(names, u, strict=True):
            part, field = places[name]
            signal = _Raised(signal_of(raised, (part, field)), by)
            raised = eqx.tree_at(
                lambda m, part=part, field=field: getattr(m.parts[part], field), raised, signal
            )
        return MechanicalSystem(raised) if isinstance(machine, Mechanism) else raised

    if isinstance(machine, Mechanism):
        lay = MechanicalSystem(machine).layout
        motions = {signal for _, _, signal in lay.motions}
        entries = lay.first_signal + len(lay.signals)
        if mode.shape != (entries,):
            raise ValueError(
                f"`linearize`: `mode` must have {entries} entries, got an array of shape"
                f" {mode.shape}. Take a row of `run.modes`."
            )
        for j, (part, field) in enumerate(lay.signals):
            if j not in motions:
                places[machine.names[part]] = part, field
        for name in names:
            machine[name]  # The index operator raises an error for an unknown part.
            if name not in places:
                raise ValueError(
                    f"`linearize`: the input {name!r} must be a force, torque, brake or clutch with"
                    f" a drive, got a {type(machine[name]).__name__}. Those of this machine:"
                    f" {', '.join(places) or 'none'}."
                )
    elif names:
        raise ValueError(
            "`linearize`: `inputs` must name parts of a `Mechanism`, got a"
            f" {type(machine).__name__}. Differentiate its `flow`."
        )
    states = system(jnp.zeros(len(names))).states()
    if isinstance(machine, Mechanism):
        accounts = MechanicalSystem(machine, energy=True).accounts
        # `y` may also contain the energies of an energy balance, after the states.
        y = y[: len(states)] if y.shape == (len(states) + accounts,) else y
    if y.shape != (len(states),):
        raise ValueError(
            f"`linearize`: `y` must have {len(states)} entries, {', '.join(states)}, got an array"
            f" of shape {y.shape}. Take a row of `run.ys`."
        )
    rates = lambda y, u: system(u).flow(t, y, mode, args)  # noqa: E731
    n, k = y.shape[0], len(names)
    along = jnp.eye(n, n + k), jnp.eye(k, n + k, n)
    _, slopes = jvp_columns(rates, (y, jnp.zeros(k)), along)
    return Linearization(slopes[:, :n], slopes[:, n:], states, names)


class _Raised(AbstractSignal):
    """The sum of a signal and the constant `by`."""

    signal: AbstractSignal
    by: Number

    def on_piece(self, t: Number, k: Integer) -> Number:
        return self.signal.on_piece(t, k) + self.by

    def piece(self, t: Number) -> Integer:
        return self.signal.piece(t)

    def end(self, k: Integer) -> Number:
        return self.signal.end(k)
