"""Own machines whose methods return arrays of a wrong shape are refused in one sentence. Whole
numbers and lists are accepted.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx

RUBS = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=1.0))
TABLE = fx.SupportFriction("joint", f_pos=fx.Table([[0, 1], [1, 2], [2, 5]]))
T = jnp.array(0.0)


def linkage(**own: Callable[..., Any]) -> type[fx.AbstractLinkage]:
    class Arm(fx.AbstractLinkage):
        frictions: tuple[fx.SupportFriction, ...]

        def mass_matrix(self, q: Any) -> Any:
            return jnp.diag(jnp.array([1.0, 2.0]))

        def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
            return jnp.array([3.0, 3.0])

        def states(self) -> tuple[str, ...]:
            return ("q1", "q2", "u1", "u2")

    return type("Arm", (Arm,), own)


def axis(**own: Callable[..., Any]) -> type[fx.AbstractAxis]:
    class Cart(fx.AbstractAxis):
        friction: fx.SupportFriction

        def inertia(self, t: Any, y: Any, args: Any) -> Any:
            return 1.0

        def load(self, t: Any, y: Any, args: Any) -> Any:
            return 2.0

        def states(self) -> tuple[str, ...]:
            return ("s", "v")

    return type("Cart", (Cart,), own)


def rates(machine: Any, y: Any) -> Any:
    """The rates at the start of a run, computed as an engine does, but without a compiler."""

    def flow(y: Any, mode: Any) -> Any:
        y, mode = machine.prepare_start(T, y, mode, None)
        return machine.flow(T, y, mode, None)

    return jax.eval_shape(flow, *machine.begin(0.0, y))


@pytest.mark.parametrize(
    ("own", "frictions", "message"),
    [
        (
            {"force": lambda *_: jnp.array([3.0])},
            2,
            r"`Arm.force` must .* \(2,\), got shape \(1,\)",
        ),
        ({"mass_matrix": lambda *_: jnp.eye(1)}, 2, r"`Arm.mass_matrix` .*\(2, 2\), got.*\(1, 1\)"),
        ({"mass_matrix": lambda *_: jnp.ones(2)}, 2, r"`Arm.mass_matrix` .*\(2, 2\), got.*\(2,\)"),
        ({"jacobian": lambda *_: jnp.ones((1, 2))}, 2, r"`Arm.jacobian` .*\(2, 2\), got.*\(1, 2\)"),
        ({"jacobian": lambda *_: jnp.eye(2)}, 1, r"`Arm.jacobian` .*\(1, 2\), got shape \(2, 2\)"),
        ({"jacobian": lambda *_: jnp.eye(1)}, 1, r"`Arm.jacobian` .*\(1, 2\), got shape \(1, 1\)"),
        ({"jacobian": lambda *_: jnp.ones(2)}, 1, r"`Arm.jacobian` .*\(1, 2\), got shape \(2,\)"),
        ({}, 1, r"`Arm.jacobian` .*\. The default is the unit matrix, which needs as many frict"),
        ({}, 3, r"`Arm.jacobian` must return an array of shape \(3, 2\), got shape \(2, 2\)"),
        ({"others": lambda *_: jnp.ones(1)}, 2, r"`Arm.others` must .* \(0,\), got shape \(1,\)"),
    ],
)
def test_a_wrong_array_of_a_linkage_is_refused(own: Any, frictions: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rates(linkage(**own)((RUBS,) * frictions), [0.0] * 4)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            {"load": lambda *_: jnp.ones(1)},
            r"`Cart.load` must return one number, .*got shape \(1,\)",
        ),
        ({"inertia": lambda *_: jnp.ones(1)}, r"`Cart.inertia` must return one number"),
        ({"pressing": lambda *_: jnp.ones(1)}, r"`Cart.pressing` must return one number"),
        (
            {"others": lambda self, t, y, args: y[0]},
            r"`Cart.others` must .* \(0,\), got shape \(\)",
        ),
    ],
)
def test_a_wrong_number_of_an_axis_is_refused(own: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rates(axis(**own)(RUBS), [0.0, 0.0])


def test_states_and_modes_of_a_wrong_length_are_refused() -> None:
    for machine, y in ((axis()(RUBS), [0.0]), (axis()(RUBS), [0.0] * 3)):
        with pytest.raises(ValueError, match=r"`Cart`: the state .* \(s, v\), got shape"):
            machine.begin(0.0, y)
    with pytest.raises(ValueError, match=r"`Arm`: the state .* got shape \(5,\)\. Give all"):
        linkage()((RUBS, RUBS)).begin(0.0, [0.0] * 5)
    arm, cart = linkage()((TABLE, RUBS)), axis()(TABLE)
    for machine, y, mode in ((cart, [0.0, 0.5], [1]), (arm, [0.0] * 4, [1, 1])):
        with pytest.raises(ValueError, match=r"must have length [23], got [12]\. Take the state"):
            fx.walk(machine, jnp.array(y), mode, jnp.array([0.0, 1.0]))


def test_whole_numbers_and_lists_are_numbers() -> None:
    own = {
        "mass_matrix": lambda self, q: np.diag([1, 2]),
        "jacobian": lambda self, q: [[1, 0]],
        "force": lambda self, t, q, u, args: jnp.array([3, 3]) - self.velocity_terms(q, u),
    }
    whole = linkage(**own)((RUBS,))
    y, mode = whole.begin(0.0, [0.0, 0.0, 1.0, 0.0])
    assert mode.tolist() == [1]
    # The friction of 1 N acts on the first coordinate only.
    assert whole.flow(T, y, mode, None).tolist() == [1.0, 0.0, 2.0, 1.5]
