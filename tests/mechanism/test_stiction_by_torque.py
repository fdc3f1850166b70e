"""Which contacts begin to slide where one is a lossy gear: a closed form, and random problems
against a check of their own.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from checks import OPTIMISED
from frictax.mechanism.stiction import ContactModes, Lines, modes_by_torque

MANY = 5_000
GEAR = 0  # the contact that is one
ETA, BEARING = 0.8, 0.1
SLOPE, OFFSET = np.array([1 - ETA, 1 - 1 / ETA]), np.array([BEARING, BEARING])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("motor", "mode"), [(0.71, -1), (0.73, 0), (1.37, 0), (1.38, 1)])
def test_a_gear_holds_1_newton_metre_until_the_motor_lifts_it_or_lets_it_sink(
    motor: float, mode: int
) -> None:
    """It lifts from (1 + 0.1)/0.8 = 1.375 N.m, and sinks below 0.8*(1 - 0.1) = 0.72 N.m."""
    J, load = 1e-3, 1.0
    G, b = jnp.array([[1 / (2 * J)]]), jnp.array([(motor - load) / (2 * J)])
    friction = Lines(
        jnp.array([True]),
        motor - J * b,
        J * G,
        jnp.asarray(SLOPE[:, None]),
        jnp.asarray(OFFSET[:, None]),
        jnp.ones((2, 1)),
    )
    none, one = jnp.zeros(1), jnp.ones(1)
    found = modes_by_torque(
        G,
        b,
        (none, none),
        (none, none),
        one,
        (jnp.array([True]), jnp.zeros(1, int), none),
        friction,
        False,
    )
    assert bool(found.ok)
    assert int(found.modes[0]) == mode


def test_a_gear_at_its_limit_breaks_away_beside_a_released_brake() -> None:
    """A motor turns without friction at a speed of 0, beside a brake that is free. A clutch sticks
    between motor and gear. The torque has just reached the limit of the gear, so that the gear
    begins to slide with an acceleration of 0. The clutch does not hold it.
    """
    G = jnp.array(
        [
            [1.0, 1.0, -1.0, 0.0],
            [1.0, 1.0, -1.0, 0.0],
            [-1.0, -1.0, 8.0 / 3.0, 5.0 / 3.0],
            [0.0, 0.0, 5.0 / 3.0, 5.0 / 3.0],
        ]
    )
    slope, offset = 0.4, 0.9
    torque = offset / (1.0 - slope) * (1.0 + 1e-13)  # stuck: the load of the gear is the torque
    of_gear = jnp.array([0.0, 0.0, 0.0, 1.0])
    friction = Lines(
        of_gear > 0,
        jnp.zeros(4),
        of_gear[:, None] * jnp.array([0.0, 0.0, -1.0 / 6.0, 5.0 / 6.0]),
        jnp.stack([slope * of_gear, -slope * of_gear]),
        jnp.stack([offset * of_gear, 0.2 * of_gear]),
        jnp.ones((2, 4)).at[1, 3].set(1.0 - 5e-9),
    )
    limit = jnp.array([0.0, 0.0, 16.0, 0.0])
    at_rest = jnp.array([False, False, True, True])
    found = modes_by_torque(
        G,
        torque * jnp.array([1.0, 1.0, -1.0, 0.0]),
        (limit, limit),
        (limit, limit),
        jnp.array([1e-4, 1e-4, 1.0, 0.05]),
        (at_rest, jnp.array([1, 0, 0, 0]), jnp.zeros(4)),
        friction,
        True,
    )
    assert bool(found.ok)
    assert found.modes.tolist() == [1, 0, 0, 1]


class Problems(NamedTuple):
    """n problems: a lossy gear at body 0, k - 1 other contacts, all at rest; `at_a`: which of these
    act before the gear's losses.
    """

    J: np.ndarray
    M: np.ndarray
    F: np.ndarray
    limit: np.ndarray
    share: np.ndarray
    at: np.ndarray
    by: np.ndarray
    slope: np.ndarray
    offset: np.ndarray
    freewheel: bool

    @property
    def below(self) -> np.ndarray:
        """The limits of backward motion, which a freewheel blocks: contact 1, if there is one."""
        return np.where((np.arange(self.J.shape[1]) == 1) & self.freewheel, np.inf, self.limit)

    @property
    def G(self) -> np.ndarray:
        return np.einsum("nia,na,nja->nij", self.J, 1 / self.M, self.J)

    @property
    def b(self) -> np.ndarray:
        return np.einsum("nia,na->ni", self.J, self.F / self.M)

    def solved(self, redundant: bool) -> ContactModes:
        k = self.J.shape[1]
        here, rest = jnp.arange(k) == GEAR, jnp.ones(k, bool)

        @functools.partial(jax.jit, compiler_options=OPTIMISED)
        @jax.vmap
        def run(*values: jax.Array) -> ContactModes:
            G, b, below, limit, share, at, by, slope, offset = values
            only = lambda x: jnp.where(here, x, 0.0)  # noqa: E731
            friction = Lines(
                here,
                only(at),
                jnp.where(here[:, None], by, 0.0),
                only(slope[:, None]),
                only(offset[:, None]),
                jnp.ones((2, k)),
            )
            motion = rest, jnp.zeros(k, int), jnp.zeros(k)
            slide = jnp.where(jnp.isinf(below), 0.0, below), limit
            return modes_by_torque(G, b, (below, limit), slide, share, motion, friction, redundant)

        more = self.share, self.at, self.by, self.slope, self.offset
        return jax.tree.map(np.asarray, run(self.G, self.b, self.below, self.limit, *more))


def drawn(k: int, bodies: int, freewheel: bool) -> Problems:
    """With k bodies the contacts form a tree; with fewer, several hold the same motion. A freewheel
    has hardly any friction in its free direction.
    """
    n = MANY
    rng, row = np.random.default_rng([k, bodies]), np.arange(n)
    J = np.zeros((n, k, bodies))
    J[:, GEAR, 0] = 1.0
    for i in range(1, k):
        body = np.full(n, i) if bodies == k else rng.integers(0, bodies, n)
        other = rng.integers(-1, i if bodies == k else bodies, n)  # -1: the ground
        J[row, i, body] = 1.0
        to = (other >= 0) & (other != body)
        J[row[to], i, other[to]] = -1.0
    M, F = 10 ** rng.uniform(-1, 1, (n, bodies)), 3 * rng.normal(size=(n, bodies))
    # Of body 0 a part of the mass, of the force and of the contacts stands before the gear.
    m, F_a, at_a = (
        rng.uniform(0.1, 0.9, n) * M[:, 0],
        3 * rng.normal(size=n),
        rng.random((n, k)) < 0.5,
    )
    at = F_a - m / M[:, 0] * F[:, 0]
    by = J[:, :, 0] * (m / M[:, 0])[:, None] - np.where(
        at_a & (np.arange(k) != GEAR), J[:, :, 0], 0.0
    )
    limit = rng.uniform(0.0, 2.0, (n, k)) * (np.arange(k) != GEAR)
    limit[:, 1] *= 1e-4 if freewheel else 1.0
    eta = rng.uniform(0.5, 1.0, (2, n))
    slope, offset = (
        np.stack([1 - eta[0], 1 - 1 / eta[1]], axis=1),
        rng.uniform(0.0, 0.5, (n, 2)) * (rng.random((n, 1)) < 0.7),
    )
    share = limit + (1e-4 if freewheel else 0.05)
    return Problems(J, M, F, limit, share, at, by, slope, offset, freewheel)


def forces(p: Problems, i: int, modes: np.ndarray, line: int) -> np.ndarray:
    """The forces of problem i: those that hold bear it in proportion to their share, by singular
    values.
    """
    k = len(modes)
    stuck = modes == 0
    root = np.sqrt(p.share[i]) * stuck
    G, b = p.G[i], p.b[i]
    # Unknown: x with f = root*x of the stuck ones, and the gear's force where it slides.
    matrix, right = np.zeros((k, k)), np.zeros(k)
    matrix[stuck], right[stuck] = G[stuck], b[stuck]
    for c in np.flatnonzero(~stuck):
        matrix[c, c], right[c] = 1.0, modes[c] * p.limit[i, c]
    if not stuck[GEAR]:
        matrix[GEAR] -= p.slope[i, line] * p.by[i]
        right[GEAR] = p.slope[i, line] * p.at[i] + modes[GEAR] * p.offset[i, line]
    # Sliding forces first: as functions of the stuck ones.
    free = np.flatnonzero(~stuck)
    held = np.flatnonzero(stuck)
    f = np.zeros(k)
    base = np.linalg.solve(matrix[np.ix_(free, free)], right[free]) if free.size else np.zeros(0)
    gain = (
        -np.linalg.solve(matrix[np.ix_(free, free)], matrix[np.ix_(free, held)])
        if free.size
        else np.zeros((0, held.size))
    )
    if held.size:
        reduced = matrix[np.ix_(held, held)] + matrix[np.ix_(held, free)] @ gain
        rest = right[held] - matrix[np.ix_(held, free)] @ base
        shared = np.diag(root[held] ** 2) @ G[np.ix_(held, held)]
        f[held] = shared @ np.linalg.lstsq(reduced @ shared, rest, rcond=1e-11)[0]
    f[free] = base + gain @ f[held]
    return f


@pytest.mark.slow
@pytest.mark.parametrize("freewheel", [False, True])
@pytest.mark.parametrize(("k", "bodies"), [(2, 2), (5, 5), (2, 1), (4, 2)])
def test_problems_end_in_consistent_modes(k: int, bodies: int, freewheel: bool) -> None:
    p = drawn(k, bodies, freewheel)
    found = p.solved(redundant=bodies < k)
    assert np.all(found.ok)
    assert np.max(found.looks[found.ok]) <= 64 * k
    assert {-1, 0, 1} == set(np.unique(found.modes))
    for i in np.flatnonzero(found.ok)[::5]:
        modes, line = np.asarray(found.modes[i]), int(found.lines[i, GEAR])
        f = forces(p, i, modes, line)
        a, torque = p.b[i] - p.G[i] @ f, p.at[i] + p.by[i] @ f
        size = np.abs(p.b[i]) + np.abs(p.G[i]) @ np.abs(f)
        wrong = np.where(modes == 0, np.abs(a), -modes * a)
        assert np.all(wrong <= 1e-7 * np.max(size))
        upper, lower = (
            np.max(p.slope[i] * torque + p.offset[i]),
            np.max(p.offset[i] - p.slope[i] * torque),
        )
        above, below = p.limit[i].copy(), p.below[i].copy()
        above[GEAR], below[GEAR] = upper, lower
        rounding = 1e-7 * (np.max(np.abs(f)) + abs(torque))
        assert np.all((-below - rounding <= f) & (f <= above + rounding))
        assert np.all(np.abs(f - np.where(modes > 0, above, -below))[modes != 0] <= rounding)
