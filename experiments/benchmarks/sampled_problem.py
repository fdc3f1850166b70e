"""The block under a sampled force of problems P2 to P7: its parameters, and its simulations in C,
by scipy and by frictax.
"""

import ctypes
import dataclasses
from typing import Any

import numpy as np
from contest import built

# F_Coulomb [N], F_prop [N.s/m], F_Stribeck [N], fexp [s/m]
PARAMETERS = np.array([1.0, 0.2, 0.4, 5.0])
END = 10.0  # [s] duration of a run


def times(intervals: int) -> np.ndarray:
    """Return sample times from 0 to 10 s."""
    return np.linspace(0.0, END, intervals + 1)


@dataclasses.dataclass(frozen=True)
class Floor:
    """The hand-written C, compiled with additional compiler options."""

    c: ctypes.CDLL

    @classmethod
    def build(cls, *options: str) -> "Floor":
        return cls(built("records", *options))

    def forward(self, p: np.ndarray, u: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        """Return positions and speeds (n + 1, 2) at the samples of the force u (n + 1,) [N]."""
        y = np.empty((len(u), 2)) if y is None else y
        self.c.records_forward(_at(p), len(u) - 1, _step(u), _at(u), _at(y))
        return y

    def jacobian(
        self,
        p: np.ndarray,
        u: np.ndarray,
        y: np.ndarray | None = None,
        dy: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the derivatives (n + 1, 2, 4) of `forward` with respect to the four parameters."""
        y = np.empty((len(u), 2)) if y is None else y
        dy = np.empty((len(u), 2, 4)) if dy is None else dy
        self.c.records_jacobian(_at(p), len(u) - 1, _step(u), _at(u), _at(y), _at(dy))
        return dy

    def fit(
        self, start: np.ndarray, u: np.ndarray, v: np.ndarray, tolerance: float = 1e-6
    ) -> np.ndarray:
        """Fit the parameters to the speeds v by Levenberg-Marquardt, until no parameter changes by
        more than the fraction `tolerance` of its value.
        """
        p, squares = start.copy(), ctypes.c_double()
        self.c.records_fit(
            _at(p),
            len(u) - 1,
            _step(u),
            _at(u),
            _at(v),
            ctypes.c_double(tolerance),
            ctypes.byref(squares),
        )
        return p


def _at(a: np.ndarray) -> ctypes.c_void_p:
    return a.ctypes.data_as(ctypes.c_void_p)


def _step(u: np.ndarray) -> ctypes.c_double:
    return ctypes.c_double(END / (len(u) - 1))


def refined(u: np.ndarray, parts: int = 8) -> np.ndarray:
    """Return the force on a grid that is finer by the factor `parts`, interpolated linearly. The
    results of C on this grid serve as reference.
    """
    n = len(u) - 1
    return np.interp(np.arange(parts * n + 1) / parts, np.arange(n + 1), u)


def by_scipy(p: np.ndarray, u: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the same arrays as `Floor.forward`. Each sliding phase is one call of `solve_ivp` with
    an event at its end and dense output at the samples.

    A resting block is not integrated. The first sample above breakaway is looked up, and the time
    of breakaway has a closed form.
    """
    from scipy.integrate import solve_ivp

    F_Coulomb, F_prop, F_Stribeck, fexp = p.tolist()
    f0, n, h = F_Coulomb + F_Stribeck, len(u) - 1, END / (len(u) - 1)
    grid, rises, values, slopes = times(n), np.abs(u) > f0, u.tolist(), (np.diff(u) / h).tolist()

    def force(t: float) -> float:
        i = min(int(t / h), n - 1)
        return values[i] + slopes[i] * (t - i * h)

    def flow(t, y, sign):
        v = float(y[1])
        w = sign * v
        return [v, force(t) - sign * (F_Coulomb + F_prop * w + F_Stribeck * np.exp(-fexp * w))]

    def guard(t, y, sign):  # positive while the block slides
        return sign * y[1]

    guard.terminal, guard.direction = True, -1  # type: ignore[attr-defined]
    # `done`: number of samples in `out` that are computed
    out, t, y, done, sign = np.empty((n + 1, 2)), 0.0, np.zeros(2), 0, 0.0
    while done <= n:
        if sign == 0:
            ahead = np.flatnonzero(rises[done:])
            found = done + int(ahead[0]) if len(ahead) else n + 1
            out[done:found] = y
            done = found
            if done > n:
                break
            sign = float(np.sign(u[done]))
            if done > 0:
                t = max(t, grid[done - 1] + (sign * f0 - u[done - 1]) / slopes[done - 1])
        part = solve_ivp(
            flow,
            (t, END),
            y,
            args=(sign,),
            events=guard,
            dense_output=True,
            rtol=tolerance,
            atol=tolerance,
            max_step=0.05,
        )
        t, y = part.t[-1], np.array([part.y[0, -1], 0.0]) if part.status == 1 else part.y[:, -1]
        passed = n + 1 if part.status == 0 else int(np.searchsorted(grid, t, side="right"))
        out[done:passed] = part.sol(grid[done:passed]).T
        done = passed
        sign = float(np.sign(force(t))) if abs(force(t)) > f0 else 0.0
    return out


def outputs_of_frictax(force: np.ndarray) -> Any:
    """Return a function of the four parameters. It simulates with frictax and returns positions
    and speeds (n, 2) at the samples of the force (n,) [N].
    """
    import jax.numpy as jnp

    import frictax as fx

    ts, us = jnp.asarray(times(len(force) - 1)), jnp.asarray(force)

    def outputs(p: Any) -> Any:
        law = fx.Stribeck(F_Coulomb=p[0], F_prop=p[1], F_Stribeck=p[2], fexp=p[3])
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=law, peak=1.0),
            drive=fx.Force("mass", fx.Sampled(ts, us)),
        )
        return fx.simulate(block, ts, fx.OnSamples()).ys

    return outputs
