"""Machines that hunt, stick and slip, or switch, with what is known of their cycles."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import frictax as fx
from frictax.parameters import AtLeast, Positive, Real, Scalar, parameter


class Servo(fx.AbstractAxis):
    """An axis held at the angle 0 by proportional, differential and integral action, whose integral
    leaks away at the rate `leak`.
    """

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2", default=6.7e-3)
    kp: Scalar = parameter(AtLeast(0.0), "N.m/rad", default=4.0)
    kd: Scalar = parameter(AtLeast(0.0), "N.m.s/rad", default=0.25)
    ki: Scalar = parameter(AtLeast(0.0), "N.m/(rad.s)", default=40.0)
    leak: Scalar = parameter(AtLeast(0.0), "1/s", default=0.5)
    phi: Scalar = parameter(Real(), "rad", default=0.05)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return -self.kp * y[0] - self.kd * y[1] + self.ki * y[2]

    def others(self, t: Any, y: Any, args: Any) -> Any:
        return jnp.stack([-y[0] - self.leak * y[2]])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w", "integral")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.stack([self.phi, 0.0, 0.0]))


def servo(peak: float = 1.5, F: float = 0.05, F_neg: float | None = None, **values: float) -> Servo:
    """A servo with the friction `F` forward, and `F_neg` backward (`F` without it)."""
    laws = [fx.Coulomb(F_Coulomb=f) for f in (F, F if F_neg is None else F_neg)]
    return Servo(fx.SupportFriction("arm", f_pos=laws[0], f_neg=laws[1], peak=peak), **values)


def moving(speed: Any, t: Any) -> Any:
    return speed * t


def belt(c: float = 100.0, peak: float = 1.5, speed: float = 0.1, m: float = 1.0) -> fx.Mechanism:
    """A mass on a belt with 4 N of friction, pulled back by a spring."""
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=m),
        spring=fx.Spring("wall", "mass", c=c),
        belt=fx.Mass(m=1.0),
        drive=fx.Position("belt", jax.tree_util.Partial(moving, jnp.asarray(speed))),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=4.0), peak=peak, support="belt"
        ),
    )


def of_the_belt(c: float, peak: float, speed: float, m: float) -> tuple[float, float]:
    """Period [s] and amplitude [m], in closed form: it slips along an ellipse about where friction
    and spring are in balance, from and to the speed of the belt.
    """
    w, lead = np.sqrt(c / m), (peak - 1.0) * 4.0 / c
    phase = np.arctan2(lead, speed / w)
    return 2 * (np.pi - phase) / w + 2 * lead / speed, np.hypot(lead, speed / w)


class Relay(fx.AbstractHybridSystem):
    """A heater that a relay with a band of 2*`band` switches: y goes towards 1 or -1 within a
    second. `push`: what it is also heated by, over time.
    """

    band: jax.Array
    push: jax.Array = eqx.field(converter=jnp.asarray, default=0.0)

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return mode[0] - y + self.push * jnp.sin(0.9 * t)

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return self.band - mode[0] * y

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, -mode, jnp.array(0)

    def start(self, t: Any) -> Any:
        return jnp.zeros(1), jnp.array([1])


TIGHTEST = fx.Adaptive(rtol=1e-12, atol=1e-15)


@jax.jit
def run(machine: Any, y: Any, mode: Any, ts: Any) -> Any:
    return fx.walk(machine, y, mode, ts, options=TIGHTEST)


def settled(machine: Any, end: float, count: int = 40_001) -> tuple[float, np.ndarray, np.ndarray]:
    """Of a run from its start for `end` [s]: how long the last of its periods lasts (0: it came to
    rest), and the extremes of its states over that.
    """
    y, mode = machine.start(jnp.array(0.0))
    path = run(machine, y, mode, jnp.linspace(0.0, end, 5))
    n = int(path.count)
    before, after, times = (np.asarray(x)[:n] for x in (path.before, path.after, path.times))
    stops = times[(before[:, 0] == 1) & (after[:, 0] != 1)]
    if len(stops) < 2 or stops[-1] < 0.9 * end:
        return 0.0, np.zeros(0), np.zeros(0)
    ts = jnp.append(0.0, jnp.linspace(stops[-2], stops[-1], count))
    ys = np.asarray(run(machine, y, mode, ts).ys)[1:]
    return stops[-1] - stops[-2], ys.min(axis=0), ys.max(axis=0)
