"""The compared programs for problem P1 (see `p1.py`): C, frictax, scipy and jaxonomy."""

import ctypes
from collections.abc import Callable

import numpy as np
from contest import Contestant, built, timed

# F_Coulomb [N], F_prop [N.s/m], F_Stribeck [N], fexp [s/m]
PARAMETERS = np.array([1.0, 0.2, 0.4, 5.0])
END = 10.0  # [s] duration of the run
TOLERANCE = 1e-7
# Reference at 10 s, from runs at tolerance 1e-12: position [m] and speed [m/s], and the derivatives
# of the position with respect to the four parameters.
STATE = np.array([0.0010542292515, -0.0560716932638])
DERIVATIVES = np.array([-0.01764442038, -0.001165522403, -0.01297444391, 2.953553867e-4])


def c_floor() -> list[Contestant]:
    """Compile the hand-written C, and return its programs."""
    c = built("p1")
    c.p1_time.restype = ctypes.c_double
    parameters = PARAMETERS.ctypes.data_as(ctypes.c_void_p)

    def answer(tangents: int) -> np.ndarray:
        out, steps = np.zeros(10), ctypes.c_int()
        run = c.p1_jacobian if tangents else c.p1_forward
        run(
            parameters,
            ctypes.c_double(END),
            ctypes.c_double(TOLERANCE),
            out.ctypes.data_as(ctypes.c_void_p),
            ctypes.byref(steps),
        )
        return out[2:6] if tangents else out[:2]

    def seconds(tangents: int) -> float:
        return c.p1_time(
            tangents, parameters, ctypes.c_double(END), ctypes.c_double(TOLERANCE), 1000
        )

    return [
        Contestant("C", "forward", lambda: answer(0), lambda: seconds(0)),
        Contestant("C", "jacobian", lambda: answer(1), lambda: seconds(1)),
    ]


def frictax() -> list[Contestant]:
    """Return the programs of frictax: compiled functions of the parameters."""
    import jax
    import jax.numpy as jnp

    import frictax as fx

    jax.config.update("jax_enable_x64", True)
    # Otherwise JAX sends each call to another thread, which takes 0.03 ms.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    how = fx.Adaptive(rtol=TOLERANCE, atol=TOLERANCE)

    def final(p: jax.Array) -> jax.Array:
        law = fx.Stribeck(F_Coulomb=p[0], F_prop=p[1], F_Stribeck=p[2], fexp=p[3])
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0, s=0.0, v=0.0),
            friction=fx.SupportFriction("mass", f_pos=law, peak=1.0),
            drive=fx.Force("mass", fx.Sine(amplitude=2.0, f=1.0)),
        )
        run = fx.simulate(block, jnp.array([0.0, END]), how)
        return jnp.stack([run["mass"].s[-1], run["mass"].v[-1]])

    forward, jacobian = jax.jit(final), jax.jit(jax.jacfwd(final))
    changed = [jnp.asarray(PARAMETERS + [0.0, 1e-10 * i, 0.0, 0.0]) for i in range(100)]

    def seconds(f: Callable) -> float:
        return timed(lambda i: f(changed[i]).block_until_ready(), 100)

    return [
        Contestant(
            "frictax", "forward", lambda: np.asarray(forward(changed[0])), lambda: seconds(forward)
        ),
        Contestant(
            "frictax",
            "jacobian",
            lambda: np.asarray(jacobian(changed[0]))[0],
            lambda: seconds(jacobian),
        ),
    ]


def scipy() -> list[Contestant]:
    """Return the programs of scipy: `solve_ivp` with events, one call for each mode. Derivatives
    are central differences, because `solve_ivp` does not compute derivatives.
    """
    from scipy.integrate import solve_ivp

    def force(t: float) -> float:
        return 2.0 * np.sin(2.0 * np.pi * t)

    def final(p: np.ndarray) -> np.ndarray:
        F_Coulomb, F_prop, F_Stribeck, fexp = p
        f0 = F_Coulomb + F_Stribeck
        t, y, mode = 0.0, np.zeros(2), 0

        def flow(t, y, mode):
            if mode == 0:
                return [0.0, 0.0]
            speed = mode * y[1]
            return [
                y[1],
                force(t) - mode * (F_Coulomb + F_prop * speed + F_Stribeck * np.exp(-fexp * speed)),
            ]

        def guard(t, y, mode):  # positive while the mode lasts
            return f0 - abs(force(t)) if mode == 0 else mode * y[1]

        guard.terminal, guard.direction = True, -1  # type: ignore[attr-defined]
        while t < END:
            # Without this limit, time steps grow in the stuck mode, and a step can skip an event.
            longest = 0.05 if mode == 0 else 0.1
            part = solve_ivp(
                flow,
                (t, END),
                y,
                args=(mode,),
                events=guard,
                rtol=TOLERANCE,
                atol=TOLERANCE,
                max_step=longest,
            )
            t, y = part.t[-1], part.y[:, -1]
            if part.status == 1:
                y[1] = 0.0
                mode = int(np.sign(force(t))) if mode == 0 or abs(force(t)) > f0 else 0
        return y

    def jacobian() -> np.ndarray:
        columns = []
        for i, value in enumerate(PARAMETERS):
            step = np.zeros(4)
            step[i] = 1e-4 * value
            columns.append(
                (final(PARAMETERS + step)[0] - final(PARAMETERS - step)[0]) / (2 * step[i])
            )
        return np.array(columns)

    return [
        Contestant(
            "scipy",
            "forward",
            lambda: final(PARAMETERS),
            lambda: timed(lambda i: final(PARAMETERS), 1),
        ),
        Contestant("scipy", "jacobian", jacobian, lambda: timed(lambda i: jacobian(), 1)),
    ]


