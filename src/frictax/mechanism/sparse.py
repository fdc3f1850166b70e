"""Small systems of linear equations, written out."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

# A row of a matrix, or a vector, by the numbers of the entries that are not 0 by structure.
Sparse = dict[int, Any]


def solved(matrix: dict[int, Sparse], right: list[Sparse]) -> list[Sparse]:
    """The vectors x with matrix x = right, one for each right side, by Gauss's elimination without
    pivoting.

    Zeros by structure are never touched: of a chain of bodies this costs as much as the chain is
    long. No pivots are needed where the matrix is symmetric and positive definite, or has some rows
    of the unit matrix in place of its own.
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


def product(a: Sparse, b: Sparse) -> Any:
    """The scalar product; None where it is 0 by structure."""
    terms = [scaled(a[i], b[i]) for i in a if i in b]
    return sum(terms[1:], terms[0]) if terms else None


def scaled(factor: Any, x: Any) -> Any:
    """factor*x, without the multiplication by a plain 1.0 or -1.0."""
    for one, other in ((factor, x), (x, factor)):
        if isinstance(one, float) and abs(one) == 1.0:
            return other if one == 1.0 else -other
    return factor * x


def spanned(
    rows: dict[int, Sparse], right: dict[int, Array], span: dict[int, Sparse], zero: Array
) -> dict[int, Array]:
    """The solution x of `rows` x = `right` that is a sum of the columns of `span`, column d times
    z_d, where the matrix of all z may be singular.
    """
    matrix = {c: {d: p for d in rows if (p := product(rows[c], span[d])) is not None} for c in rows}
    # A little on the diagonal makes it regular. What that changes is taken back by repetition, with
    # a matrix that has no derivative: that of the nearly singular elimination is worth nothing,
    # while that of what remains is exact.
    slack = jnp.finfo(zero.dtype).eps ** 0.75
    regular = {
        c: {d: jax.lax.stop_gradient(x + slack * x if c == d else x) for d, x in row.items()}
        for c, row in matrix.items()
    }
    z = dict.fromkeys(rows, zero)
    for _ in range(3):
        remains = {c: right[c] - sum(x * z[d] for d, x in matrix[c].items()) for c in rows}
        z = {c: z[c] + step for c, step in solved(regular, [remains])[0].items()}
    return {c: sum((span[d][c] * z[d] for d in rows if c in span[d]), zero) for c in rows}
