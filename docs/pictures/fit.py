"""Draws the fit in the README: the friction of a lead-screw drive with its 95 % band.

Run: python docs/pictures/fit.py
"""

from pathlib import Path

import jax
import matplotlib

import frictax as fx

ROOT = Path(__file__).resolve().parents[2]


def fit_drive() -> fx.FitResult:
    """Fit a Stribeck law to the measured sweep of drive 1, forward."""
    sweep = fx.Sweep.from_csv(
        ROOT / "data" / "screw_drives" / "sweep.csv",
        velocity="omega",
        force="torque",
        where={"drive": 1},
        direction="positive",
    )
    law = fx.Stribeck(F_prop=1e-4, F_Coulomb=2e-3, F_Stribeck=5e-4, fexp=0.2, exponent=2.0)
    return fx.fit(law, sweep)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    matplotlib.rcParams["svg.hashsalt"] = "frictax"  # the same picture gives the same file
    path = Path(__file__).with_suffix(".svg")
    fit_drive().plot().figure.savefig(path, metadata={"Date": None}, facecolor="white")
    print(path)
