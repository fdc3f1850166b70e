"""Which of the contacts at rest begin to slide, and in which direction."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from frictax.parameters import Integer

# In units in which every contact has G_ii = 1. Values are for 64 bits; nothing is tested in 32.
# eps**0.7 = 1e-11: a pivot below it is 0. True ones are above the ratio of the least to the sum of
# all masses.
_RANK = 0.7
# 1e-9 of its terms: an acceleration below it is 0, where the others determine it
_CONSISTENT = 0.57
AT_LIMIT = 0.57  # 1e-9 of a limit: a force that exceeds it by less is held
# 1.5e-8 of its terms: an acceleration below it, in the wrong direction, passes in `ok`
_MOTION = 0.5
# times eps, 1.5e-11 of the largest acceleration: a force below it is held without friction
_ZERO = 2**16
_ROUNDING = 512  # times eps, of the largest of the accelerations
# times k. The rule of least index may take 3**k; 7 k was the most in 36 kinds of random problems,
# 20000 each, with k = 4 to 12
_LOOKS = 64


PerContact = Float[Array, " k"]
BothWays = tuple[PerContact, PerContact]  # backward, forward


class Chosen(eqx.Module):
    """What each contact does after an event.

    modes: -1 sliding backward, 0 stuck or not in the rest set, 1 sliding forward. ok: whether these
    modes are consistent. rounds: how often the limits were looked at anew because contacts had
    broken away, plus 1; at most k + 1. looks: how often the equations of the stuck contacts were
    solved.
    """

    modes: Int[Array, " k"]
    ok: Bool[Array, ""]
    rounds: Integer
    looks: Integer


def modes_at_rest(
    G: Float[Array, "k k"],
    b: PerContact,
    hold: BothWays,
    slide: BothWays,
    share: PerContact,
    in_rest: Bool[Array, " k"],
) -> Chosen:
    """Choose the modes of k contacts at rest so that forces and accelerations fit each other.

    The forces f and relative accelerations a_rel = b - G f satisfy, for each contact in the rest
    set,

        stuck:     a_rel  = 0  and  -hold[0] <= f <= hold[1]
        forward:   a_rel >= 0  and  f =  slide[1]
        backward:  a_rel <= 0  and  f = -slide[0]

    First every limit is `hold`: then f minimises f'G f/2 - b'f between the limits. Each contact
    found at a limit has broken away, its limits (both) fall to `slide`, and the rest is looked at
    again, until no limit falls: after k + 1 rounds at most. With hold = slide and G regular the
    answer is unique. With hold > slide it need not be: this one lets all go that would together.

    **Redundant contacts.** Where G is singular, several contacts can hold the same motion. Of the
    forces that hold it those with the least sum of f**2/share are meant: two brakes on one mass
    bear the load in proportion to `share`. A contact at its limit whose motion others hold has
    a_rel = 0; it counts as sliding, its force being at the limit.

    **Arguments:** for translation; for rotation read N.m, rad/s2 and 1/(kg.m2).

    - `G`: J M^-1 J' [1/kg], the relative accelerations by unit forces on the contacts; symmetric,
      positive semidefinite.
    - `b`: relative accelerations [m/s2] but for the friction of these contacts; that of sliding
      ones is in it.
    - `hold`: the largest force [N] with which a stuck contact opposes motion (backward, forward),
      >= 0; inf at a stop or freewheel. For a contact that has broken away already it is `slide`.
    - `slide`: the force [N] of sliding friction at rest (backward, forward), 0 <= slide <= hold.
    - `share`: capacity [N] of each contact by which redundant ones share a load, > 0 and finite.
    - `in_rest`: which contacts are at rest; the others have no force here and the mode 0.

    **Returns:** `Chosen`. Integers only: no derivative passes through. They are those of limits
    raised by up to 1e-9 of `hold` and 1.5e-11 of the force that gives the largest |b|: a contact at
    its limit holds, and its own breakaway margin sees to it. `ok` is False where no modes fit (a
    motion is prescribed, and inf limits would stop it) or a number is not finite; it allows
    accelerations wrong by 1.5e-8 of |b| + |G| |f|. All these are for 64 bits.

    **Method:** principal pivoting by least index. Of the contacts whose mode contradicts the force
    that would hold them, the first changes its mode: stuck to sliding, or sliding to stuck. It
    ends, by induction over k: the last contact changes only when all before it fit; the
    acceleration of the last one, as a function of its force with the others fitting, falls
    strictly; so it changes twice at most. G becomes strictly definite by the term e/share on its
    diagonal, in the limit e -> 0+, which is taken by algebra: the basis of the stuck equations
    comes from elimination with the largest pivot first, the redundant rest from its own, well posed
    equations.

    **Source:** the problem: M. Otter, H. Elmqvist, S. E. Mattsson, Hybrid Modeling in Modelica
    based on the Synchronous Data Flow Principle, CACSD 1999. The rule of least index: K. G. Murty,
    Linear Complementarity, Linear and Nonlinear Programming, 1988, chapter 4; with limits on both
    sides, as here: R. W. Cottle, J.-S. Pang, R. E. Stone, The Linear Complementarity Problem, 1992.

    Two brakes of 3 N and 5 N hold one mass of 2 kg up to 8 N, together:

    >>> G, share, both = jnp.full((2, 2), 0.5), jnp.array([3.0, 5.0]), jnp.array([True, True])
    >>> limits = (share, share)
    >>> [
    ...     modes_at_rest(G, jnp.full(2, load / 2.0), limits, limits, share, both).modes.tolist()
    ...     for load in (8.0, 8.1, -8.1)
    ... ]
    [[0, 0], [1, 1], [-1, -1]]
    """
    G, b, hold, slide, share = jax.lax.stop_gradient((G, b, hold, slide, share))
    # Units in which G_ii = 1, or 0 for a contact on which no force acts: force*unit,
    # acceleration/unit.
    among = in_rest[:, None] & in_rest
    root = jnp.sqrt(jnp.where(in_rest, jnp.diagonal(G), 0.0))
    unit = jnp.where(root > 0, root, 1.0)
    G, b = jnp.where(among, G, 0.0) / (unit[:, None] * unit), jnp.where(in_rest, b, 0.0) / unit
    most, least = (jnp.where(in_rest, jnp.stack(pair), 0.0) * unit for pair in (hold, slide))
    weight = 1.0 / (jnp.where(in_rest, share, 1.0) * unit**2)
    eps = jnp.finfo(G.dtype).eps
    # Every limit is raised a little, each contact's by another part, so that no two are reached at
    # the same time.
    part = jnp.exp(-jnp.arange(b.shape[0]) / b.shape[0])
    raised = part * (
        eps**AT_LIMIT * jnp.where(jnp.isfinite(most), most, 0.0) + _ZERO * eps * jnp.max(jnp.abs(b))
    )
    most, least = most + raised, least + raised
    # more than any contact holds
    beyond = 1e10 * (jnp.max(jnp.abs(b)) + jnp.max(jnp.where(jnp.isfinite(most), most, 0.0)))

    def look(state) -> Any:
        modes, limits, rounds, looks, _, _ = state
        sliding = modes != 0
        limit = jnp.where(modes > 0, limits[1], limits[0])
        wish = _wish(G, b, weight, modes, jnp.where(sliding, modes * limit, 0.0), beyond)
        # Rounding sends no contact to and fro.
        lower = limits - jnp.where(sliding, 1e-3 * raised, 0.0)
        side = jnp.where(wish > lower[1], 1, jnp.where(wish < -lower[0], -1, 0))
        wrong = side != modes
        first = jnp.argmax(wrong)
        pivoted = modes.at[first].set(jnp.where(sliding[first], 0, side[first]))
        fallen = jnp.where(sliding, least, limits)
        fit, falls = ~jnp.any(wrong), jnp.any(fallen != limits)
        return (
            jnp.where(fit, modes, pivoted),
            jnp.where(fit, fallen, limits),
            rounds + (fit & falls),
            looks + 1,
            wish,
            fit & ~falls,
        )

    k, one = b.shape[0], jnp.ones((), jnp.int32)
    start = jnp.zeros(k, jnp.int32), most, one, 0 * one, jnp.zeros_like(b), jnp.array(False)
    modes, limits, rounds, looks, wish, settled = jax.lax.while_loop(
        lambda s: ~s[-1] & (s[3] < _LOOKS * k), look, start
    )
    force = jnp.where(modes == 0, wish, modes * jnp.where(modes > 0, limits[1], limits[0]))
    a_rel, terms = b - G @ force, jnp.abs(b) + jnp.abs(G) @ jnp.abs(force)
    error = jnp.where(modes == 0, jnp.abs(a_rel), -modes * a_rel)
    return Chosen(
        modes,
        settled & jnp.all(error <= eps**_MOTION * terms + _ROUNDING * eps * jnp.max(terms)),
        rounds,
        looks,
    )


def _wish(G: Array, b: Array, weight: Array, modes: Array, at_limit: Array, beyond: Array) -> Array:
    """The force with which each contact would be stuck, the others staying as they are: of a stuck
    one, its force.

    `at_limit` are the forces of the sliding ones, 0 for the others; of redundant ones the sum of
    weight*f**2 is least. A motion that no force stops, being prescribed, asks for about the force
    `beyond`.
    """
    eps, stuck = jnp.finfo(G.dtype).eps, modes == 0
    table, basis = eliminated(jnp.column_stack([G, b - G @ at_limit]), stuck, eps**_RANK)
    # Of the rest j of the contacts: row j of G is the basis' rows combined by mix[:, j], but for
    # the pivot on the diagonal.
    mix = jnp.where(
        basis[:, None] & ~basis & (jnp.abs(table[:, :-1]) > eps**_RANK), table[:, :-1], 0.0
    )
    alone, a_rel, pivot = (
        jnp.where(basis, table[:, -1], 0.0),
        jnp.where(basis, 0.0, table[:, -1]),
        jnp.diagonal(table),
    )
    redundant = ~basis & (pivot <= eps**_RANK + 64 * eps * jnp.sum(jnp.abs(mix), axis=0) ** 2)
    terms = jnp.abs(b) + jnp.abs(G) @ jnp.abs(at_limit)
    prescribed = jnp.abs(a_rel) > eps**_CONSISTENT * (
        terms + jnp.abs(mix).T @ terms
    ) + _ROUNDING * eps * jnp.max(terms)
    push = jnp.where(redundant & prescribed, a_rel, 0.0)
    largest = jnp.max(jnp.abs(push))
    push = push / jnp.where(largest > 0, largest, 1.0) * beyond * jnp.max(weight)
    # Each redundant stuck contact takes from the basis what makes the weighted sum of squares
    # least.
    squares = mix.T @ (weight[:, None] * mix) + jnp.diag(weight)
    table, extra = eliminated(
        jnp.column_stack([squares, mix.T @ (weight * alone) + push]), stuck & ~basis, 0.0
    )
    taken = jnp.where(extra, table[:, -1], 0.0)
    force = alone - mix @ taken + taken + at_limit
    held = (
        mix.T @ (weight * jnp.where(basis, force, 0.0)) + push - weight * at_limit
    ) / jnp.diagonal(squares)
    more = jnp.where(redundant, held, a_rel / jnp.where(redundant | basis, 1.0, pivot))
    return jnp.where(stuck, force, at_limit + more)


def eliminated(table: Array, among: Array, least: Any) -> tuple[Array, Array]:
    """Gauss-Jordan elimination of the rows `among`, the largest diagonal element first, down to
    `least`; and which rows were pivots.

    Not LAPACK, which would cost the import of scipy and much compilation.
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


