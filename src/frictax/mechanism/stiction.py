"""Choice of the mode of contacts at rest: stuck, sliding forward or sliding backward.

`modes_at_rest` is for contacts whose force limits are known. `modes_by_torque` is for contacts
whose limits depend on a torque, and thus on the forces of all contacts.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from frictax.parameters import Integer


class _Tolerances(NamedTuple):
    """Tolerances as functions of the rounding unit eps, with values for 64-bit numbers in comments.

    `modes_at_rest` scales the Delassus matrix G to G_ii = 1 before it applies these tolerances.
    """

    # A pivot below eps**0.7 = 1e-11 counts as 0. A pivot that is not 0 exceeds the ratio of the
    # smallest mass to the sum of all masses.
    rank: Any
    # For redundant contacts, `modes_by_torque` increases the diagonal of the equations of stuck
    # contacts by the fraction eps**0.75 = 2e-12, so that the matrix is regular.
    regularization: Any
    # The acceleration of a redundant contact counts as 0 below eps**0.57 = 1e-9 of the sum of the
    # absolute values of its terms.
    consistent: Any
    # An acceleration that contradicts the mode is accepted below eps**0.5 = 1.5e-8 of the sum of
    # the absolute values of its terms.
    motion: Any
    # Each force limit is raised by up to 2**16 eps = 1.5e-11 of the largest force of inertia.
    zero: Any
    # Rounding error of a sum: 512 eps = 1e-13 of the largest acceleration or force.
    rounding: Any

    @classmethod
    def for_numbers(cls, numbers: Array) -> "_Tolerances":
        eps = jnp.finfo(numbers.dtype).eps
        return cls(eps**0.7, eps**0.75, eps**0.57, eps**0.5, 2**16 * eps, 512 * eps)


AT_LIMIT = 0.57  # exponent; a contact sticks up to eps**0.57 = 1e-9 of its limit above the limit.
# Largest number of linear systems solved per contact. In theory, the rule of least index may solve
# 3**k systems for k contacts. In tests, `modes_at_rest` solved at most 7*k systems (36 kinds of
# random problems, 20000 of each, k = 4 to 12), and `modes_by_torque` at most 64*k (8 kinds).
_MOST_SOLUTIONS = 256

PerContact = Float[Array, " k"]
BothWays = tuple[PerContact, PerContact]  # limits for backward and forward motion


class ContactModes(eqx.Module):
    """The modes of the contacts at rest after an event.

    - `modes`: -1 sliding backward, 0 stuck or not at rest, 1 sliding forward.
    - `ok`: whether the modes are consistent with forces and accelerations.
    - `looks`: how many times the equations of the stuck contacts were solved.
    - `rounds`: 1 plus the number of times that limits were lowered after contacts broke away; at
      most k + 1. Only `modes_at_rest` sets `rounds`.
    - `lines`: the active line (0 or 1) of each contact whose friction depends on a torque, see
      `Lines`. For a stuck contact, this is the line for its breakaway. Only `modes_by_torque` sets
      `lines`.
    """

    modes: Int[Array, " k"]
    ok: Bool[Array, ""]
    looks: Integer
    rounds: Any = None
    lines: Any = None


def modes_at_rest(
    G: Float[Array, "k k"],
    b: PerContact,
    hold: BothWays,
    slide: BothWays,
    share: PerContact,
    in_rest: Bool[Array, " k"],
) -> ContactModes:
    """Choose the modes of k contacts at rest that are consistent with forces and accelerations.

    The forces f and the relative accelerations a_rel = b - G f satisfy for each contact at rest

        stuck:     a_rel  = 0  and  -hold[0] <= f <= hold[1]
        forward:   a_rel >= 0  and  f =  slide[1]
        backward:  a_rel <= 0  and  f = -slide[0]

    At first every limit is `hold`. Within the limits, f minimises f'G f/2 - b'f. A contact whose
    force is at a limit has broken away, and both of its limits are lowered to `slide`. The
    minimisation is repeated until no limit changes, at most k + 1 times. If hold = slide and G is
    regular, the solution is unique. If hold > slide, several solutions may exist. `modes_at_rest`
    finds the solution in which all contacts that can break away together do so.

    **Redundant contacts.** If G is singular, several contacts can hold the same motion. Among the
    forces that hold the motion, those with the least sum of f**2/share are chosen: two brakes on
    one mass carry the load in proportion to `share`. A contact whose force is at its limit counts
    as sliding, even if other contacts hold its motion and its a_rel is 0.

    **Arguments:** (units for translation; for rotation read N.m, rad/s2 and 1/(kg.m2))

    - `G`: J M^-1 J' [1/kg], the relative accelerations that unit forces on the contacts cause. G is
      symmetric and positive semidefinite.
    - `b`: relative accelerations [m/s2] with the friction of the sliding contacts, but without the
      friction of the contacts at rest.
    - `hold`: the largest force [N] with which a stuck contact opposes motion (backward, forward),
      >= 0; inf at a stop or freewheel. If a contact has already broken away, `hold` is `slide`.
    - `slide`: the force [N] of sliding friction at rest (backward, forward), 0 <= slide <= hold.
    - `share`: capacity [N] of each contact, > 0 and finite. Redundant contacts share a load in
      proportion to `share`.
    - `in_rest`: which contacts are at rest. Contacts in motion get no force and the mode 0.

    **Returns:** `ContactModes` with whole numbers, which do not have a derivative. The limits are
    raised by up to 1e-9 of `hold`, plus 1.5e-11 of the force that causes the largest |b|. Therefore
    a contact whose load equals its limit sticks until its breakaway event is located. `ok` is False
    if a number is not finite, or if no modes are consistent, for example because infinite limits
    block a prescribed motion. `ok` accepts acceleration errors of 1.5e-8 of |b| + |G| |f|. All
    these tolerances are for 64-bit numbers.

    **Method:** principal pivoting by least index. The mode of a contact is wrong if it contradicts
    the force needed to hold the contact. The first contact with a wrong mode changes from stuck to
    sliding or back. Induction over k shows that the iteration ends. The last contact changes only
    when the modes of all contacts before it are right. The acceleration of the last contact is then
    a strictly decreasing function of its force, so its mode changes at most twice.

    Terms e/share on the diagonal make a singular G positive definite. The limit e -> 0+ is computed
    algebraically. Elimination with the largest pivot first finds a basis of the stuck contacts: as
    many contacts as possible whose rows of G are linearly independent. Stuck contacts outside of
    the basis are redundant and have their own, well-posed equations.

    **Source:** the problem: M. Otter, H. Elmqvist, S. E. Mattsson, Hybrid Modeling in Modelica
    based on the Synchronous Data Flow Principle, CACSD 1999. The rule of least index: K. G. Murty,
    Linear Complementarity, Linear and Nonlinear Programming, 1988, chapter 4; with limits on both
    sides, as here: R. W. Cottle, J.-S. Pang, R. E. Stone, The Linear Complementarity Problem, 1992.

    Two brakes of 3 N and 5 N together hold a mass of 2 kg against a load of up to 8 N:

    >>> G, share, both = jnp.full((2, 2), 0.5), jnp.array([3.0, 5.0]), jnp.array([True, True])
    >>> limits = (share, share)
    >>> [
    ...     modes_at_rest(G, jnp.full(2, load / 2.0), limits, limits, share, both).modes.tolist()
    ...     for load in (8.0, 8.1, -8.1)
    ... ]
    [[0, 0], [1, 1], [-1, -1]]
    """
    G, b, hold, slide, share = jax.lax.stop_gradient((G, b, hold, slide, share))
    # Scale forces and accelerations so that G_ii = 1. For a contact that no force can accelerate,
    # G_ii stays 0. The scaled values are force*unit and acceleration/unit.
    among = in_rest[:, None] & in_rest
    root = jnp.sqrt(jnp.where(in_rest, jnp.diagonal(G), 0.0))
    unit = jnp.where(root > 0, root, 1.0)
    G, b = jnp.where(among, G, 0.0) / (unit[:, None] * unit), jnp.where(in_rest, b, 0.0) / unit
    most, least = (jnp.where(in_rest, jnp.stack(pair), 0.0) * unit for pair in (hold, slide))
    weight = 1.0 / (jnp.where(in_rest, share, 1.0) * unit**2)
    zero = _Tolerances.for_numbers(G).zero
    raised = _raise_of_limits(most, zero * jnp.max(jnp.abs(b)))
    most, least = most + raised, least + raised
    # A force of the size `beyond` exceeds every limit and marks a motion that no contact can stop.
    beyond = 1e10 * (jnp.max(jnp.abs(b)) + jnp.max(jnp.where(jnp.isfinite(most), most, 0.0)))

    def look(state) -> Any:
        modes, limits, rounds, looks, _, _ = state
        sliding = modes != 0
        limit = jnp.where(modes > 0, limits[1], limits[0])
        wish = _holding_forces(G, b, weight, modes, jnp.where(sliding, modes * limit, 0.0), beyond)
        # A sliding contact gets a slightly lower limit. Otherwise rounding may make the contact
        # alternate between stuck and sliding.
        lower = limits - jnp.where(sliding, 1e-3 * raised, 0.0)
        side = jnp.where(wish > lower[1], 1, jnp.where(wish < -lower[0], -1, 0))
        wrong = side != modes
        first = jnp.argmax(wrong)
        pivoted = modes.at[first].set(jnp.where(sliding[first], 0, side[first]))
        fallen = jnp.where(sliding, least, limits)
        fit, falls = ~jnp.any(wrong), jnp.any(fallen != limits)
        following = jnp.where(fit, modes, pivoted), jnp.where(fit, fallen, limits)
        return *following, rounds + (fit & falls), looks + 1, wish, fit & ~falls

    k, one = b.shape[0], jnp.ones((), jnp.int32)
    start = jnp.zeros(k, jnp.int32), most, one, 0 * one, jnp.zeros_like(b), jnp.array(False)
    modes, limits, rounds, looks, wish, settled = jax.lax.while_loop(
        lambda s: ~s[-1] & (s[3] < _MOST_SOLUTIONS * k), look, start
    )
    force = jnp.where(modes == 0, wish, modes * jnp.where(modes > 0, limits[1], limits[0]))
    return ContactModes(modes, settled & jnp.all(_fits(G, b, force, modes)), looks, rounds)


def _raise_of_limits(most: Array, zero: Array) -> Array:
    """Return the amounts (2, k) by which the limits `most` (2, k) are raised. `zero`: a small force
    that every contact can hold. The relative amounts differ, so that equal contacts do not reach
    their limits at the same time.
    """
    k, eps = most.shape[1], jnp.finfo(most.dtype).eps
    finite = jnp.where(jnp.isfinite(most), most, 0.0)
    return jnp.exp(-jnp.arange(k) / k) * (eps**AT_LIMIT * finite + zero)


def _fits(G: Array, b: Array, force: Array, modes: Array) -> Array:
    """Return for each contact whether its acceleration is consistent with its mode."""
    tolerances = _Tolerances.for_numbers(G)
    a_rel, terms = b - G @ force, jnp.abs(b) + jnp.abs(G) @ jnp.abs(force)
    error = jnp.where(modes == 0, jnp.abs(a_rel), -modes * a_rel)
    return error <= tolerances.motion * terms + tolerances.rounding * jnp.max(terms)


def _holding_forces(
    G: Array, b: Array, weight: Array, modes: Array, at_limit: Array, beyond: Array
) -> Array:
    """Return for each contact the force that would hold it stuck while the other contacts keep
    their modes. The result for a stuck contact is its actual force.

    `at_limit`: forces of the sliding contacts; 0 for all other contacts. The forces of redundant
    contacts have the least sum of weight*f**2. For a prescribed motion, which no force can stop,
    the result is about `beyond`.
    """
    tolerances, stuck = _Tolerances.for_numbers(G), modes == 0
    rank = tolerances.rank
    table, basis = eliminate(jnp.column_stack([G, b - G @ at_limit]), stuck, rank)
    # The basis is a set of stuck contacts whose rows of G are linearly independent. Any other row j
    # is a sum of these rows with the coefficients mix[:, j], plus a pivot on the diagonal.
    mix = jnp.where(basis[:, None] & ~basis & (jnp.abs(table[:, :-1]) > rank), table[:, :-1], 0.0)
    alone, a_rel = jnp.where(basis, table[:, -1], 0.0), jnp.where(basis, 0.0, table[:, -1])
    pivot = jnp.diagonal(table)
    eps = jnp.finfo(G.dtype).eps
    redundant = ~basis & (pivot <= rank + 64 * eps * jnp.sum(jnp.abs(mix), axis=0) ** 2)
    terms = jnp.abs(b) + jnp.abs(G) @ jnp.abs(at_limit)
    prescribed = jnp.abs(a_rel) > tolerances.consistent * (
        terms + jnp.abs(mix).T @ terms
    ) + tolerances.rounding * jnp.max(terms)
    push = jnp.where(redundant & prescribed, a_rel, 0.0)
    largest = jnp.max(jnp.abs(push))
    push = push / jnp.where(largest > 0, largest, 1.0) * beyond * jnp.max(weight)
    # The contacts of the basis alone can hold the load. Each redundant stuck contact takes over a
    # share of this load. The shares minimise the weighted sum of squared forces.
    squares = mix.T @ (weight[:, None] * mix) + jnp.diag(weight)
    table, extra = eliminate(
        jnp.column_stack([squares, mix.T @ (weight * alone) + push]), stuck & ~basis, 0.0
    )
    taken = jnp.where(extra, table[:, -1], 0.0)
    force = alone - mix @ taken + taken + at_limit
    held = (
        mix.T @ (weight * jnp.where(basis, force, 0.0)) + push - weight * at_limit
    ) / jnp.diagonal(squares)
    more = jnp.where(redundant, held, a_rel / jnp.where(redundant | basis, 1.0, pivot))
    return jnp.where(stuck, force, at_limit + more)


def eliminate(table: Array, among: Array, least: Any) -> tuple[Array, Array]:
    """Eliminate the rows `among` of `table` by Gauss-Jordan, with the largest diagonal element
    first, until no pivot is larger than `least`. Return the new table, and a flag for each row:
    whether it was a pivot.

    LAPACK is not used, because LAPACK needs the import of scipy and a long compilation.
    """
    rows = jnp.arange(table.shape[0])

    def step(_, state) -> Any:
        table, done = state
        diagonal = jnp.where(among & ~done, jnp.abs(jnp.diagonal(table)), 0.0)
        p = jnp.argmax(diagonal)
        is_pivot = diagonal[p] > least
        row = table[p] / jnp.where(is_pivot, table[p, p], 1.0)
        reduced = jnp.where((rows == p)[:, None], row, table - table[:, p, None] * row)
        return jnp.where(is_pivot, reduced, table), done | (is_pivot & (rows == p))

    return jax.lax.fori_loop(0, table.shape[0], step, (table, jnp.zeros_like(among)))


class Lines(eqx.Module):
    """Friction that depends on a torque tau = at + by f, where f are the forces of all contacts.

    For forward motion, friction is the greater of the two values slope*tau + offset. For backward
    motion, friction is the lesser of the two values slope*tau - offset.

    - `is_by_torque`: which of the k contacts have a friction that depends on a torque. All other
      fields apply only to contacts whose friction depends on a torque.
    - `at` (k,) [N.m], `by` (k x k) [1]: coefficients of the torque tau at each contact.
    - `slope` [1], `offset` [N.m] (2 x k): coefficients of the two friction lines. The first row is
      for a power flow from body a to body b.
    - `factor` [1] (2 x k): factors on the force limits (backward, forward) of a contact at rest.
    """

    is_by_torque: Bool[Array, " k"]
    at: PerContact
    by: Float[Array, "k k"]
    slope: Float[Array, "2 k"]
    offset: Float[Array, "2 k"]
    factor: Float[Array, "2 k"]


def modes_by_torque(
    G: Float[Array, "k k"],
    b: PerContact,
    hold: BothWays,
    slide: BothWays,
    share: PerContact,
    motion: tuple[Bool[Array, " k"], Int[Array, " k"], PerContact],
    friction: Lines,
    redundant: bool,
) -> ContactModes:
    """Solve the problem of `modes_at_rest` for contacts with friction that depends on a torque.

    **Arguments:** those of `modes_at_rest`, with two changes. `b` contains accelerations without
    any contact force. `motion` replaces `in_rest` by three arrays: flags for contacts at rest, and
    the modes and forces of the other contacts. `redundant`: whether G may be singular.

    **Method:** the rule of least index, as in `modes_at_rest`. The greater friction line is active.
    The rule may cycle. Therefore, after 8 solutions per contact, the search restarts from random
    modes every 2 solutions per contact, and a contact that others hold may stay at its limit.
    """
    G, b, hold, slide, share, motion, lines = jax.lax.stop_gradient(
        (G, b, hold, slide, share, motion, friction)
    )
    (in_rest, own_modes, own_forces), k, rng = motion, b.shape[0], np.random.default_rng(0)
    tolerances = _Tolerances.for_numbers(G)
    own = jnp.diagonal(G)
    most, least = jnp.stack(hold), jnp.stack(slide)
    unit = jnp.where(own > 0, own, 1.0)
    scaled = G / jnp.sqrt(unit[:, None] * unit)
    zero = tolerances.zero * jnp.max(jnp.abs(b) / jnp.sqrt(unit)) / jnp.sqrt(unit)
    raised = _raise_of_limits(most, zero)
    most, least = most + raised, least + raised

    def forces(modes: Array, line: Array, limits: Array) -> tuple[Array, Array, Array]:
        pick = lambda pair: jnp.where(line == 0, pair[0], pair[1])  # noqa: E731
        # The factor also lowers the sliding friction. Otherwise the mode alternates at the limit.
        factor = jnp.where(in_rest, jnp.where(modes > 0, *lines.factor[::-1]), 1.0)
        slope, offset = factor * pick(lines.slope), factor * pick(lines.offset)
        limit = jnp.where(modes > 0, limits[1], limits[0])
        at_limit = modes * jnp.where(jnp.isfinite(limit), limit, 0.0)
        at_limit = jnp.where(in_rest, at_limit, own_forces)
        # A contact that no force can accelerate cannot hold a load, so it does not count as stuck.
        stuck, by_torque = in_rest & (modes == 0) & (own > 0), lines.is_by_torque & (modes != 0)
        row = jnp.eye(k) - jnp.where(by_torque, slope, 0.0)[:, None] * lines.by
        right = jnp.where(by_torque, slope * lines.at + modes * offset, at_limit)
        matrix, right = jnp.where(stuck[:, None], G, row), jnp.where(stuck, b, right)
        # The forces of the stuck contacts are share*(G z) with a vector z. If G is singular, z is
        # not unique, but G z is unique.
        elastic = jnp.where(stuck, G, 0.0)
        spread = jnp.eye(k)
        if redundant:
            spread = jnp.where(stuck[:, None], share[:, None] * elastic, spread)
        product = matrix @ spread
        regular = tolerances.regularization * jnp.diagonal(product) if redundant else None
        slack = jnp.zeros(k) if regular is None else jnp.where(stuck, regular, 0.0)
        product = product + jnp.diag(slack)

        def solve(right):
            return eliminate(jnp.column_stack([product, right]), jnp.ones(k, bool), 0.0)[0][:, -1]

        z = jax.lax.fori_loop(
            0, 4 if redundant else 1, lambda _, z: solve(right + slack * z), jnp.zeros(k)
        )
        f = spread @ z
        return f, lines.at + lines.by @ f, share * (elastic @ z)

    def look(state) -> Any:
        modes, line, limits, looks, _ = state
        f, torque, borne = forces(modes, line, limits)
        along = lines.slope * torque
        upper = jnp.maximum(*(along + lines.offset))
        lower = jnp.maximum(*(lines.offset - along))
        by_torque = jnp.stack([lower, upper])
        threshold = jnp.where(
            lines.is_by_torque,
            by_torque * lines.factor + _raise_of_limits(jnp.abs(by_torque), zero),
            limits,
        )
        away = jnp.where(f > threshold[1], 1, jnp.where(f < -threshold[0], -1, 0))
        little = 1e-3 * jnp.where(modes > 0, raised[1], raised[0])
        a_rel = b - G @ f
        turns = modes * a_rel < -little * own
        # Stuck contacts may hold the motion of a contact that counts as sliding. The pivot of this
        # contact is then 0. Before a restart, it sticks if its part of the load is below its limit.
        if redundant:
            pivot = jnp.diagonal(eliminate(scaled, in_rest & (modes == 0), tolerances.rank)[0])
            still = jnp.abs(a_rel) <= little * own + tolerances.consistent * (
                jnp.abs(b) + jnp.abs(G) @ jnp.abs(f)
            )
            relieved = (modes * (borne - f) < -little) & (looks < 8 * k)
            turns = jnp.where(still & (pivot <= tolerances.rank), relieved, turns)
        wished = jnp.where(in_rest, jnp.where(modes == 0, away, jnp.where(turns, 0, modes)), modes)
        # Friction that depends on a torque is one of two linear functions of the torque: the
        # greater one in forward motion, the lesser one in backward motion. A stuck contact uses the
        # function for the direction of its load.
        towards = jnp.where(wished == 0, jnp.where(f >= 0, 1, -1), wished)
        values = towards * along + lines.offset
        size = jnp.max(jnp.abs(lines.slope), axis=0) * (
            jnp.abs(lines.at) + jnp.abs(lines.by) @ jnp.abs(f)
        ) + jnp.max(lines.offset, axis=0)
        tie = jnp.where(wished == modes, tolerances.rounding * size, 0.0)
        kept = jnp.where(line == 0, values[0] - values[1], values[1] - values[0]) >= -tie
        better = jnp.where(lines.is_by_torque & ~kept, 1 - line, line)
        wrong = (wished != modes) | ((better != line) & (modes != 0))
        fit, first = ~jnp.any(wrong), jnp.argmax(wrong)
        fallen = jnp.where((modes != 0) & in_rest, least, limits)
        modes = jnp.where(fit, modes, modes.at[first].set(wished[first]))
        line = jnp.where(fit, better, line.at[first].set(better[first]))
        again, random = ~fit & (looks >= 8 * k) & (looks % (2 * k) == 0), restarts[looks // (2 * k)]
        random = jnp.where(jnp.isinf(jnp.where(random < 0, *most)), 0, random)
        modes = jnp.where(again & in_rest, random, modes)
        line = jnp.where(again, jnp.abs(random), line)
        lowered = jnp.where(again, most, jnp.where(fit, fallen, limits))
        return modes, line, lowered, looks + 1, fit & jnp.all(fallen == limits)

    restarts = jnp.asarray(rng.integers(-1, 2, (_MOST_SOLUTIONS // 2, k)), jnp.int32)
    modes, none = jnp.where(in_rest, 0, own_modes).astype(jnp.int32), jnp.zeros(k, jnp.int32)
    start = modes, none, most, none[0], jnp.array(False)
    modes, line, limits, looks, settled = jax.lax.while_loop(
        lambda s: ~s[-1] & (s[3] < _MOST_SOLUTIONS * k), look, start
    )
    f, _, _ = forces(modes, line, limits)
    fits = _fits(G, b, f, modes) | ~in_rest
    return ContactModes(modes, settled & jnp.all(fits), looks, lines=line)