def jaxonomy() -> list[Contestant]:
    """Return the programs of jaxonomy: a block diagram in JAX, differentiated in reverse mode."""
    import logging

    import jax
    import jax.numpy as jnp
    import jaxonomy as peer  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    # Otherwise JAX sends each call to another thread, which takes 0.03 ms.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    logging.getLogger("jaxonomy").setLevel(logging.WARNING)
    names = ["F_Coulomb", "F_prop", "F_Stribeck", "fexp"]

    def force(t: jax.Array) -> jax.Array:
        return 2.0 * jnp.sin(2.0 * jnp.pi * t)

    def flow(t, state, **p):
        sign = jnp.array([0.0, 1.0, -1.0])[state.mode]
        v = state.continuous_state[1]
        friction = (
            p["F_Coulomb"]
            + p["F_prop"] * sign * v
            + p["F_Stribeck"] * jnp.exp(-p["fexp"] * sign * v)
        )
        return jnp.where(sign == 0, 0.0, jnp.array([v, force(t) - sign * friction]))

    def rest(t, state, **p):
        return state.with_continuous_state(state.continuous_state.at[1].set(0.0))

    def system():
        block = peer.LeafSystem(name="block")
        block.declare_continuous_state(2, ode=flow)
        for name, value in zip(names, PARAMETERS, strict=True):
            block.declare_dynamic_parameter(name, value)
        block.declare_default_mode(0)
        for mode, sign in ((1, 1.0), (2, -1.0)):  # In P1 the block rests between two slides.
            falls = {"direction": "positive_then_non_positive"}
            block.declare_zero_crossing(
                lambda t, state, sign=sign, **p: p["F_Coulomb"] + p["F_Stribeck"] - sign * force(t),
                start_mode=0,
                end_mode=mode,
                **falls,
            )
            block.declare_zero_crossing(
                lambda t, state, sign=sign, **p: sign * state.continuous_state[1],
                rest,
                start_mode=mode,
                end_mode=0,
                **falls,
            )
        return block

    def final(differentiate: str) -> Callable[[jax.Array], jax.Array]:
        block = system()
        context = block.create_context()
        options = peer.SimulatorOptions(
            rtol=TOLERANCE,
            atol=TOLERANCE,
            ode_solver_method="dopri5",
            max_major_steps=200,
            max_minor_step_size=0.05,
            diff_mode=differentiate,
        )
        return lambda p: (
            peer.simulate(
                block,
                context.with_parameters(dict(zip(names, p, strict=True))),
                (0.0, END),
                options=options,
            ).context.continuous_state
        )

    reverse = final("reverse")
    forward, jacobian = jax.jit(final("none")), jax.jit(jax.grad(lambda p: reverse(p)[0]))
    changed = [jnp.asarray(PARAMETERS + [0.0, 1e-10 * i, 0.0, 0.0]) for i in range(100)]

    def seconds(f: Callable) -> float:
        return timed(lambda i: f(changed[i]).block_until_ready(), 100)

    contestants = [
        Contestant(
            "jaxonomy", "forward", lambda: np.asarray(forward(changed[0])), lambda: seconds(forward)
        )
    ]
    try:
        jacobian(changed[0])
    except Exception as e:  # jaxonomy fails with versions of JAX that are too new for it
        print(
            f"jaxonomy {peer.__version__} cannot differentiate with jax {jax.__version__}"
            f" ({type(e).__name__}): left out."
        )
    else:
        contestants.append(
            Contestant(
                "jaxonomy",
                "jacobian",
                lambda: np.asarray(jacobian(changed[0])),
                lambda: seconds(jacobian),
            )
        )
    return contestants
