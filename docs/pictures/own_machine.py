"""Draws the picture of docs/own_machine.md: a pendulum with dry friction comes to rest.

Run: python docs/pictures/own_machine.py
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure

import frictax as fx

J, MGL, F, PEAK = 0.0067, 0.48, 0.02, 1.3
END = 12.0
COLOURS = ("#2f6db3", "#d98032", "#5aa469")


class Pendulum(fx.AbstractAxis):
    """J*dw/dt = -mgl*sin(phi) - friction."""

    friction: fx.SupportFriction

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return -MGL * jnp.sin(y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")


PENDULUM = Pendulum(fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=F), peak=PEAK))


def motion(phi: Any, ts: Any) -> Any:
    """Return the states at `ts` after release at rest from `phi`."""
    return fx.walk(PENDULUM, *PENDULUM.begin(0.0, jnp.stack([phi, jnp.zeros_like(phi)])), ts).ys


@jax.jit
def dead_stops(phi: Any) -> tuple[Any, Any]:
    """Return the angle at which the pendulum stops after release from each angle `phi`, and its
    derivative by `phi`.
    """
    end = lambda phi: motion(phi, jnp.array([0.0, END]))[-1, 0]  # noqa: E731
    return jax.vmap(lambda p: jax.jvp(end, (p,), (jnp.ones_like(p),)))(phi)


def draw() -> Figure:
    """Draw angle over time, motion in the plane of angle and speed, and final over first angle."""
    half = float(np.arcsin(PEAK * F / MGL))
    figure = Figure(figsize=(9.0, 5.4), layout="constrained", facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1.25, 1])
    swing, stop = left.subplots(2, 1)
    plane = right.subplots()
    ts = jnp.linspace(0.0, 6.0, 1201)
    walk = jax.jit(motion)
    swing.axhspan(-half, half, color="#f0d9c3", lw=0)
    swing.text(5.95, 0.13, "held here", ha="right", fontsize=8, color="#a0622a")
    for phi, colour in zip((1.2, 0.85, 0.5), COLOURS, strict=True):
        ys = np.asarray(walk(jnp.array(phi), ts))
        swing.plot(ts, ys[:, 0], color=colour, lw=1.5)
        plane.plot(ys[:, 0], ys[:, 1], color=colour, lw=1.3)
        for axes, at in ((swing, (6.0, ys[-1, 0])), (plane, ys[-1])):
            axes.plot(*at, "o", color=colour, ms=5, clip_on=False, zorder=5)
    plane.plot([-half, half], [0.0, 0.0], color="#d9a876", lw=6, solid_capstyle="butt", zorder=0)
    swing.set(xlabel="time [s]", ylabel="angle [rad]", xlim=(0.0, 6.0))
    plane.set(xlabel="angle [rad]", ylabel="speed [rad/s]", title="it may stop only in the band")
    starts = jnp.linspace(0.06, 1.2, 400)
    ends, slopes = (np.asarray(x) for x in dead_stops(starts))
    stop.axhspan(-half, half, color="#f0d9c3", lw=0)
    step = np.diff(np.asarray(starts))
    jumps = np.flatnonzero(
        np.abs(np.diff(ends) - 0.5 * (slopes[1:] + slopes[:-1]) * step) > 0.05 * half
    )
    for piece in np.split(np.arange(starts.size), jumps + 1):
        stop.plot(starts[piece], ends[piece], color="black", lw=2.4)
        if piece.size > 20:  # a tangent of the exact derivative
            i = piece[piece.size // 2]
            d = np.array([-0.035, 0.035])
            stop.plot(starts[i] + d, ends[i] + slopes[i] * d, color="#e8604c", lw=1.0)
            stop.plot(starts[i], ends[i], "o", color="#e8604c", ms=3)
    stop.set(xlabel="released at [rad]", ylabel="stops at [rad]", xlim=(0.0, 1.22))
    for axes in (swing, stop, plane):
        axes.spines[["top", "right"]].set_visible(False)
        axes.axhline(0.0, color="#999999", lw=0.6, zorder=0)
    return figure


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    matplotlib.rcParams["svg.hashsalt"] = "frictax"  # the same picture gives the same file
    path = Path(__file__).with_suffix(".svg")
    draw().savefig(path, metadata={"Date": None})
    print(path)
