"""Sparse rows and small systems of linear equations, written out entry by entry.

The system of equations of a machine has few unknowns, and many entries of its matrix are always 0.
Only the entries that may differ from 0 are computed. The compiler XLA can optimise each entry.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

# A row of a matrix, or a vector: index -> entry. Entries that are always 0 are left out.
SparseRow = dict[int, Any]


def solve_sparse(matrix: dict[int, SparseRow], right: list[SparseRow]) -> list[SparseRow]:
    """Solve matrix x = b for each b in `right` by Gaussian elimination without pivoting.

    Entries that are always 0 are skipped, so the cost for a chain of bodies is proportional to the
    number of bodies. A symmetric positive definite matrix does not need pivoting, even after some
    of its rows were replaced by rows of the unit matrix.
    """
    rows = {i: dict(row) for i, row in matrix.items()}
    sides = [dict(side) for side in right]
    order = list(rows)
    for step, k in enumerate(order):
        for i in order[step + 1 :]:
            if k not in rows[i]:
                continue
            factor = rows[i].pop(k) / rows[k][k]
            for j, x in rows[k].items():
                if j != k:
                    rows[i][j] = rows[i][j] - factor * x if j in rows[i] else -factor * x
            for side in sides:
                if k in side:
                    side[i] = side[i] - factor * side[k] if i in side else -factor * side[k]
    for k in reversed(order):
        for side in sides:
            for j, x in rows[k].items():
                if j != k and j in side:
                    side[k] = side[k] - x * side[j] if k in side else -x * side[j]
            if k in side:
                side[k] = side[k] / rows[k][k]
    return sides


def add_scaled(a: SparseRow, b: SparseRow, factor: Any = 1.0) -> SparseRow:
    """Return a + factor*b."""
    total = dict(a)
    for i, x in b.items():
        scaled = x if _is_number(factor, 1.0) else factor if _is_number(x, 1.0) else factor * x
        total[i] = total[i] + scaled if i in total else scaled
        if _is_number(total[i], 0.0):  # The terms of flanges on one body may cancel: drop the 0.
            del total[i]
    return total


def _is_number(x, number: float) -> bool:
    return isinstance(x, float) and x == number


def dot(a: SparseRow, b: SparseRow) -> Any:
    """Return the scalar product of `a` and `b`; None if they have no index in common."""
    terms = [scale(a[i], b[i]) for i in a if i in b]
    return sum(terms[1:], terms[0]) if terms else None


def scale(factor: Any, x: Any) -> Any:
    """Return factor*x. If `factor` or `x` is the Python number 1.0 or -1.0, skip the product."""
    for one, other in ((factor, x), (x, factor)):
        if isinstance(one, float) and abs(one) == 1.0:
            return other if one == 1.0 else -other
    return factor * x


def solve_in_span(
    rows: dict[int, SparseRow], right: dict[int, Array], span: dict[int, SparseRow], zero: Array
) -> dict[int, Array]:
    """Return the solution x of `rows` x = `right` that has the form x = sum over d of z_d*span[d].
    The matrix of the equations for the unknowns z_d may be singular.
    """
    matrix = {c: {d: p for d in rows if (p := dot(rows[c], span[d])) is not None} for c in rows}
    # A small term on the diagonal makes the matrix regular, and iterative refinement removes the
    # error of this term. The derivative of an elimination with a nearly singular matrix is
    # inaccurate. Therefore JAX treats the matrix with this term as a constant. The derivatives come
    # from the residual `remains` only, and are exact.
    slack = jnp.finfo(zero.dtype).eps ** 0.75
    regular = {
        c: {d: jax.lax.stop_gradient(x + slack * x if c == d else x) for d, x in row.items()}
        for c, row in matrix.items()
    }
    # The residual is computed from x, because terms with z may be 1e4 times as large, and their
    # rounding errors are then also larger.
    x = dict.fromkeys(rows, zero)
    for _ in range(3):
        remains = {c: right[c] - sum(g * x[d] for d, g in rows[c].items()) for c in rows}
        z = solve_sparse(regular, [remains])[0]
        x = {c: x[c] + sum((span[d][c] * z[d] for d in rows if c in span[d]), zero) for c in rows}
    return x
