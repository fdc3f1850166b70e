"""A characteristic given by points."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.annotations import ArrayLike
from frictax.parameters import (
    AtLeast,
    CheckedModule,
    Increasing,
    Number,
    Values,
    Vector,
    as_array,
    is_traced,
    parameter,
)
from frictax.parameters.least import least, smaller

from .law import AbstractLaw, entry


class Table(CheckedModule, AbstractLaw):
    """A characteristic through given points, straight between them, as Modelica's `f_pos`,
    `tau_pos` and `mu_pos`.

    Outside the table the line through the first two or the last two points goes on, also to v = 0
    when the first speed lies above it; one row is a constant.

    **Arguments:** `rows`, M x 2: speeds [m/s], strictly increasing, and forces [N], >= 0.

    **Raises:** `ValueError` for another shape, repeated or falling speeds, a negative or non-finite
    value.

    **Source:** Modelica.Blocks.Tables.CombiTable1D (LinearSegments, LastTwoPoints).

    The example of the Modelica documentation, with a value inside and one outside the table:

    >>> import frictax as fx
    >>> f_pos = fx.Table([[0, 0], [1, 2], [2, 5], [3, 8]])
    >>> [float(f_pos(v)) for v in (0.0, 0.5, 1.0, 1.5, 3.0, 4.0, -1.0)]
    [0.0, 1.0, 2.0, 3.5, 8.0, 11.0, -2.0]
    """

    v: Vector = parameter(Increasing(), "m/s", fit=False, ndim=1)
    f: Vector = parameter(AtLeast(0.0), "N", ndim=1)

    def __init__(self, rows: ArrayLike) -> None:
        pairs: Any = as_array(rows)
        shape = np.shape(pairs) if isinstance(pairs, jax.Array | np.ndarray) else None
        if shape is None or len(shape) != 2 or shape[0] < 1 or shape[1] != 2:
            raise ValueError(
                "`Table` must have rows of two numbers, [speed, force], got"
                f" {'shape ' + str(shape) if shape else repr(pairs)}. Write one row for a constant:"
                " [[0, 5]]."
            )
        self.v, self.f = pairs[:, 0], pairs[:, 1]

    def check_rules(self) -> None:
        if is_traced(self.v) or is_traced(self.f):
            return
        v, f = np.asarray(self.v), np.asarray(self.f)
        if v[0] < 0:
            raise ValueError(
                f"`Table.v` must be >= 0, got {v[0]:g} m/s. A table holds one direction; give the"
                " other its own, as `f_neg`."
            )
        f0 = f[0] if v.size == 1 else f[0] - v[0] * (f[1] - f[0]) / (v[1] - v[0])
        if f0 < 0:
            raise ValueError(
                f"`Table` must be >= 0 at rest, but its first two rows lead to {f0:g} N at v = 0."
                " Add a row for speed 0."
            )

    def __call__(self, v: Values | float) -> Values:
        v = jnp.asarray(v)
        piece = (
            jnp.searchsorted(self.breaks, v, side="right")
            if self.breaks.shape[0]
            else jnp.zeros(v.shape, int)
        )
        return self.on_piece(v, piece)

    @property
    def f0(self) -> Number:
        # its speeds are >= 0, so that this lies on the first piece or before it
        return self.on_piece(jnp.zeros(()), 0)

    @property
    def stribeck_dip(self) -> tuple[Number, float]:
        return smaller(least(self.f), self.f0), 0.0

    @property
    def is_smooth(self) -> bool:
        return True

    @property
    def breaks(self) -> Float[Array, " n"]:
        return self.v[1:-1]

    def on_piece(self, v: Values, piece: Int[Array, "..."] | int) -> Values:
        if self.v.shape[0] == 1:
            return self.f[0] + 0.0 * v
        v0, f0, v1, f1 = (entry(x, k) for k in (piece, piece + 1) for x in (self.v, self.f))
        return f0 + (f1 - f0) / (v1 - v0) * (v - v0)
