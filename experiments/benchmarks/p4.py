"""How long does a fit of friction to a motion take, with all stick-slip events simulated?

In problem P4, a mass of 1 kg has the friction 1 + 0.2 |v| + 0.4 exp(-5 |v|) N. Its four parameters
are fitted to 2000 speeds in 10 s, with a noise of 0.002 m/s. The force, 3 sin(2 pi t) + 3 sin(2 pi
0.37 t) N, is known at the same times and interpolated linearly. The start values are 1.3, 0.7, 0.7
and 1.3 times the true values.

The time is that of a whole fit of an existing machine and record. The fit ends when no parameter
changes by more than 1e-6 of its value; scipy has its own rule. The error is the largest relative
distance of a parameter from the minimum of the sum of squares.

    python experiments/benchmarks/p4.py [--rounds 9] [--csv FILE]
"""

import functools
from collections.abc import Callable

import numpy as np
from contest import Contestant, hold, timed
from sampled_problem import PARAMETERS, Floor, by_scipy, refined, times

from frictax import fast_loops

fast_loops()  # must run before jax computes anything

TIMES = times(2000)
FORCE = 3.0 * np.sin(2.0 * np.pi * TIMES) + 3.0 * np.sin(2.0 * np.pi * 0.37 * TIMES)
START = PARAMETERS * np.array([1.3, 0.7, 0.7, 1.3])
TOLERANCE = 1e-7  # rtol and atol of scipy's simulations
STARTS = 64  # number of starts of a search from many starts
MANY = 100  # records that `fit_many` fits in one call


@functools.cache
def speeds() -> np.ndarray:
    """Return the measured speeds [m/s]: 0 at t = 0, then 2000 samples with noise."""
    v = Floor.build().forward(PARAMETERS, refined(FORCE))[::8, 1].copy()
    v[1:] += 0.002 * np.random.default_rng(0).standard_normal(len(v) - 1)
    return v


def c_floor(name: str, *options: str) -> list[Contestant]:
    """Return the fit in C, by Levenberg-Marquardt."""
    floor, v = Floor.build(*options), speeds()
    return [
        Contestant(
            name,
            "fit",
            lambda: floor.fit(START, FORCE, v),
            lambda: timed(lambda i: floor.fit(changed(i), FORCE, v), 20),
        ),
    ]


def frictax() -> list[Contestant]:
    """Return fits by frictax, without the first one, which compiles (see `p4_process.py`)."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # otherwise JAX switches threads

    import frictax as fx

    us, v = jnp.asarray(FORCE), jnp.asarray(speeds())
    record = fx.Record(jnp.asarray(TIMES), inputs={"drive": us}, outputs={"mass.v": v})

    names = ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")

    def block(start: np.ndarray) -> fx.Mechanism:
        law = fx.Stribeck(**dict(zip(names, start.tolist(), strict=True)))
        return fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=law, peak=1.0),
            drive=fx.Force("mass", fx.Sampled(jnp.asarray(TIMES), us)),
        )

    def fitted(machine: fx.Mechanism, starts: int = 1) -> fx.FitResult:
        return fx.fit(
            machine, record, free=["friction.f_pos"], objective=fx.FreeRun(), starts=starts
        )

    def values(found: fx.FitResult) -> np.ndarray:
        return np.array([found.values[f"friction.f_pos.{name}"] for name in names])

    def fit(machine: fx.Mechanism) -> np.ndarray:
        return values(fitted(machine))

    def one_after_the_other(machines: list[fx.Mechanism]) -> np.ndarray:
        return values(
            min((fitted(machine) for machine in machines), key=lambda found: found.noise_scale)
        )

    def many(machine: fx.Mechanism) -> np.ndarray:
        found = fx.fit_many(machine, record, np.tile(speeds(), (MANY, 1)), free=["friction.f_pos"])
        return found.values[0, [found.names.index(f"friction.f_pos.{name}") for name in names]]

    blocks = [block(changed(i)) for i in range(20)]
    draws = np.random.default_rng(0).standard_normal((STARTS, len(START)))
    # These starts scatter as much as the random starts of `fit`.
    scattered = [block(START * np.exp(0.5 * draw)) for draw in draws]
    return [
        Contestant(
            "frictax fit",
            "fit",
            lambda: fit(blocks[0]),
            lambda: timed(lambda i: fit(blocks[i]), 20),
        ),
        Contestant(
            "frictax fit_many",
            "fit",
            lambda: many(blocks[0]),
            lambda: timed(lambda i: many(blocks[i]), 1) / MANY,
        ),
        Contestant(
            f"frictax fit with {STARTS} starts",
            "fit",
            lambda: values(fitted(blocks[0], STARTS)),
            lambda: timed(lambda i: fitted(blocks[0], STARTS), 1),
        ),
        Contestant(
            f"frictax fit {STARTS} times",
            "fit",
            lambda: one_after_the_other(scattered),
            lambda: timed(lambda i: one_after_the_other(scattered), 1),
        ),
    ]


def scipy() -> list[Contestant]:
    """Return three fits by `least_squares`: with simulations by `solve_ivp` and two difference
    steps, and with simulations in C.

    With the default difference step, the differences are smaller than the errors of the simulation.
    In this case `least_squares` stays at the start values and reports success.
    """
    from scipy.optimize import least_squares

    floor, v = Floor.build(), speeds()

    def contestant(
        name: str, simulate: Callable[[np.ndarray], np.ndarray], diff_step: float | None
    ) -> Contestant:
        def fit() -> np.ndarray:
            return least_squares(lambda p: simulate(p)[:, 1] - v, START, diff_step=diff_step).x

        return Contestant(name, "fit", fit, lambda: timed(lambda i: fit(), 1))

    return [
        contestant("scipy with step 1e-3", lambda p: by_scipy(p, FORCE, TOLERANCE), 1e-3),
        contestant("scipy with default step", lambda p: by_scipy(p, FORCE, TOLERANCE), None),
        contestant("scipy on C with step 1e-3", lambda p: floor.forward(p, FORCE), 1e-3),
    ]


def changed(i: int) -> np.ndarray:
    """Return start values that differ slightly from call to call."""
    return START * (1.0 + 1e-9 * i)


@functools.cache
def optimum() -> np.ndarray:
    """Return the minimum of the sum of squares, by MINPACK of scipy. C computes simulations and
    derivatives with eight time steps per sample.
    """
    from scipy.optimize import least_squares

    floor, u, v = Floor.build(), refined(FORCE), speeds()

    def residuals(p: np.ndarray) -> np.ndarray:
        return floor.forward(p, u)[::8, 1] - v

    def jacobian(p: np.ndarray) -> np.ndarray:
        return floor.jacobian(p, u)[::8, 1]

    return least_squares(
        residuals,
        START,
        jac=jacobian,
        method="lm",
        x_scale="jac",
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    ).x


def error(c: Contestant) -> float:
    """Return the largest relative distance of a parameter from the optimum."""
    return float(np.max(np.abs(c.answer() / optimum() - 1)))


def field() -> list[Contestant]:
    """Return all compared programs."""
    return [*c_floor("C"), *c_floor("C with library exp", "-DLIBRARY_EXP"), *frictax(), *scipy()]


if __name__ == "__main__":
    hold(__doc__, "p4.csv", field, error)
