"""What are the mass and the friction of a ball-screw axis, and how accurate is a free run of its
model?

Run from anywhere:  frictax data fetch emps    downloads the records from a public copy (1.3 MB)
                    python identification/emps/identify.py
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from free_runs import free_run, rms, sensitivities, spread

import frictax as fx

jax.config.update("jax_enable_x64", True)
HERE = Path(__file__).resolve().parent

# -- the records
# --------------------------------------------------------------------------------------------------

CITATION = (
    "A. Janot, M. Gautier, M. Brunot, Data set and reference models of EMPS, Nonlinear System"
    " Identification Benchmarks, 2019"
)
FILES = {"identification": "DATA_EMPS.mat", "validation": "DATA_EMPS_PULSES.mat"}


def folder() -> Path:
    """Return the folder of the records."""
    try:
        return fx.data.path("emps")
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(str(error)) from None


def read(label: str, where: Path, hold: bool = False) -> fx.Record:
    """Read record `label`: force on the load [N] from the voltage `vir`, position of the load [m].

    The validation record's `vir` already contains its 5 V pulses.
    """
    force = fx.Column("vir", unit="V", gain=35.15065, to="N")
    names: dict[str, Any] = {
        "inputs": {"drive": force},
        "outputs": {"mass.s": fx.Column("qm", unit="m")},
    }
    return fx.Record.from_mat(
        where / FILES[label], time="t", **names, hold=hold, name=label, citation=CITATION
    )


def read_reference(label: str, where: Path) -> fx.Record:
    """Read the record with the reference of the controller [m] as input instead of the force."""
    names: dict[str, Any] = {
        "inputs": {"drive": fx.Column("qg", unit="m")},
        "outputs": {"mass.s": fx.Column("qm", unit="m")},
    }
    return fx.Record.from_mat(
        where / FILES[label], time="t", **names, name=label, citation=CITATION
    )


# -- the model
# --------------------------------------------------------------------------------------------------

KP, KV, GTAU = 160.18, 243.45, 35.15065  # [1/s, V.s/m, N/V] gains of the controller
# [kg] The speed in the controller is late by 1 ms. So the estimated mass is too small by `LATE`.
LATE = GTAU * KV * 1e-3
DIRECTIONS = ["mass.m", "friction.f_pos", "friction.f_neg"]
OFFSET, DRIFT = "inputs.drive.offset", "inputs.drive.drift"
PUBLISHED = {
    "mass.m": 95.1089,
    "friction.f_pos.F_prop": 203.5034,
    "friction.f_pos.F_Coulomb": 20.3935,
    OFFSET: 3.1648,
}
PUBLISHED_DIRECTIONS = {
    "mass.m": 95.1540,
    "friction.f_pos.F_prop": 166.7061,
    "friction.f_pos.F_Coulomb": 20.1440,
    "friction.f_neg.F_prop": 240.4236,
    "friction.f_neg.F_Coulomb": 20.6277,
}


def axis(directions: bool = True) -> fx.Mechanism:
    """Return the machine: the load, its friction and the force on it.

    Start values are round numbers. `peak` is 1, because the record hardly contains standstill.
    """
    laws = {"f_pos": fx.Coulomb(F_Coulomb=20.0, F_prop=200.0)}
    if directions:
        laws["f_neg"] = fx.Coulomb(F_Coulomb=20.0, F_prop=200.0)
    return fx.Mechanism(
        mass=fx.Mass(m=100.0),
        friction=fx.SupportFriction("mass", **laws, peak=1.0),
        guide=fx.LinearPositionDependentForce("mass"),  # no force unless it is fitted
        drive=fx.Force("mass", 0.0),
    )


# -- the fits
# --------------------------------------------------------------------------------------------------


def inverse_dynamics(record: fx.Record, cutoff: float = 70.0) -> fx.FoundMachine:
    """Fit the published symmetric model with an offset to all samples.

    The offset is an offset of the force. Its sign is opposite to that of the published offset.
    """
    return fx.fit(
        axis(directions=False),
        record,
        free=["mass.m", "friction.f_pos", OFFSET],
        objective=fx.InverseDynamics(cutoff, v_min=0.0, at_samples=True),
    )


def on_windows(
    record: fx.Record, more: tuple[str, ...] = (), length: float = 0.5
) -> fx.FoundMachine:
    """Fit on windows that start at the smoothed measurement. Inverse dynamics finds the start
    values of the parameters.
    """
    return fx.fit(
        axis(),
        record,
        free=[*DIRECTIONS, *more],
        objective=fx.Windows(length, cutoff=50.0),
        start=fx.InverseDynamics(50.0),
    )


def in_closed_loop(reference: fx.Record) -> fx.FoundMachine:
    """Fit in the closed loop with the known controller.

    Add `LATE` to the estimated mass, because the controller of the model has no delay.
    """
    controller = fx.PositionController("mass", s_ref=0.0, kp=KP, kv=KV, k=GTAU)
    return fx.fit(
        axis(), reference, free=DIRECTIONS, objective=fx.ClosedLoop({"drive": controller})
    )


def on_the_free_run(record: fx.Record, drift: bool = True) -> fx.FoundMachine:
    """Fit five physical parameters, and a force that drifts linearly over this record."""
    free = [*DIRECTIONS, DRIFT] if drift else DIRECTIONS
    return fx.fit(
        axis(),
        record,
        free=free,
        objective=fx.FreeRun(measured_start=True),
        start=fx.InverseDynamics(50.0),
    )


def jointly(
    records: list[fx.Record], start: fx.FoundMachine, own_offset: bool = True
) -> fx.FoundMachine:
    """Fit one axis to all records, with one drift of the force and an offset for each record.

    Offsets and two Coulomb frictions are redundant, so the backward Coulomb friction stays at its
    start value. `own_offset=False` omits the offsets and fits this friction.
    """
    fixed = "friction.f_neg.F_prop" if own_offset else "friction.f_neg"
    return fx.fit(
        start.model,
        records,
        free=["mass.m", "friction.f_pos", fixed, DRIFT],
        own=[OFFSET] if own_offset else [],
        objective=fx.FreeRun(measured_start=True),
        instruments={"inputs.drive": fx.Instrument(drift=start.values[DRIFT])},
    )


def redundant(record: fx.Record) -> fx.FoundMachine:
    """Fit an offset and two Coulomb frictions, which one record cannot separate. The result must
    have a notice of this.
    """
    return fx.fit(
        axis(),
        record,
        free=[*DIRECTIONS, OFFSET],
        objective=fx.InverseDynamics(70.0, at_samples=True),
    )


# -- the answer
# --------------------------------------------------------------------------------------------------


def main() -> None:
    where = folder()
    first, second = read("identification", where), read("validation", where)
    reference, held = (
        read_reference("identification", where),
        read("identification", where, hold=True),
    )
    print(first, "\n")

    times: list[tuple[str, float, float, float, int]] = []

    def timed(name: str, run: Callable[[], fx.FoundMachine]) -> fx.FoundMachine:
        began = time.perf_counter()
        run()
        cold, began = time.perf_counter() - began, time.perf_counter()
        found = run()
        times.append(
            (
                name,
                cold,
                time.perf_counter() - began,
                found.identifiability.condition,
                found.iterations,
            )
        )
        print(f"\n== {name}\n{found}")
        return found

    inverse = timed("inverse dynamics, symmetric", lambda: inverse_dynamics(first))
    print(
        "deviation from the published: "
        + ", ".join(f"{n} {100 * (inverse.values[n] / x - 1):+.2f} %" for n, x in PUBLISHED.items())
    )
    timed("two Coulomb frictions and an offset", lambda: redundant(first))
    default = timed("windows of 0.5 s", lambda: on_windows(first))
    sloped = timed(
        "windows of 0.5 s, linear in position", lambda: on_windows(first, ("guide.slope",))
    )
    drifting = timed("windows of 0.5 s, drift", lambda: on_windows(first, (DRIFT,)))
    loop = timed("closed loop", lambda: in_closed_loop(reference))
    five = timed("free run", lambda: on_the_free_run(first, drift=False))
    six = timed("free run, drift", lambda: on_the_free_run(first))
    both_six = timed(
        "both records, one drift", lambda: jointly([first, second], six, own_offset=False)
    )
    both = timed("both records, one drift, own level", lambda: jointly([first, second], six))

    published = fx.parameters.replace(axis(), PUBLISHED_DIRECTIONS)
    true_mass = fx.parameters.replace(loop.model, {"mass.m": loop.values["mass.m"] + LATE})
    ramp = first.t - first.t[0]
    print(
        "\n== free runs from the measured start: rms [mm] of the identification and of the"
        " validation record, which decided nothing"
    )
    for name, machine, more in (
        ("published, by direction", published, 0.0),
        ("closed loop", true_mass, 0.0),
        ("windows of 0.5 s", default.model, 0.0),
        ("windows of 0.5 s, linear in position", sloped.model, 0.0),
        ("windows of 0.5 s, drift", drifting.model, drifting.values[DRIFT] * ramp),
        ("free run", five.model, 0.0),
        ("free run, drift", six.model, six.values[DRIFT] * ramp),
    ):
        # A drift belongs to one record. For the other record, use the mean force of this drift.
        print(
            f"{name:50}{rms(free_run(machine, first, more)):8.3f}"
            f"{rms(free_run(machine, second, np.mean(more))):8.3f}"
        )

    print(
        "\n== the same for the input held until the next sample, and for other starts,"
        " identification record"
    )
    for name, run in (
        ("windows of 0.5 s", on_windows),
        ("free run", partial(on_the_free_run, drift=False)),
        ("free run, drift", on_the_free_run),
    ):
        found = run(held)
        print(
            f"{name + ', input held':50}"
            f"{rms(free_run(found.model, held, found.values.get(DRIFT, 0.0) * ramp)):8.3f}"
        )
    for name, states in (("speed", ["mass.v"]), ("position and speed", ["mass.s", "mass.v"])):
        found = fx.fit(default.model, first, free=[*DIRECTIONS, *states], objective=fx.FreeRun())
        print(
            f"{f'free run, {name} at the start fitted':50}"
            f"{1e3 * found.rms['identification']['mass.s']:8.3f}"
        )
    finer = free_run(default.model, first, engine=fx.OnSamples(substeps=4)) - free_run(
        default.model, first
    )
    print(f"four steps a sample in place of one move the free run by {rms(finer):.2g} mm")

    print("\n== free runs of both records, fitted to both: rms [mm]")
    for name, found in (("one drift", both_six), ("one drift, a level for each", both)):
        print(f"{name:50}" + "".join(f"{1e3 * found.rms[label]['mass.s']:8.3f}" for label in FILES))

    repeats, (force, friction) = (
        spread(default, first, second),
        sensitivities(default.model, second),
    )
    print("\n== validation record, never fitted: windows of 0.5 s")
    print(
        f"free run {1e3 * default.score(second, fx.FreeRun(measured_start=True))['mass.s']:.2f} mm"
    )
    print(f"0.1 N of force moves it by {force:.2f} mm, 1 % of friction by {friction:.2f} mm")
    print(
        "parameters that differ as the four cycles do: {:.1f} / {:.1f} / {:.1f} mm at 10 / 50 /"
        " 90 %".format(*repeats.range)
    )
    print(
        "predicted over 1 s from the measured state:"
        f" {1e3 * default.score(second, fx.Windows(1.0))['mass.s']:.3f} mm"
    )
    for name, of_quarters, error in zip(
        repeats.names, repeats.values.T, repeats.error_of_mean, strict=True
    ):
        stated, white = (
            default.standard_errors[name],
            default.uncertainty(fx.White()).standard_errors[name],
        )
        print(
            f"{name:26}quarters {np.round(of_quarters, 2)}, error of their mean {error:.2g},"
            f" printed {stated:.2g}, white {white:.2g}"
        )

    print(
        "\n== time of a fit\n" + f"{'':38}{'cold s':>8}{'warm s':>8}{'condition':>11}{'steps':>7}"
    )
    for name, cold, warm, condition, steps in times:
        print(f"{name:38}{cold:8.2f}{warm:8.2f}{condition:11.3g}{steps:7d}")

    from draw import draw

    draw(
        HERE,
        first,
        second,
        {"windows": default, "closed loop": loop, "free run, drift": six},
        repeats,
    )


if __name__ == "__main__":
    main()
