"""Gears without backlash, ideal or with losses: linear relations between the angles of bodies."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.annotations import ArrayLike, ScalarLike
from frictax.contacts import AbstractContact
from frictax.laws import AbstractLaw
from frictax.parameters import (
    AtLeast,
    Between,
    CheckedModule,
    Increasing,
    Integer,
    Number,
    Positive,
    Real,
    Scalar,
    Values,
    Vector,
    as_array,
    is_traced,
    parameter,
)


class AbstractGear(CheckedModule):
    """A relation sum(factor_k * phi_k) = 0 between the angles of bodies.

    The angles of the other bodies determine the angle of the last body, which does not have a state
    of its own.
    """

    rotational: ClassVar[bool] = True

    @abc.abstractmethod
    def joined_bodies(self) -> tuple[str, ...]:
        """Return the names of the bodies. The last body does not have a state of its own."""

    @abc.abstractmethod
    def factors(self) -> tuple[ScalarLike, ...]:
        """Return factor_k of each body, in the order of `joined_bodies`."""


class AbstractPairGear(AbstractGear):
    """A gear with phi_a = ratio*phi_b. Body `a` determines the angle of body `b`."""

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    ratio: Scalar = parameter(Real(), "1", fit=False)

    def check_rules(self) -> None:
        if not is_traced(self.ratio) and float(self.ratio) == 0:
            name = type(self).__name__
            raise ValueError(f"`{name}.ratio` must not be 0. Give phi_a/phi_b, such as 2.0.")

    def joined_bodies(self) -> tuple[str, ...]:
        return self.a, self.b

    def factors(self) -> tuple[ScalarLike, ...]:
        return 1.0, -self.ratio


class IdealGear(AbstractPairGear):
    """A gear with phi_a = ratio*phi_b. The torque on b is ratio times the torque from a.

    The start values of `a` determine those of `b`, so start values given for `b` are not used.

    **Arguments:** `a`, `b`: names of the bodies; `ratio`: phi_a/phi_b, not 0, negative if the
    bodies turn in opposite directions.

    **Raises:** `ValueError` for a ratio of 0.

    **Source:** Modelica.Mechanics.Rotational.Components.IdealGear.

    A motor of 1 kg.m2 drives a load of 4 kg.m2 through a gear 2:1. The total inertia at the motor
    is 1 + 4/2^2 = 2 kg.m2:

    >>> import frictax as fx, jax.numpy as jnp
    >>> drive = fx.Mechanism(
    ...     motor=fx.Inertia(J=1.0),
    ...     load=fx.Inertia(J=4.0),
    ...     gear=fx.IdealGear("motor", "load", ratio=2.0),
    ...     torque=fx.Torque("motor", 6.0),
    ... )
    >>> run = fx.simulate(drive, ts=jnp.array([0.0, 1.0]))
    >>> round(float(run["motor"].w[-1]), 9), round(float(run["load"].w[-1]), 9)
    (3.0, 1.5)
    """


class IdealPlanetary(AbstractGear):
    """A planetary gear: (1 + ratio)*phi_carrier = phi_sun + ratio*phi_ring.

    The start values of sun and ring determine those of the carrier. To hold one of the three
    bodies, add a `Brake` or a `Position`.

    **Arguments:** `sun`, `carrier`, `ring`: names of the bodies; `ratio` > 0: number of teeth of
    the ring divided by number of teeth of the sun.

    **Raises:** `ValueError` for a ratio <= 0.

    **Source:** Modelica.Mechanics.Rotational.Components.IdealPlanetary.

    >>> import frictax as fx, jax.numpy as jnp
    >>> gear = fx.Mechanism(
    ...     sun=fx.Inertia(J=1.0, w=3.0),
    ...     carrier=fx.Inertia(J=1.0),
    ...     ring=fx.Inertia(J=1.0),
    ...     planetary=fx.IdealPlanetary(sun="sun", carrier="carrier", ring="ring", ratio=2.0),
    ... )
    >>> round(float(fx.simulate(gear, ts=jnp.array([0.0, 1.0]))["carrier"].w[-1]), 9)
    1.0
    """

    sun: str = eqx.field(static=True)
    carrier: str = eqx.field(static=True)
    ring: str = eqx.field(static=True)
    ratio: Scalar = parameter(Positive(), "1", fit=False)

    def joined_bodies(self) -> tuple[str, ...]:
        return self.sun, self.ring, self.carrier

    def factors(self) -> tuple[ScalarLike, ...]:
        return 1.0, self.ratio, -(1 + self.ratio)


class _Corners(AbstractLaw):
    """A law with zero friction; its `breaks` are the speeds at which the loss table has corners."""

    speeds: Float[Array, " n"]

    def __call__(self, v: Values | float) -> Values:
        return jnp.zeros_like(jnp.asarray(v, dtype=float))

    @property
    def is_nonnegative(self) -> bool:
        return True

    @property
    def is_smooth(self) -> bool:
        return True

    @property
    def breaks(self) -> Float[Array, " n"]:
        return self.speeds


class LossyGear(AbstractContact, AbstractPairGear):
    """A gear with phi_a = ratio*phi_b and with losses in teeth and bearings. The gear may stick.

    tau_a is the torque that enters the gear at a. The torque at b is ratio*(tau_a - tauLoss). While
    a turns forward, tauLoss is the greater of two values:

        tauLoss = (1 - eta_mf1)*tau_a + tau_bf1     while the power flows from a to b;
        tauLoss = (1 - 1/eta_mf2)*tau_a + tau_bf2   while the power flows from b to a

    While a turns backward, tauLoss is the lesser of (1 - eta_mf1)*tau_a - tau_bf1 and
    (1 - 1/eta_mf2)*tau_a - tau_bf2. At rest, tauLoss lies between its forward and backward value.

    Efficiencies and bearing torques are interpolated linearly between the given speeds, and
    extrapolated linearly beyond the last row. All columns are constant above the lowest speed at
    which an extrapolated efficiency reaches 1 or 0.01, or a bearing torque reaches 0. Therefore
    losses never drive the gear.

    The start values of `a` determine those of `b`. No other gear may act on body `a`.

    If a friction element also connects the two bodies, a part of the torque does not pass the gear.
    The friction element may reduce the gear losses by more than its own friction. For some loads,
    no combination of sticking and sliding then satisfies the equations, and the run ends with
    `Result.inconsistent`.

    **Arguments:**

    - `a`, `b`: names of the bodies; `ratio`: phi_a/phi_b, not 0.
    - `lossTable`, M x 5: speed |w_a| >= 0 [rad/s], strictly increasing; efficiencies `eta_mf1` and
      `eta_mf2` from 1e-6 to 1; bearing torques `tau_bf1` and `tau_bf2` >= 0 [N.m], equal where both
      efficiencies are 1. Default [[0, 1, 1, 0, 0]]: no losses. Each column is a parameter.

    **Raises:** `ValueError` for a table of another shape and for values outside their domain.

    **Source:** Modelica Standard Library 4.1.0; C. Pelchen, C. Schweiger, M. Otter, Proc. 2nd Int.
    Modelica Conference, 2002.

    A hoist has an efficiency of 80 %. Its motor lifts with 1 N.m against a weight of 0.5 N.m, so
    0.8*1 - 0.5 = 0.3 N.m accelerate the drum:

    >>> import frictax as fx, jax.numpy as jnp
    >>> hoist = fx.Mechanism(
    ...     motor=fx.Inertia(J=1e-9),
    ...     drum=fx.Inertia(J=1.0),
    ...     gear=fx.LossyGear("motor", "drum", ratio=1.0, lossTable=[[0, 0.8, 0.8, 0, 0]]),
    ...     torque=fx.Torque("motor", 1.0),
    ...     weight=fx.Torque("drum", -0.5),
    ... )
    >>> round(float(fx.simulate(hoist, ts=jnp.array([0.0, 1.0]))["drum"].w[-1]), 6)
    0.3
    """

    depends_on_torque = True
    w: Vector = parameter(Increasing(), "rad/s", fit=False, ndim=1)
    eta_mf1: Vector = parameter(Between(1e-6, 1.0), "1", ndim=1)
    eta_mf2: Vector = parameter(Between(1e-6, 1.0), "1", ndim=1)
    tau_bf1: Vector = parameter(AtLeast(0.0), "N.m", ndim=1)
    tau_bf2: Vector = parameter(AtLeast(0.0), "N.m", ndim=1)

    def __init__(
        self, a: str, b: str, ratio: ScalarLike, lossTable: ArrayLike = ((0.0, 1.0, 1.0, 0.0, 0.0),)
    ) -> None:
        rows = as_array(lossTable)
        if np.ndim(rows) != 2 or np.shape(rows)[1] != 5 or np.shape(rows)[0] < 1:
            raise ValueError(
                "`LossyGear.lossTable` must have rows of five numbers, [|w_a|, eta_mf1, eta_mf2,"
                f" tau_bf1, tau_bf2], got {lossTable!r}. Write one row for constants: [[0, 0.9,"
                " 0.9, 0, 0]]."
            )
        self.a, self.b, self.ratio = a, b, as_array(ratio)
        self.w, self.eta_mf1, self.eta_mf2, self.tau_bf1, self.tau_bf2 = (
            rows[:, k] for k in range(5)
        )

    def check_rules(self) -> None:
        columns = (self.w, self.eta_mf1, self.eta_mf2, self.tau_bf1, self.tau_bf2)
        if any(map(is_traced, columns)):
            return
        w, eta1, eta2, bf1, bf2 = map(np.asarray, columns)
        same = (eta1 == 1) & (eta2 == 1) & (bf1 != bf2)
        if np.any(same):
            i = int(np.argmax(same))
            raise ValueError(
                "`LossyGear.tau_bf1` and `tau_bf2` must be equal where both efficiencies are 1, got"
                f" {bf1[i]:g} and {bf2[i]:g} N.m in row {i}, counted from 0: the friction is then"
                " not the greater of its two values. Give equal torques."
            )
        at_rest = [float(x[0] - w[0] * _slope(x, w, 0)) for x in (eta1, eta2, bf1, bf2)]
        lost = min(at_rest[:2]) <= 0 or max(at_rest[:2]) > 1
        if lost or min(at_rest[2:]) < 0:
            raise ValueError(
                "`LossyGear.lossTable` must lead to efficiencies from 0 to 1 and to bearing torques"
                f" >= 0 at rest, but its first two rows lead to {at_rest}. Add a row for speed 0."
            )

    def between(self) -> tuple[str, str | None]:
        return self.a, None

    def law(self, direction: int) -> AbstractLaw:
        if self.w.shape[0] == 1:
            return _Corners(self.w[:0])
        return _Corners(jnp.concatenate([self.w[1:-1], self._end[None]]))

    @property
    def _end(self) -> Array:
        """The speed [rad/s] at which the extrapolation of all columns stops; inf for no limit."""
        last, ends = self.w[-1], []
        for column, low, high in (
            (self.eta_mf1, 0.01, 1.0),
            (self.eta_mf2, 0.01, 1.0),
            (self.tau_bf1, 0.0, jnp.inf),
            (self.tau_bf2, 0.0, jnp.inf),
        ):
            slope = _slope(column, self.w, -2)
            falls, rises = slope < 0, (slope > 0) & (high < jnp.inf)
            room = jnp.where(falls, column[-1] - low, jnp.where(rises, high - column[-1], 0.0))
            speed = last + jnp.maximum(room, 0.0) / jnp.where(falls | rises, jnp.abs(slope), 1.0)
            ends.append(jnp.where(falls | rises, speed, jnp.inf))
        return jnp.min(jnp.stack(ends))

    def extended_rows(self) -> np.ndarray:
        """Return the loss table for programs that always extrapolate through the last two rows.
        Added rows make the values constant beyond the speed at which the extrapolation stops.
        """
        columns = (self.w, self.eta_mf1, self.eta_mf2, self.tau_bf1, self.tau_bf2)
        rows = np.column_stack(list(map(np.asarray, columns)))
        if len(rows) == 1 or not np.isfinite(end := float(self._end)):
            return rows
        share = (end - rows[-1, 0]) / (rows[-1, 0] - rows[-2, 0])
        held = rows[-1] + share * (rows[-1] - rows[-2])
        beyond = held.copy()
        beyond[0] += rows[-1, 0] - rows[-2, 0]
        return np.vstack([rows, *([held] if end > rows[-1, 0] else []), beyond])

    def breakaway(self) -> Number:
        return jnp.ones_like(self.ratio)

    def lines(
        self, v: Number, piece: Integer | None
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return (k, d) of each of the two lines of tauLoss at speed `v` >= 0. For forward motion,
        tauLoss is the greater of the two values k*tau_a + d. For backward motion, tauLoss is the
        lesser of the two values k*tau_a - d.
        """
        eta1, eta2, bf1, bf2 = (
            self._at(column, v, piece)
            for column in (self.eta_mf1, self.eta_mf2, self.tau_bf1, self.tau_bf2)
        )
        return (1 - eta1, bf1), (1 - 1 / eta2, bf2)

    def _at(self, column: Array, v: Array, piece: Array | None) -> Array:
        if column.shape[0] == 1:
            return column[0]
        last = column.shape[0] - 2
        if piece is None:
            return column[0] + _slope(column, self.w, 0) * (v - self.w[0])
        k = jnp.minimum(piece, last)
        end = self._end
        is_held = (piece > last) & (end < jnp.inf)
        v = jnp.where(is_held, end, v)
        slope = (column[k + 1] - column[k]) / (self.w[k + 1] - self.w[k])
        return column[k] + slope * (v - self.w[k])


def _slope(column: Any, speeds: Any, k: int) -> Any:
    """Return the slope of `column` from row k to row k + 1; 0 for a table of one row."""
    if column.shape[0] == 1:
        return 0.0
    return (column[k + 1] - column[k]) / (speeds[k + 1] - speeds[k])
