"""Draws the picture of the README: a pulled block that sticks and slips.

Run: python docs/pictures/stick_slip.py
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import frictax as fx

COLOURS = {-1: "#d98032", 0: "#b8bcc2", 1: "#2f6db3"}
NAMES = {-1: "backward", 0: "stuck", 1: "forward"}


def motion() -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Return times [s], the drawn quantities at these times, and times of the mode changes [s]."""
    drive = fx.Sine(amplitude=18.0, f=0.25)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0, s=0.0, v=0.0),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Stribeck(F_prop=2.0, F_Coulomb=7.0, F_Stribeck=4.0, fexp=3.0), peak=1.1
        ),
        drive=fx.Force("mass", drive),
    )
    ts = jnp.linspace(0.0, 8.0, 1601)
    run = fx.simulate(block, ts=ts)
    friction = run["friction"]
    drawn = {
        "drive": 18.0 * jnp.sin(2 * jnp.pi * 0.25 * ts),
        "f": friction.f,
        "f0_max": friction.f0_max,
        "v": run["mass"].v,
        "mode": friction.mode,
    }
    return (
        np.asarray(ts),
        {name: np.asarray(values) for name, values in drawn.items()},
        np.asarray(run.events.time),
    )


def draw(ts: np.ndarray, drawn: dict[str, np.ndarray], events: np.ndarray) -> plt.Figure:
    """Forces, speed and the strip of modes, one below the other."""
    figure, (force, speed, strip) = plt.subplots(
        3,
        1,
        sharex=True,
        figsize=(8.0, 4.6),
        height_ratios=[5, 4, 0.6],
        layout="constrained",
        facecolor="white",
    )
    force.plot(ts, drawn["drive"], color="#333333", lw=1.2, label="drive")
    force.plot(ts, drawn["f"], color="#c0392b", lw=1.8, label="friction")
    for sign in (1, -1):
        force.plot(
            ts,
            sign * drawn["f0_max"],
            color="#c0392b",
            lw=0.8,
            ls=":",
            label="breakaway" if sign == 1 else None,
        )
    force.set_ylabel("force [N]")
    force.legend(loc="upper right", ncols=3, frameon=False, fontsize=9)
    force.set_ylim(-21, 27)
    speed.plot(ts, drawn["v"], color="#2f6db3", lw=1.8)
    speed.set_ylabel("speed [m/s]")
    edges = np.concatenate([[ts[0]], events[np.isfinite(events) & (events < ts[-1])], [ts[-1]]])
    for begin, end in zip(edges[:-1], edges[1:], strict=True):
        mode = int(drawn["mode"][np.searchsorted(ts, 0.5 * (begin + end)) - 1])
        strip.axvspan(begin, end, color=COLOURS[mode], lw=0)
        if end - begin > 0.3:
            strip.text(
                0.5 * (begin + end),
                0.45,
                NAMES[mode],
                ha="center",
                va="center",
                fontsize=8,
                color="black" if mode == 0 else "white",
            )
    for axes in (force, speed):
        for time in edges[1:-1]:
            axes.axvline(time, color="#999999", lw=0.6, zorder=0)
        axes.axhline(0.0, color="#999999", lw=0.6, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    strip.set_yticks([])
    strip.set_xlim(ts[0], ts[-1])
    strip.set_xlabel("time [s]")
    strip.spines[:].set_visible(False)
    return figure


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    matplotlib.rcParams["svg.hashsalt"] = "frictax"  # the same picture gives the same file
    path = Path(__file__).with_suffix(".svg")
    draw(*motion()).savefig(path, metadata={"Date": None})
    print(path)
