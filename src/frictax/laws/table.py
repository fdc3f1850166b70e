"""`Table`: a friction law given by points, with linear interpolation."""

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.annotations import ArrayLike, Checked
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
from frictax.parameters.arrays import least, smaller

from .law import AbstractLaw, entry

Extrapolation = Literal["linear", "hold", "error"]
EXTRAPOLATIONS: tuple[Extrapolation, ...] = ("linear", "hold", "error")


class Table(CheckedModule, AbstractLaw):
    """A law through given points with linear interpolation, like Modelica's `f_pos` and `mu_pos`.

    Below the first row the line through the first two rows continues to v = 0. A table of one row
    is constant at all speeds.

    **Arguments:**

    - `rows`, M x 2: speeds [m/s], strictly increasing, and forces [N], >= 0.
    - `extrapolation`: the law beyond its last row. ``"linear"``, as in Modelica: the line through
      the last two rows continues. If the extrapolated force reaches 0, it is 0 at all higher
      speeds. ``"hold"``: the force of the last row. ``"error"``: the law is NaN. A run beyond the
      last row ends with `Result.nonfinite`, and the message of `simulate` names the law.

    **Raises:** `ValueError` for rows of another shape, repeated or decreasing speeds, a negative
    or non-finite value, or an unknown word for `extrapolation`.

    **Source:** Modelica.Blocks.Tables.CombiTable1D (LinearSegments, LastTwoPoints).

    The example of the Modelica documentation, with a value inside and one outside the table:

    >>> import frictax as fx
    >>> f_pos = fx.Table([[0, 0], [1, 2], [2, 5], [3, 8]])

    >>> [float(f_pos(v)) for v in (0.0, 0.5, 1.0, 1.5, 3.0, 4.0, -1.0)]
    [0.0, 1.0, 2.0, 3.5, 8.0, 11.0, -2.0]

    A table with decreasing force, evaluated 3 m/s beyond its last row:

    >>> rows = [[0, 10], [1, 5]]
    >>> [float(fx.Table(rows, extrapolation=how)(4.0)) for how in ("linear", "hold", "error")]
    [0.0, 5.0, nan]
    """

    v: Vector = parameter(Increasing(), "m/s", fit=False, ndim=1)
    f: Vector = parameter(AtLeast(0.0), "N", ndim=1)
    extrapolation: Checked[Extrapolation] = eqx.field(static=True, default="linear")

    meanings: ClassVar = {"f": "friction at a node of the table"}

    def __init__(self, rows: ArrayLike, extrapolation: Checked[Extrapolation] = "linear") -> None:
        pairs: Any = as_array(rows)
        shape = np.shape(pairs) if isinstance(pairs, jax.Array | np.ndarray) else None
        if shape is None or len(shape) != 2 or shape[0] < 1 or shape[1] != 2:
            raise ValueError(
                "`Table` must have rows of two numbers, [speed, force], got"
                f" {'shape ' + str(shape) if shape else repr(pairs)}. Write one row for a constant:"
                " [[0, 5]]."
            )
        self.v, self.f = pairs[:, 0], pairs[:, 1]
        self.extrapolation = extrapolation

    def check_rules(self) -> None:
        if self.extrapolation not in EXTRAPOLATIONS:
            raise ValueError(
                f"`Table.extrapolation` must be one of {', '.join(map(repr, EXTRAPOLATIONS))}, got"
                f" {self.extrapolation!r}. Write 'hold' to keep the force of the last row."
            )
        if np.shape(self.v) != np.shape(self.f):
            raise ValueError(
                "`Table.v` and `Table.f` must be two lists of one length, got shapes"
                f" {np.shape(self.v)} and {np.shape(self.f)}. Give one force for each speed."
            )
        if is_traced(self.v) or is_traced(self.f):
            return
        v, f = np.asarray(self.v), np.asarray(self.f)
        if v[0] < 0:
            raise ValueError(
                f"`Table.v` must be >= 0, got {v[0]:g}. A table holds one direction; give the"
                " other its own, as `f_neg`."
            )
        f0 = f[0] if v.size == 1 else f[0] - v[0] * (f[1] - f[0]) / (v[1] - v[0])
        if f0 < 0:
            raise ValueError(
                f"`Table` must be >= 0 at rest, but its first two rows lead to {f0:g} at v = 0."
                " Add a row for speed 0."
            )

    def __call__(self, v: Values | float) -> Values:
        v = jnp.asarray(v)
        # With extrapolation="error", the speed of the last row still belongs to the table.
        side = "left" if self.extrapolation == "error" else "right"
        if self.breaks.shape[0]:
            piece = jnp.searchsorted(self.breaks, v, side=side)
        else:
            piece = jnp.zeros(v.shape, int)
        return self.on_piece(v, piece)

    @property
    def f0(self) -> Number:
        # All speeds of the table are >= 0, so v = 0 is on the first segment or before it.
        return self.on_piece(jnp.zeros(()), 0)

    @property
    def stribeck_dip(self) -> tuple[Number, float]:
        return smaller(least(self.f), self.f0), 0.0

    @property
    def is_smooth(self) -> bool:
        return True

    @property
    def is_nonnegative(self) -> bool:
        return True

    @property
    def formula(self) -> str:
        return f"f(v): straight lines through {self.v.size} points"

    @property
    def form(self) -> dict[str, Any]:
        return {"nodes": np.asarray(self.v)}

    @classmethod
    def start_near(cls, rows: Any, nodes: ArrayLike | None = None, **form: Any) -> "Table":
        if nodes is None or isinstance(nodes, int):
            # The nodes are 0, the highest measured speed, and quantiles of the measured speeds.
            distinct = np.unique(rows.v)
            count = int(np.clip(distinct.size // 3, 2, 6)) if nodes is None else nodes
            if not 2 <= count <= distinct.size:
                raise ValueError(
                    f"A table of this sweep must have 2 to {distinct.size} nodes, one for each"
                    f" speed at most, got {count}."
                )
            inner = np.quantile(distinct, np.linspace(0.0, 1.0, count)[1:])
            at = np.concatenate([[0.0], inner])
        else:
            at = np.asarray(nodes, dtype=float)
        if at.size == 1:
            return cls([[at[0], rows.mean_force]])
        hats = [np.interp(rows.v, at, row) for row in np.eye(at.size)]
        # If no speed was measured between the neighbours of a node, the data do not determine the
        # force at this node. For such a node, a weak prior at the mean force determines the force.
        terms, _ = rows.fit_terms(*hats, prior=1e-3)
        return cls(np.column_stack([at, np.maximum(terms, 0.01 * rows.mean_force)]))

    @property
    def breaks(self) -> Float[Array, " n"]:
        if self.v.shape[0] == 1:
            return self.v[:0]
        return jnp.concatenate([self.v[1:-1], self._end[None]])

    @property
    def _end(self) -> Array:
        """The speed above which the force is constant or NaN. With ``"linear"``, the line through
        the last two rows reaches 0 at this speed (inf if the line does not fall). With ``"hold"``
        and ``"error"``, it is the speed of the last row.
        """
        if self.extrapolation == "hold":
            return self.v[-1]
        # With "error", a run may begin at the last row's speed, or exceed it by a rounding error.
        if self.extrapolation == "error":
            return self.v[-1] * (1 + 500 * jnp.finfo(self.v.dtype).eps)
        fall = (self.f[-2] - self.f[-1]) / (self.v[-1] - self.v[-2])
        falls = fall > 0
        return jnp.where(falls, self.v[-1] + self.f[-1] / jnp.where(falls, fall, 1.0), jnp.inf)

    def left_at(self, slowest: float, fastest: float) -> float | None:
        """Return the speed `fastest` or `slowest` that lies outside the table by more than a tenth
        of the table's speed range. Return None if both speeds are inside.
        """
        first, last = (float(x) for x in np.asarray(self.v)[[0, -1]])
        if fastest > last + 0.1 * (last - first) and last > first:
            return fastest
        return slowest if slowest < first - 0.1 * (last - first) and last > first else None

    def on_piece(self, v: Values, piece: Int[Array, "..."] | int) -> Values:
        rows = self.v.shape[0]
        if rows == 1:
            return self.f[0] + 0.0 * v
        k = jnp.minimum(piece, rows - 2)
        v0, f0, v1, f1 = (entry(x, j) for j in (k, k + 1) for x in (self.v, self.f))
        slope = (f1 - f0) / (v1 - v0)
        line = f0 + slope * (v - v0)
        # In a search, the line through the first two rows may be below 0 at rest; then the law is 0
        # where this line is below 0. `check_rules` refuses such a table.
        line = jnp.where((f0 - slope * v0 < 0) & (line < 0) & (k < 1), 0.0, line)
        beyond = {"linear": 0.0, "hold": self.f[-1], "error": jnp.nan}[self.extrapolation]
        return jnp.where(jnp.asarray(piece) > rows - 2, beyond, line)

    def extended_rows(self) -> np.ndarray:
        """Return the table with rows added for programs that always extrapolate through the last
        two rows. For ``extrapolation="error"`` the rows are unchanged.
        """
        rows = np.column_stack([np.asarray(self.v), np.asarray(self.f)])
        end = float(self._end) if len(rows) > 1 else np.inf
        if self.extrapolation == "error" or not np.isfinite(end):
            return rows
        level = rows[-1, 1] if self.extrapolation == "hold" else 0.0
        step = rows[-1, 0] - rows[-2, 0]
        more = [end + step] if end == rows[-1, 0] else [end, end + step]
        return np.vstack([rows, [[v, level] for v in more]])


def table_of(law: Any) -> Table | None:
    """Return `law` if it is a `Table`, or the `Table` inside it; None for other laws."""
    while law is not None and not isinstance(law, Table):
        law = getattr(law, "law", None) if isinstance(law, AbstractLaw) else None
    return law