# eps**0.75 = 2e-12 of a pivot: what makes the equations of redundant contacts regular
_SLACK = 0.75
_CIRCLES = 8  # times k: more looks go round in circles


class Lines(eqx.Module):
    """Friction by a torque tau = at + by f: forward the greater of slope*tau + offset, backward the
    lesser of slope*tau - offset.

    - `is_by_torque`: which of the k contacts have such a friction; of the others the rest does not
      matter.
    - `at` [N.m], `by` [1] (k x k): the torque that a contact bears, by the forces f of all
      contacts.
    - `slope` [1], `offset` [N.m] (2 x k): of the two lines, in the first row that which holds while
      the power flows on.
    - `factor` [1] (2 x k): what the limits (backward, forward) of a stuck contact are multiplied
      by.
    """

    is_by_torque: Bool[Array, " k"]
    at: PerContact
    by: Float[Array, "k k"]
    slope: Float[Array, "2 k"]
    offset: Float[Array, "2 k"]
    factor: Float[Array, "2 k"]


class ChosenByTorque(eqx.Module):
    """What each contact does after an event.

    modes: -1 sliding backward, 0 stuck, 1 sliding forward; lines: 0 or 1, on which of its two lines
    the friction is or would leave rest. ok: whether these are consistent. looks: how often the
    equations were solved.
    """

    modes: Int[Array, " k"]
    lines: Int[Array, " k"]
    ok: Bool[Array, ""]
    looks: Integer


