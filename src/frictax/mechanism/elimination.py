"""Small systems of linear equations, written out."""

from typing import Any

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
