"""How do friction with stiction and bristles of several stiffnesses differ in result and cost?

A block of 1 kg has Stribeck friction (F_Coulomb = 1 N, F_prop = 0.2 N.s/m, F_Stribeck = 0.4 N, fexp
= 5 s/m). Under 2 sin(2 pi t) N it changes 39 times between stuck and sliding in 10 s. Three models
are simulated: stiction with located events, a LuGre bristle, and a Maxwell-slip bristle of four
equally stiff elements. For LuGre, sigma_1 = sqrt(sigma_0 * 1 kg). The stiffness sigma_0 is 1e3 to
1e8 N/m (Maxwell-slip: to 1e7 N/m). The table lists the final position, its derivative with respect
to F_Coulomb, time steps of `Adaptive` and processor time. It also lists how far a load of 1 N (0.4
N below breakaway) moves the block from rest.

Run: python experiments/05_events_against_bristles.py
(some minutes; prints the table and draws 05_events_against_bristles.svg)
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import frictax as fx

END = 10.0  # [s] duration of the driven run
LOAD = 1.0  # [N] constant load below breakaway
STIFF = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8)  # [N/m] values of sigma_0
ENGINE = fx.Adaptive(rtol=1e-8, atol=1e-12, max_events=4000)
COLOURS = {"LuGre": "#2f6db3", "MaxwellSlip": "#d98032"}


@dataclasses.dataclass(frozen=True)
class Row:
    """Results of one friction model. `sigma_0` is None for friction with stiction."""

    name: str
    sigma_0: float | None
    end: float  # position after 10 s [m]
    slope: float  # derivative of `end` with respect to F_Coulomb [m/N]
    held: float  # displacement from rest under `LOAD` [m]
    steps: int  # number of time steps in the driven run
    seconds: float  # processor time of one compiled simulation


def bristle(name: str, sigma_0: float) -> Any:
    if name == "MaxwellSlip":
        return fx.MaxwellSlip(k=[sigma_0 / 4] * 4, share=[0.1, 0.2, 0.3, 0.4])
    return fx.LuGre(sigma_0=sigma_0, sigma_1=sigma_0**0.5)


def block(F_Coulomb: Any, kind: Any, drive: Any) -> fx.Mechanism:
    law = fx.Stribeck(F_Coulomb=F_Coulomb, F_prop=0.2, F_Stribeck=0.4, fexp=5.0)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, bristle=kind),
        drive=fx.Force("mass", drive),
    )


def row(name: str, sigma_0: float | None) -> Row:
    kind = None if sigma_0 is None else bristle(name, sigma_0)
    drive = fx.Sine(amplitude=2.0, f=1.0)

    @jax.jit
    def end(F_Coulomb: Any) -> Any:
        run = fx.simulate(block(F_Coulomb, kind, drive), jnp.array([0.0, END]), ENGINE)
        return run["mass"].s[-1], run.steps

    slope = jax.jit(jax.jacfwd(lambda F: end(F)[0]))(1.0)
    position, steps = end(1.0)
    began = time.process_time()
    for k in range(3):
        jax.block_until_ready(end(1.0 + 1e-9 * k))
    seconds = (time.process_time() - began) / 3
    rises = fx.Ramp(height=LOAD, duration=1.0)
    held = fx.simulate(block(1.0, kind, rises), jnp.array([0.0, 1.5]), ENGINE)["mass"].s[-1]
    return Row(name, sigma_0, float(position), float(slope), float(held), int(steps), seconds)


def draw(exact: Row, rows: Sequence[Row], path: Path) -> None:
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, colour in COLOURS.items():
        mine = [r for r in rows if r.name == name]
        sigma_0 = [r.sigma_0 for r in mine]
        off = [abs(r.end - exact.end) for r in mine]
        left.loglog(sigma_0, off, "o-", color=colour, label=f"{name}: end of the run")
        left.loglog(
            sigma_0, [r.held for r in mine], "s:", color=colour, label=f"{name}: held at {LOAD:g} N"
        )
        right.loglog(sigma_0, [r.steps for r in mine], "o-", color=colour, label=name)
    right.axhline(exact.steps, color="#555", lw=1, label="sticks")
    left.set(xlabel="sigma_0 [N/m]", ylabel="away from friction that sticks [m]")
    right.set(xlabel="sigma_0 [N/m]", ylabel="steps of Adaptive in 10 s")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> tuple[Row, list[Row]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--stiffness", type=float, nargs="+", default=list(STIFF), help="[N/m]")
    parser.add_argument("--figure", type=Path, default=Path(__file__).with_suffix(".svg"))
    given = parser.parse_args(arguments)
    exact = row("sticks", None)
    # Stuck Maxwell-slip springs oscillate without damping, and each period takes ten time steps.
    most = {"LuGre": np.inf, "MaxwellSlip": 1e7}
    rows = [
        row(name, sigma_0)
        for name in COLOURS
        for sigma_0 in given.stiffness
        if sigma_0 <= most[name]
    ]
    print("friction     sigma_0 [N/m]  end - that [um]  slope [mm/N]  held [um]   steps   ms")
    for r in (exact, *rows):
        at = "" if r.sigma_0 is None else f"{r.sigma_0:.0e}"
        print(
            f"{r.name:12s} {at:>13}  {1e6 * (r.end - exact.end):15.2f}  {1e3 * r.slope:12.3f}"
            f"  {1e6 * r.held:9.3f}  {r.steps:6d}  {1e3 * r.seconds:5.2f}"
        )
    draw(exact, rows, given.figure)
    return exact, rows


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    fx.fast_loops()
    main()
