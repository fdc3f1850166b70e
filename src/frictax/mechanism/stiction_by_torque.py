"""Which contacts at rest begin to slide where the friction of some depends on a torque that the
others change.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from frictax.parameters import Integer

from .stiction import AT_LIMIT, BothWays, PerContact, eliminated

# eps**0.75 = 2e-12 of a pivot: what makes the equations of redundant contacts regular
_SLACK = 0.75
# times eps, of the force that gives the largest acceleration: a force that exceeds its limit by
# less is held
_ZERO = 2**16
_TIE = 512  # times eps, of a limit: two lines that differ by less are one
# eps**0.5 = 1.5e-8 of its terms: an acceleration in the wrong direction below it passes in `ok`
_MOTION = 0.5
_LOOKS = 64  # times k
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
            still = jnp.abs(a_rel) <= little * own + _TIE * eps * (
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
        tie = jnp.where(wished == modes, _TIE * eps * size, 0.0)
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
    fits = (error <= eps**_MOTION * terms + _TIE * eps * jnp.max(terms)) | ~in_rest
    return ChosenByTorque(modes, line, settled & jnp.all(fits), looks)
