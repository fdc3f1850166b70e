"""Which contacts begin to slide: closed forms, all assignments tried, and many random problems
against a check of their own.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from frictax.mechanism.stiction import ContactModes, modes_at_rest

MANY = 4_000
# The most rounds that a batch of 20000 problems needed when these tests were written, by the number
# of contacts.
MOST_ROUNDS = {2: 3, 3: 4, 4: 5, 5: 6, 6: 5}
one, many = jax.jit(modes_at_rest), jax.jit(jax.vmap(modes_at_rest))


class Problems(NamedTuple):
    """n problems of k contacts on bodies of masses M [kg] under forces F [N]; limits (2, n, k)
    backward and forward [N].
    """

    J: np.ndarray
    M: np.ndarray
    F: np.ndarray
    hold: np.ndarray
    slide: np.ndarray
    share: np.ndarray
    in_rest: np.ndarray

    @property
    def G(self) -> np.ndarray:
        return np.einsum("nia,na,nja->nij", self.J, 1 / self.M, self.J)

    @property
    def b(self) -> np.ndarray:
        return np.einsum("nia,na->ni", self.J, self.F / self.M)

    def solved(self) -> ContactModes:
        return many(self.G, self.b, tuple(self.hold), tuple(self.slide), self.share, self.in_rest)


def drawn(
    k: int, bodies: int, scale: float, peak: float = 3.0, all_in_rest: bool = False
) -> Problems:
    """Random problems: masses, forces and limits spread over `scale` decades up and down, hold up
    to `peak` times slide.

    In the first half of them hold = slide. With k bodies the contacts form a tree; with fewer, each
    joins two random bodies, or one and the ground. A tenth of the limits is 0, a tenth of the
    contacts never slides backward.
    """
    n = MANY
    rng, row = np.random.default_rng([k, bodies, int(10 * scale)]), np.arange(n)
    spread = lambda *shape: 10 ** rng.uniform(-scale, scale, shape)  # noqa: E731
    J = np.zeros((n, k, bodies))
    for i in range(k):
        body = np.full(n, i) if bodies == k else rng.integers(0, bodies, n)
        other = rng.integers(-1, i if bodies == k else bodies, n)  # -1: the ground
        J[row, i, body] = 1.0
        to = (other >= 0) & (other != body)
        J[row[to], i, other[to]] = -1.0
    J *= rng.choice([-1.0, 1.0], (n, k, 1))
    slide = rng.uniform(0.0, 2.0, (2, n, k)) * spread(n, k) * (rng.random((2, n, k)) >= 0.1)
    one_sided = rng.random((n, k)) < 0.1
    slide[0] = np.where(one_sided, np.inf, slide[0])
    hold = slide * np.where(row[:, None] < n // 2, 1.0, rng.uniform(1.0, peak, (n, k)))
    in_rest = np.ones((n, k), bool) if all_in_rest else rng.random((n, k)) < 0.85
    share = np.where(one_sided, 1.0, slide[1]) + 0.01
    return Problems(
        J,
        spread(n, bodies),
        3 * rng.normal(size=(n, bodies)) * spread(n, bodies),
        hold,
        slide,
        share,
        in_rest,
    )


def forces(p: Problems, modes: np.ndarray) -> np.ndarray:
    """The forces in given modes, from the bodies' accelerations: by singular values, and
    without G.
    """
    sliding = np.where(modes > 0, p.slide[1], np.where(modes < 0, -p.slide[0], 0.0))
    root = np.sqrt(p.M)
    free = (p.F - np.einsum("nia,ni->na", p.J, sliding)) / root
    stuck = (modes == 0) & p.in_rest
    rows = np.where(stuck[:, :, None], p.J, 0.0) / root[:, None, :]
    length = np.linalg.norm(rows, axis=2, keepdims=True)
    rows = rows / np.where(length > 0, length, 1.0)
    # what the stuck ones take away
    taken = np.einsum("nai,nic,nc->na", np.linalg.pinv(rows, rcond=1e-10), rows, free)
    # J'f = sqrt(M) taken, with the least sum of f**2/share
    shared = p.J * (stuck * np.sqrt(p.share))[:, :, None]
    size = np.linalg.norm(shared, axis=1, keepdims=True)
    size = np.where(size > 0, size, 1.0)
    part = np.einsum(
        "nia,na->ni",
        np.linalg.pinv((shared / size).transpose(0, 2, 1), rcond=1e-10),
        root * taken / size[:, 0],
    )
    return sliding + np.sqrt(p.share) * part


def assert_consistent(p: Problems, chosen: ContactModes) -> None:
    """All `ok`; accelerations right within 1e-7 of their terms, forces within 1e-8 of the limit and
    1e-7 of all in that problem.
    """
    modes, k = np.asarray(chosen.modes), p.J.shape[1]
    assert np.all(chosen.ok)
    assert np.all(modes[~p.in_rest] == 0)
    f = forces(p, modes)
    a = p.b - np.einsum("nij,nj->ni", p.G, f)
    terms = np.abs(p.b) + np.einsum("nij,nj->ni", np.abs(p.G), np.abs(f))
    unit = np.sqrt(np.einsum("nii->ni", p.G))
    allowed = 1e-7 * terms + 1e-12 * unit * np.max(terms / unit, axis=1, keepdims=True)
    wrong = np.where(modes == 0, np.abs(a), -modes * a)
    assert np.all((wrong <= allowed)[p.in_rest])
    rounding = (
        1e-8 * np.abs(f)
        + 1e-11 * np.max(np.abs(f) * unit + np.abs(p.b) / unit, axis=1, keepdims=True) / unit
    )
    assert np.all(
        ((-p.hold[0] - rounding <= f) & (f <= p.hold[1] + rounding))[(modes == 0) & p.in_rest]
    )
    assert np.max(chosen.rounds) <= MOST_ROUNDS[k] <= k + 1
    assert np.max(chosen.looks) <= 8 * k


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_every_tree_of_contacts_ends_in_consistent_modes(k: int) -> None:
    p = drawn(k, bodies=k, scale=1.0)
    assert_consistent(p, p.solved())


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_contacts_that_hold_the_same_motions_end_in_consistent_modes(k: int) -> None:
    p = drawn(k, bodies=max(1, k // 2), scale=0.3)
    assert_consistent(p, p.solved())


@pytest.mark.parametrize("bodies", [2, 3, 5])
def test_masses_from_1_g_to_1_t_and_limits_and_forces_as_far_apart_are_no_obstacle(
    bodies: int,
) -> None:
    p = drawn(5, bodies=bodies, scale=3.0)
    assert_consistent(p, p.solved())


@pytest.mark.parametrize("bodies", [2, 4])
def test_limits_reached_at_the_same_time_leave_no_doubt(bodies: int) -> None:
    p = drawn(4, bodies=bodies, scale=0.0)
    whole = lambda x: np.where(np.isfinite(x), np.round(x), x)  # noqa: E731
    p = p._replace(F=whole(p.F), slide=whole(p.slide), hold=2.0 * whole(p.slide))
    assert_consistent(p, p.solved())


@pytest.mark.parametrize("k", [2, 3, 4])
def test_without_peak_and_redundancy_they_are_the_only_consistent_modes_of_all(k: int) -> None:
    p = drawn(k, bodies=k, scale=0.5, peak=1.0, all_in_rest=True)
    found = np.asarray(p.solved().modes)[:1000]
    p = p._replace(
        J=p.J[:1000], M=p.M[:1000], F=p.F[:1000], hold=p.hold[:, :1000], slide=p.slide[:, :1000]
    )
    fitting, G, b = np.zeros(1000, int), p.G, p.b
    only = np.zeros((1000, k), int)
    for tried in itertools.product((-1, 0, 1), repeat=k):
        modes = np.broadcast_to(tried, (1000, k))
        f = np.zeros((1000, k))
        f[modes > 0], f[modes < 0] = p.slide[1][modes > 0], -p.slide[0][modes < 0]
        f = np.clip(f, -1e9, 1e9)  # nothing slides against a limit of inf
        s = np.array(tried) == 0
        f[:, s] = np.linalg.solve(
            G[:, s][:, :, s], (b - np.einsum("nij,nj->ni", G, f))[:, s, None]
        )[..., 0]
        a = b - np.einsum("nij,nj->ni", G, f)
        fits = np.all(np.where(s, (-p.hold[0] <= f) & (f <= p.hold[1]), modes * a >= 0), axis=1)
        fitting += fits
        only[fits] = tried
    assert np.all(fitting == 1)
    assert np.array_equal(found, only)


def test_without_peak_and_redundancy_the_order_of_the_contacts_does_not_matter() -> None:
    p = drawn(5, bodies=5, scale=1.0, peak=1.0)
    order = np.array([3, 0, 4, 1, 2])
    other = p._replace(
        J=p.J[:, order],
        hold=p.hold[..., order],
        slide=p.slide[..., order],
        share=p.share[:, order],
        in_rest=p.in_rest[:, order],
    )
    assert np.array_equal(np.asarray(p.solved().modes)[:, order], other.solved().modes)


def test_everything_mirrored_slides_the_other_way() -> None:
    p = drawn(4, bodies=3, scale=1.0)
    mirrored = p._replace(F=-p.F, hold=p.hold[::-1], slide=p.slide[::-1])
    assert np.array_equal(mirrored.solved().modes, -np.asarray(p.solved().modes))


def test_many_at_once_choose_as_one_by_one_and_as_before() -> None:
    p = drawn(4, bodies=3, scale=1.0)
    at_once = p.solved()
    for i in range(MANY // 2 - 25, MANY // 2 + 25):
        alone = one(
            *jax.tree.map(
                jnp.asarray,
                (
                    p.G[i],
                    p.b[i],
                    tuple(p.hold[:, i]),
                    tuple(p.slide[:, i]),
                    p.share[i],
                    p.in_rest[i],
                ),
            )
        )
        assert jnp.array_equal(alone.modes, at_once.modes[i])
    assert jnp.array_equal(p.solved().modes, at_once.modes)


def chosen(G: Any, b: Any, hold: Any, slide: Any = None, share: Any = None) -> ContactModes:
    """The choice for contacts with the same limits both ways, or pairs (backward, forward), all in
    the rest set.
    """
    b = jnp.asarray(b, float)

    def pair(limit: Any) -> tuple[jax.Array, ...]:
        both = limit if isinstance(limit, tuple) else (limit, limit)
        return tuple(jnp.broadcast_to(jnp.asarray(x, float), b.shape) for x in both)

    hold = pair(hold)
    share = jnp.ones_like(b) if share is None else jnp.asarray(share, float)
    return one(
        jnp.asarray(G, float),
        b,
        hold,
        hold if slide is None else pair(slide),
        share,
        jnp.ones(b.shape, bool),
    )


def modes(*problem: Any, **options: Any) -> list[int]:
    answer = chosen(*problem, **options)
    assert answer.ok
    return answer.modes.tolist()


@pytest.mark.parametrize("limits", [[3.0, 5.0], [1.0, 1.0], [0.1, 0.7, 100.0]])
@pytest.mark.parametrize("m", [1e-3, 1.7, 1e3])
def test_brakes_on_one_mass_hold_the_sum_of_their_limits_and_break_away_together(
    limits: list[float], m: float
) -> None:
    k, most = len(limits), sum(limits)

    def loaded(F):
        return modes(np.full((k, k), 1 / m), np.full(k, F / m), limits, share=limits)

    assert loaded(most) == loaded(-most) == [0] * k
    assert loaded(most * (1 + 1e-8)) == [1] * k
    assert loaded(-most * (1 + 1e-8)) == [-1] * k


def test_a_brake_that_bears_more_than_its_share_goes_first_and_the_other_holds_the_mass():
    # Shares 1:1 of 5 N: the first brake, with its limit 2 N, is at it from 4 N on; the second holds
    # the remaining 3 N, up to 4 N.
    at = lambda F: modes(np.ones((2, 2)), [F, F], [2.0, 4.0], share=[1.0, 1.0])  # noqa: E731
    assert [at(F) for F in (3.9, 5.0, 6.0, 6.1)] == [[0, 0], [1, 0], [1, 0], [1, 1]]


def test_a_brake_that_lets_go_loads_the_clutch_behind_it() -> None:
    """A force F on mass 1, braked to the ground (3 N, then 1 N); a clutch (1.1 N, then 0.5 N)
    carries mass 2 along; both of 1 kg.

    At rest the clutch bears nothing. When the brake lets go it bears (F - 1 N)/2: too much from F =
    3.2 N on.
    """
    J = np.array([[1.0, 0.0], [-1.0, 1.0]])
    at = lambda F: chosen(J @ J.T, J @ [F, 0.0], [3.0, 1.1], [1.0, 0.5])  # noqa: E731
    assert [at(F).modes.tolist() for F in (2.99, 3.01, 3.19, 3.21)] == [
        [0, 0],
        [1, 0],
        [1, 0],
        [1, -1],
    ]
    assert [int(at(F).rounds) for F in (2.99, 3.01, 3.21)] == [1, 2, 3]


def test_of_a_chain_of_clutches_the_weakest_slips_and_then_the_one_beyond_it() -> None:
    """Ground - 5 N - 1 kg - 3 N - 1 kg - 4 N - 1 kg, pulled with F: beyond the second clutch a = (F
    - 3 N)/2 kg; the third bears F - a.
    """
    J = np.eye(3) - np.eye(3, k=-1)
    at = lambda F: modes(J @ J.T, J @ [0.0, 0.0, F], [5.0, 3.0, 4.0])  # noqa: E731
    assert [at(F) for F in (2.99, 3.01, 4.99, 5.01, -5.01)] == [
        [0, 0, 0],
        [0, 1, 0],
        [0, 1, 0],
        [0, 1, 1],
        [0, -1, -1],
    ]


def test_one_contact_compares_the_load_with_its_limits() -> None:
    at = lambda F: modes([[0.5]], [F / 2], ([1.0], [3.0]), ([0.5], [2.0]))  # noqa: E731
    assert [at(F) for F in (-1.01, -1.0, 3.0, 3.01)] == [[-1], [0], [0], [1]]


def test_a_force_above_the_limit_by_rounding_is_held() -> None:
    assert modes([[1.0]], [2.0 * (1 + 1e-10)], [2.0]) == [0]
    assert modes([[1.0]], [2.0 * (1 + 1e-8)], [2.0]) == [1]


def test_a_freewheel_holds_one_way_and_lets_go_the_other() -> None:
    assert [modes([[1.0]], [b], ([np.inf], [0.0])) for b in (-1e6, 0.0, 1e-6)] == [[0], [0], [1]]


def test_a_contact_between_bodies_with_a_prescribed_motion_follows_it() -> None:
    assert [modes([[0.0]], [b], [5.0]) for b in (-0.1, 0.0, 0.1)] == [[-1], [0], [1]]


@pytest.mark.parametrize("limits", [[5.0, 3.0], [3.0, 5.0]])
def test_of_a_brake_and_a_clutch_to_a_shaft_that_starts_the_weaker_slips(
    limits: list[float],
) -> None:
    # v and v - v_shaft, of a light mass: both cannot be 0 when the shaft accelerates with 0.1 m/s2.
    assert modes(np.full((2, 2), 1e3), [0.0, -0.1], limits) == (
        [0, -1] if limits[1] < limits[0] else [1, 0]
    )


def test_it_says_so_when_no_modes_fit() -> None:
    assert not chosen([[0.0]], [1.0], [np.inf]).ok
    assert not chosen([[1.0]], [np.nan], [1.0]).ok


def test_no_derivative_passes_through() -> None:
    f = lambda b: jnp.sum(b * chosen(jnp.eye(2), b, [1.0, 1.0]).modes)  # noqa: E731
    assert jax.grad(f)(jnp.array([2.0, -3.0])).tolist() == [1.0, -1.0]
    assert jax.jvp(f, (jnp.array([2.0, -3.0]),), (jnp.ones(2),))[1] == 0.0
