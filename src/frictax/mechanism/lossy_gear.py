"""Modelica.Mechanics.Rotational.Components.LossyGear."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.annotations import ArrayLike, ScalarLike
from frictax.contacts import AbstractContact
from frictax.laws import AbstractLaw
from frictax.parameters import (
    AtLeast,
    Increasing,
    Integer,
    Number,
    Positive,
    Values,
    Vector,
    as_array,
    parameter,
)

from .gears import AbstractPairGear


class _Corners(AbstractLaw):
    """Where the loss table has corners."""

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
        return self.speeds[1:-1]


class LossyGear(AbstractContact, AbstractPairGear):
    """A gear with losses in its meshing and its bearings: phi_a = ratio*phi_b, and it may stick.

    With tau_a the torque that enters at a, the torque at b is ratio*(tau_a - tauLoss). Where a
    turns forward,

        tauLoss = (1 - eta_mf1)*tau_a + tau_bf1     while the power flows from a to b
        tauLoss = (1 - 1/eta_mf2)*tau_a + tau_bf2   while it flows back

    which is the greater of the two; backward it is the lesser of (1 - eta_mf1)*tau_a - tau_bf1 and
    (1 - 1/eta_mf2)*tau_a - tau_bf2. At rest it holds any tauLoss between the least and the
    greatest. Efficiencies and bearing torques are straight lines between the given speeds.

    Body `b` follows `a`: start values are those of `a`. On body `a` no other gear may act.

    A friction between its own two bodies takes torque past the gear, whose losses may fall by more
    than that friction brakes: for some loads no modes fit the forces then, and the run ends as
    `Result.inconsistent`.

    **Arguments:**

    - `a`, `b`: names of the bodies; `ratio`, not 0: phi_a/phi_b.
    - `lossTable`, M x 5: speed |w_a| >= 0 [rad/s], strictly increasing; efficiencies `eta_mf1` and
      `eta_mf2` > 0 [1]; bearing torques `tau_bf1` and `tau_bf2` >= 0 [N.m]. Default [[0, 1, 1, 0,
      0]], no losses. The columns are parameters under these names.

    **Raises:** `ValueError` for another shape and values outside their domain.

    **Source:** Modelica Standard Library 4.1.0; C. Pelchen, C. Schweiger, M. Otter, Proc. 2nd Int.
    Modelica Conference, 2002.

    A gear of 80 % that lifts: 1 N.m against 0.5 N.m, of which 0.8*1 - 0.5 = 0.3 N.m accelerate

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
    eta_mf1: Vector = parameter(Positive(), "1", ndim=1)
    eta_mf2: Vector = parameter(Positive(), "1", ndim=1)
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

    def between(self) -> tuple[str, str | None]:
        return self.a, None

    def law(self, direction: int) -> AbstractLaw:
        return _Corners(self.w)

    def breakaway(self) -> Number:
        return jnp.ones_like(self.ratio)

    def lines(
        self, v: Number, piece: Integer | None
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Forward, tauLoss is the greater of two straight lines k*tau_a + d at the speed `v` >= 0:
        (k, d) of each.

        Backward it is the lesser of both with -d.
        """
        eta1, eta2, bf1, bf2 = (
            self._at(column, v, piece)
            for column in (self.eta_mf1, self.eta_mf2, self.tau_bf1, self.tau_bf2)
        )
        return (1 - eta1, bf1), (1 - 1 / eta2, bf2)

    def _at(self, column: Array, v: Array, piece: Array | None) -> Array:
        if column.shape[0] == 1:
            return column[0]
        k = jnp.asarray(0) if piece is None else jnp.minimum(piece, column.shape[0] - 2)
        return column[k] + (column[k + 1] - column[k]) / (self.w[k + 1] - self.w[k]) * (
            v - self.w[k]
        )