def modes_by_torque(
    G: Float[Array, "k k"],
    b: PerContact,
    hold: BothWays,
    slide: BothWays,
    share: PerContact,
    in_rest: Bool[Array, " k"],
    given: tuple[Int[Array, " k"], PerContact],
    friction: Lines,
    redundant: bool,
) -> ChosenByTorque:
    """As `modes_at_rest`, for contacts of which some have a friction by torque.

    **Arguments:** those of `modes_at_rest`, but that `b` is without the forces of all contacts;
    `given`: mode and force of the contacts that are not `in_rest`, the force for those without
    `friction`; `redundant`: whether G may be singular.

    **Method:** the rule of least index, as there. A contact by torque that slides is on one of two
    lines; one that is on the lesser of them is wrong too, and changes it.
    """
    G, b, hold, slide, share, given, friction = jax.lax.stop_gradient(
        (G, b, hold, slide, share, given, friction)
    )
    eps, k, lines = jnp.finfo(G.dtype).eps, b.shape[0], friction
    own = jnp.diagonal(G)
    most, least = jnp.stack(hold), jnp.stack(slide)
    unit = jnp.where(own > 0, own, 1.0)
    part = jnp.exp(-jnp.arange(k) / k)  # no two limits are reached at the same time
    zero = _ZERO * eps * jnp.max(jnp.abs(b) / jnp.sqrt(unit)) / jnp.sqrt(unit)
    raised = part * (eps**AT_LIMIT * jnp.where(jnp.isfinite(most), most, 0.0) + zero)
    most, least = most + raised, least + raised

    def forces(modes: Array, line: Array, limits: Array) -> tuple[Array, Array, Array]:
        pick = lambda pair: jnp.where(line == 0, pair[0], pair[1])  # noqa: E731
        slope, offset = pick(lines.slope), pick(lines.offset)
        limit = jnp.where(modes > 0, limits[1], limits[0])
        at_limit = jnp.where(in_rest, modes * jnp.where(jnp.isfinite(limit), limit, 0.0), given[1])
        # A contact on which no force acts holds nothing.
        stuck, by_torque = in_rest & (modes == 0) & (own > 0), lines.is_by_torque & (modes != 0)
        row = jnp.eye(k) - jnp.where(by_torque, slope, 0.0)[:, None] * lines.by
        right = jnp.where(by_torque, slope * lines.at + modes * offset, at_limit)
        matrix, right = jnp.where(stuck[:, None], G, row), jnp.where(stuck, b, right)
        # As everywhere, the stuck ones bear share*(G z): what of z a singular G leaves open, G
        # takes to 0.
        elastic = jnp.where(stuck, G, 0.0)
        spread = (
            jnp.where(stuck[:, None], share[:, None] * elastic, jnp.eye(k))
            if redundant
            else jnp.eye(k)
        )
        product = matrix @ spread
        slack = (
            jnp.where(stuck, eps**_SLACK * jnp.diagonal(product), 0.0)
            if redundant
            else jnp.zeros(k)
        )
        product = product + jnp.diag(slack)

        def solved(right):
            return eliminated(jnp.column_stack([product, right]), jnp.ones(k, bool), 0.0)[0][:, -1]

        z = jax.lax.fori_loop(
            0, 4 if redundant else 1, lambda _, z: solved(right + slack * z), jnp.zeros(k)
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
            by_torque * lines.factor + part * (eps**AT_LIMIT * jnp.abs(by_torque) + zero),
            limits,
        )
        away = jnp.where(f > threshold[1], 1, jnp.where(f < -threshold[0], -1, 0))
        little = 1e-3 * jnp.where(modes > 0, raised[1], raised[0])
        a_rel = b - G @ f
        turns = modes * a_rel < -little * own
        # what others hold turns where it would bear less than its limit, were it one of them
        if redundant:
            still = jnp.abs(a_rel) <= little * own + _ROUNDING * eps * (
                jnp.abs(b) + jnp.abs(G) @ jnp.abs(f)
            )
            turns = jnp.where(still, modes * (borne - f) < -little, turns)
        wished = jnp.where(in_rest, jnp.where(modes == 0, away, jnp.where(turns, 0, modes)), modes)
        # Of a contact that holds, the line that it would leave on.
        towards = jnp.where(wished == 0, jnp.where(f >= 0, 1, -1), wished)
        values = towards * along + lines.offset
        size = jnp.max(jnp.abs(lines.slope), axis=0) * (
            jnp.abs(lines.at) + jnp.abs(lines.by) @ jnp.abs(f)
        ) + jnp.max(lines.offset, axis=0)
        tie = jnp.where(wished == modes, _ROUNDING * eps * size, 0.0)
        kept = jnp.where(line == 0, values[0] - values[1], values[1] - values[0]) >= -tie
        better = jnp.where(lines.is_by_torque & ~kept, 1 - line, line)
        wrong = (wished != modes) | ((better != line) & (modes != 0))
        # Where the rule goes round in circles another contact's turn comes.
        order = (jnp.arange(k) - jnp.where(looks < _CIRCLES * k, 0, looks)) % k
        first = jnp.argmin(jnp.where(wrong, order, k))
        fit = ~jnp.any(wrong)
        fallen = jnp.where((modes != 0) & in_rest, least, limits)
        falls = jnp.any(fallen != limits)
        return (
            jnp.where(fit, modes, modes.at[first].set(wished[first])),
            jnp.where(fit, better, line.at[first].set(better[first])),
            jnp.where(fit, fallen, limits),
            looks + 1,
            fit & ~falls,
        )

    start = (
        jnp.where(in_rest, 0, given[0]).astype(jnp.int32),
        jnp.zeros(k, jnp.int32),
        most,
        jnp.zeros((), jnp.int32),
        jnp.array(False),
    )
    modes, line, limits, looks, settled = jax.lax.while_loop(
        lambda s: ~s[-1] & (s[3] < _LOOKS * k), look, start
    )
    f, _, _ = forces(modes, line, limits)
    a_rel, terms = b - G @ f, jnp.abs(b) + jnp.abs(G) @ jnp.abs(f)
    error = jnp.where(modes == 0, jnp.abs(a_rel), -modes * a_rel)
    fits = (error <= eps**_MOTION * terms + _ROUNDING * eps * jnp.max(terms)) | ~in_rest
    return ChosenByTorque(modes, line, settled & jnp.all(fits), looks)
