"""Which friction, inertia and zero explain the free decays of a servo pendulum, and is friction
that grows with load significant?

Three runs (kp 100, 200, 400 of `lift_and_drop`) are fitted together. The plant is common; each run
has its own angle and speed at the start. Three models are compared: Coulomb and viscous friction, a
Stribeck law, and friction that grows with the load of the joint.

The cost of a decay to standstill has many minima, one for each number of half swings. Therefore the
search has several rounds.

Run: python identification/xl330_pendulum/identify.py [--figure decays.png]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure
from pendulum import LoadedPendulum, Pendulum
from records import COLOURS, decays, published, starts, stick_band

import frictax as fx

fx.fast_loops()  # before jax computes anything


def coulomb(records: Sequence[fx.Record]) -> fx.FoundMachine:
    """Fit Coulomb and viscous friction.

    The torque of gravity is known from mass and length. A decay identifies only its ratio to the
    inertia.
    """
    return fx.fit(
        published(phi_offset=0.03),
        records,
        free=["J", "phi_offset", "friction.f_pos"],
        own=["phi", "w"],
        objective=fx.FreeRun(),
    )


def stribeck(records: Sequence[fx.Record], start: Pendulum) -> fx.FoundMachine:
    """Fit Stribeck friction, from the estimates with Coulomb friction."""
    law = start.friction.f_pos
    law = fx.Stribeck(
        F_prop=law.F_prop, F_Coulomb=0.8 * law.F_Coulomb, F_Stribeck=0.2 * law.F_Coulomb, fexp=1.0
    )
    begun = Pendulum(
        fx.SupportFriction("joint", f_pos=law),
        J=start.J,
        mgl=start.mgl,
        phi_offset=start.phi_offset,
    )
    return fx.fit(
        begun,
        records,
        free=["J", "phi_offset", "friction.f_pos"],
        own=["phi", "w"],
        objective=fx.FreeRun(),
    )


def loaded(records: Sequence[fx.Record], start: Pendulum) -> fx.FoundMachine:
    """Fit Coulomb and viscous friction, plus friction proportional to the load of the joint."""
    each = list(starts().values())
    return fx.fit(
        LoadedPendulum(start, share=0.01),
        records,
        free=["pendulum.J", "pendulum.phi_offset", "pendulum.friction.f_pos", "share"],
        own={"pendulum.phi": [phi for phi, _ in each], "pendulum.w": [w for _, w in each]},
        objective=fx.FreeRun(),
    )


def rms(found: fx.FoundMachine) -> float:
    """Return the rms of the residuals of all runs [rad]."""
    squares = sum(
        found.rms[label]["phi"] ** 2 * record.n for label, record in found.records.items()
    )
    return float(np.sqrt(squares / sum(record.n for record in found.records.values())))


def plant(found: fx.FoundMachine) -> Pendulum:
    """Return the fitted pendulum, with the parameters that all runs have in common."""
    return getattr(found.model, "pendulum", found.model)


def held(found: fx.FoundMachine) -> bool:
    """Return whether every measured final angle is in the stick band of the fitted plant."""
    low, high = stick_band(plant(found))
    return all(low <= record.outputs["phi"][-1] <= high for record in found.records.values())


def aic(found: fx.FoundMachine) -> float:
    """Return Akaike's criterion up to a constant; a smaller value is better. Autocorrelated
    residuals make the differences between models too large.
    """
    n = sum(record.n for record in found.records.values())
    return n * np.log(rms(found) ** 2) + 2 * len(found.estimates)


def draw(found: fx.FoundMachine) -> Figure:
    """Draw each decay, measured and fitted, and the residuals."""
    figure = Figure(figsize=(9.0, 6.6), layout="constrained", facecolor="white")
    grid = figure.subplots(len(found.records), 2, sharex=True, squeeze=False, width_ratios=[2, 1])
    low, high = stick_band(plant(found))
    for (swing, left), (label, record) in zip(grid, found.records.items(), strict=True):
        colour, phi = COLOURS.get(int(label.split()[-1]), "black"), found.predicted(label)[:, 0]
        swing.axhspan(1e3 * low, 1e3 * high, color="#e4e6e9", lw=0, label="stick band")
        swing.plot(
            record.t,
            1e3 * record.outputs["phi"],
            color=colour,
            lw=2.4,
            alpha=0.55,
            label=f"measured, {label}",
        )
        swing.plot(record.t, 1e3 * phi, color="black", lw=0.9, label="fitted plant")
        swing.set_ylabel("angle [mrad]")
        swing.legend(frameon=False, fontsize=8, ncols=3, loc="lower right")
        left.axhline(0.0, color="#999999", lw=0.6)
        left.plot(record.t, 1e3 * (record.outputs["phi"] - phi), color=colour, lw=1.2)
        left.set_title(
            f"measured - fitted [mrad], rms {1e3 * found.rms[label]['phi']:.1f}", fontsize=9
        )
        for axes in (swing, left):
            axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("time since torque off [s]")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Friction, inertia and zero of a servo's pendulum from its free decays."
    )
    parser.add_argument("--figure", type=Path, help="where to draw the Coulomb fit")
    given = parser.parse_args(arguments)
    records = list(decays().values())
    first = coulomb(records)
    fits = {
        "Coulomb and viscous": first,
        "Stribeck": stribeck(records, plant(first)),
        "load-proportional": loaded(records, plant(first)),
    }
    for name, found in fits.items():
        low, high = (1e3 * x for x in stick_band(plant(found)))
        print(
            f"\n{name}: rms {1e3 * rms(found):.2f} mrad, AIC {aic(found) - aic(first):+.0f}, stick"
            f" band {low:.1f} to {high:.1f} mrad,"
        )
        print(
            f"dead stops inside: {'yes' if held(found) else 'no'}; least costs"
            f" {np.sort(found.costs)[:4].round(-2)}\n{found}"
        )
    if given.figure:
        draw(first).savefig(given.figure, dpi=90)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
