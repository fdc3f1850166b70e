"""Whole machines in Modelica: a compiler of its own runs the text, and it moves as frictax says."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import machines
from exported_machines import sliding, turning
from frictax.export.modelica_machine import machine_text, write_machine
from frictax.export.modelica_parts import LIBRARY, elements, with_dependencies
from frictax.export.modelica_text import identifier, law_table
from frictax.parameters import parameters
from modelica_compiler import compiled, rumoca

STATES = ("s", "v", "phi", "w", "T")
BODIES = (fx.Mass, fx.Inertia, fx.MassWithStopAndFriction, fx.HeatCapacitor)


def others() -> fx.Mechanism:
    """What the two above do not hold, among it names that Modelica does not take."""
    return fx.Mechanism(
        block=fx.Mass(m=1.0),
        belt=fx.Mass(m=1.0, L=0.4),
        model=fx.Position("belt", fx.Sine(amplitude=2.0, f=0.11)),
        grip=fx.SupportFriction("block", f_pos=fx.Coulomb(F_Coulomb=1.0), support="belt"),
        stop=fx.MassWithStopAndFriction(
            m=1.0,
            smin=-1,
            smax=1,
            F_prop=1.0,
            F_Coulomb=0.6,
            F_Stribeck=0.5,
            fexp=2.0,
            f_neg=fx.Coulomb(F_Coulomb=0.7),
        ),
        bumper=fx.ElastoGap("block", "stop", c=300.0, d=2.0, s_rel0=-0.1, n=1.5),
        damper=fx.Damper("block", "stop", d=0.7),
        sun=fx.Inertia(J=1.0),
        carrier=fx.Inertia(J=1.0),
        ring=fx.Inertia(J=1.0),
        planetary=fx.IdealPlanetary(sun="sun", carrier="carrier", ring="ring", ratio=2.0),
        hub=fx.OneWayClutch(
            "sun",
            "ring",
            fn_max=2.0,
            f_normalized=fx.Pulse(amplitude=1.0, width=50.0, period=1.3, nperiod=3),
        ),
        band=fx.Brake(
            "ring",
            mu_neg=[[0, 0.2]],
            fn_max=3.0,
            f_normalized=fx.Trapezoid(rising=0.1, width=0.2, falling=0.1),
        ),
        play=fx.ElastoBacklash("carrier", "frame", c=1e3, d=1.0, backlash=0.02),
        frame=fx.Fixed(s0=0.25),
        twist=fx.RotationalDamper("sun", "frame", d=0.1),
        coil=fx.RotationalSpring("ring", "frame", c=2.0, phi_rel0=0.3),
        pull=fx.Spring("block", "frame", c=2.0),
    )


def bristled() -> fx.Mechanism:
    """A stage on a table that slides, each with a bristle, one with a law for each direction; a
    rotor on an elasto-plastic one, bent at the start.
    """
    return fx.Mechanism(
        table=fx.Mass(m=2.0),
        stage=fx.Mass(m=0.5, v=0.2),
        drive=fx.Force("table", fx.Sine(amplitude=4.0, f=1.5)),
        spring=fx.SpringDamper("table", "stage", c=80.0, d=0.3),
        guide=fx.SupportFriction(
            "table",
            f_pos=fx.Stribeck(F_prop=0.3, F_Coulomb=1.0, F_Stribeck=0.4, fexp=20.0, exponent=2.0),
            bristle=fx.LuGre(sigma_0=3e3, sigma_1=40.0),
            f_neg=fx.Coulomb(F_Coulomb=1.3, F_prop=0.1),
        ),
        between=fx.SupportFriction(
            "stage", f_pos=[[0, 0.4], [0.3, 0.5]], bristle=fx.Dahl(sigma_0=2e3), support="table"
        ),
        rotor=fx.Inertia(J=0.02),
        torque=fx.Torque("rotor", fx.Sine(amplitude=0.5, f=2.0)),
        bearing=fx.BearingFriction(
            "rotor",
            tau_pos=fx.Coulomb(F_Coulomb=0.3, F_prop=0.02),
            bristle=fx.ElastoPlastic(sigma_0=50.0, sigma_1=0.5, z_ba=0.6, z=-2e-3),
        ),
        disc=fx.HeatCapacitor(("guide", "bearing"), C=3.0, T=300.0),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "stop_time", "kinds"), [(sliding, 1.5, 6), (turning, 1.2, 2), (bristled, 1.0, 0)]
)
def test_a_compiler_runs_the_self_contained_text_and_it_moves_as_simulated(
    build: Any, stop_time: float, kinds: int
) -> None:
    machine = build()
    model = compiled(
        machine_text(machine, self_contained=True, stop_time=stop_time, tolerance=1e-7)
    )
    run = model.simulate(
        t=(0.0, stop_time), dt=stop_time / 60, config=rumoca.SimConfig(rtol=1e-9, atol=1e-10)
    )
    t = np.asarray(run.time)
    last = np.append(np.diff(t) > 0, True)  # of the several rows at an event
    moved = fx.simulate(machine, jnp.asarray(t[last]), machines.REFERENCE)
    assert int(moved.events.count) >= kinds
    near_event = (
        np.min(
            np.abs(
                t[last][:, None] - np.asarray(moved.events.time)[None, : int(moved.events.count)]
            ),
            axis=1,
            initial=np.inf,
        )
        < 1e-5
    )
    for name, part in machine.named_parts():
        for state in STATES:
            if isinstance(part, BODIES) and hasattr(part, state):
                there, here = (
                    np.asarray(run[f"{name}.{state}"])[last],
                    np.asarray(getattr(moved[name], state)),
                )
                # At an event a velocity may jump: which side of it a row shows is a matter of the
                # last digit of its time.
                np.testing.assert_allclose(
                    there[~near_event], here[~near_event], atol=2e-5 * (1 + np.max(np.abs(here)))
                )


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    "build",
    [
        sliding,
        turning,
        others,
        bristled,
        machines.coupled_clutches,
        machines.translational_friction,
    ],
)
def test_every_parameter_shows_with_its_value_and_the_text_is_of_the_language(
    build: Any, own: bool
) -> None:
    machine = build()
    text = machine_text(machine, self_contained=own)
    rumoca.format(text)  # raises where the grammar is not Modelica's
    shown = {float(x) for x in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text)}
    for p in parameters(machine):
        if p.path.endswith("T_ambient") and machine[p.path.split(".")[0]].b is not None:
            continue
        assert {float(x) for x in np.ravel(p.value)} <= shown, p.path


@pytest.mark.parametrize("build", [sliding, turning, others, bristled])
def test_every_connection_joins_what_is_declared(build: Any) -> None:
    text = machine_text(build())
    declared = set(re.findall(r"^  [\w.]+ (\w+)(?:\(|;)", text, re.MULTILINE))
    for a, b in re.findall(r"connect\((\S+), (\S+)\);", text):
        assert {a.split(".")[0], b.split(".")[0]} <= declared


def test_a_compiler_takes_every_element() -> None:
    for name, text in elements().items():
        rumoca.format("model Machine\n" + text + "\nend Machine;")
        if text.startswith("  model"):
            whole = "\n".join(["package P", *with_dependencies({name}, True), "end P;"])
            assert not [d for d in rumoca.validate_source(whole) if d.level == "error"], name


def test_the_library_is_taken_wherever_it_has_the_element() -> None:
    text = machine_text(turning())
    assert re.findall(r"^  model (\w+)", text, re.MULTILINE) == [
        "RotationalPeriodicPositionDependentForce"
    ]
    assert re.search(r"Sources\.QuadraticSpeedDependentTorque fan\(.*TorqueDirection=false", text)
    text = machine_text(sliding())
    assert set(re.findall(r"^  model (\w+)", text, re.MULTILINE)) == {
        "SupportFriction", "PositionController", "LinearPositionDependentForce",
        "PeriodicPositionDependentForce",
    }  # fmt: skip
    assert "connector Flange = Modelica.Mechanics.Translational.Interfaces.Flange_a;" in text
    assert all(path.startswith("Modelica.") for path in LIBRARY.values())


def test_names_that_modelica_does_not_take_are_changed() -> None:
    text = machine_text(others())
    assert re.search(r"Components\.Mass block_\(m=1\.0", text)
    assert "Sources.Position model_(exact=true)" in text
    assert identifier("Sampled", elements()) == "Sampled_"


def test_a_gear_lets_the_last_body_follow_without_a_start_of_its_own() -> None:
    text = machine_text(turning())
    assert "load(J=0.4, phi(start=0.0), w(start=0.0))" in text
    assert "wheel(J=0.6, phi(start=0.0, fixed=true)" in text


@pytest.mark.parametrize("exponent", [0.7, 1.0, 2.0])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_a_table_keeps_to_its_law_at_all_speeds_within_what_is_said(
    exponent: float, tolerance: float
) -> None:
    law = fx.Stribeck(F_prop=0.3, F_Coulomb=2.0, F_Stribeck=1.0, fexp=4.0, exponent=exponent)
    rows, said = law_table(law, "friction.f_pos", tolerance, None, "N")
    v = np.geomspace(1e-6, 1e3, 5000)
    beyond = rows[-1, 1] + (v - rows[-1, 0]) * (rows[-1, 1] - rows[-2, 1]) / (
        rows[-1, 0] - rows[-2, 0]
    )
    there = np.where(v > rows[-1, 0], beyond, np.interp(v, rows[:, 0], rows[:, 1]))
    error = float(said.split("within ")[1].split()[0])
    assert np.max(np.abs(there - np.asarray(law(jnp.asarray(v))))) <= 1.1 * error + 1e-9
    assert error <= 1.01 * tolerance * 3.0


def test_a_long_measured_drive_goes_into_a_file_beside_the_model(tmp_path: Any) -> None:
    t = np.linspace(0.0, 1.0, 301)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0), drive=fx.Force("mass", fx.Sampled(t, np.sin(t), hold=True))
    )
    model, table = write_machine(block, tmp_path, "Block")
    text = model.read_text()
    assert 'parameter String tables = "Block_tables.txt"' in text
    assert "fileName=tables" in text
    assert "Smoothness.ConstantSegments" in text
    first, head, *rows = table.read_text().splitlines()
    assert (first, head) == ("#1", "double drive_f(301,2)")
    np.testing.assert_array_equal(
        [[float(x) for x in row.split()] for row in rows], np.column_stack([t, np.sin(t)])
    )
    model.write_text("mine")
    with pytest.raises(FileExistsError, match=r"Block\.mo exists\. Give overwrite=True"):
        write_machine(block, tmp_path, "Block", rows=301)
    assert model.read_text() == "mine"
    assert len(write_machine(block, tmp_path, "Block", overwrite=True, rows=301)) == 1
    assert model.read_text() != "mine"


def test_the_files_of_a_model_called_like_a_part_bear_the_models_name(tmp_path: Any) -> None:
    t = np.linspace(0.0, 1.0, 301)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0), drive=fx.Force("mass", fx.Sampled(t, np.sin(t), hold=True))
    )
    model, table = write_machine(block, tmp_path, "mass")
    text = model.read_text()
    assert f"model {model.stem}\n" in text
    assert f'parameter String tables = "{table.name}"' in text


def refusals() -> dict[str, tuple[Any, dict[str, Any]]]:
    mass = fx.Mass(m=1.0)
    grease = fx.TemperatureDependent(fx.Coulomb(F_Coulomb=1.0), beta=0.02)
    motion = fx.MotionDependent(lambda t, s, v: 1 + s)
    return {
        "Function": (fx.Mechanism(mass=mass, drive=fx.Force("mass", lambda t: t)), {}),
        "MotionDependent": (
            fx.Mechanism(mass=mass, rail=fx.Brake("mass", f_normalized=motion)),
            {},
        ),
        "depends on the temperature": (
            fx.Mechanism(
                mass=mass,
                guide=fx.SupportFriction("mass", f_pos=grease),
                disc=fx.HeatCapacitor("guide", C=1.0),
            ),
            {},
        ),
        "v_max": (
            fx.Mechanism(mass=mass, guide=fx.SupportFriction("mass", f_pos=Root(jnp.asarray(2.0)))),
            {},
        ),
        "LossyGear": (machines.lossy_gear(), {"self_contained": True}),
    }


class Root(fx.AbstractLaw):
    """A law of the user's own."""

    f: Any

    def __call__(self, v: Any) -> Any:
        return self.f * jnp.sqrt(1 + v)


@pytest.mark.parametrize(
    "what", ["Function", "MotionDependent", "depends on the temperature", "v_max", "LossyGear"]
)
def test_what_modelica_cannot_read_is_refused_in_one_sentence(what: str) -> None:
    machine, options = refusals()[what]
    with pytest.raises(ValueError, match=what) as refused:
        machine_text(machine, **options)
    assert "\n" not in str(refused.value)


def test_a_law_of_the_users_own_becomes_a_table_up_to_the_speed_asked_for() -> None:
    text = machine_text(
        fx.Mechanism(
            mass=fx.Mass(m=1.0), guide=fx.SupportFriction("mass", f_pos=Root(jnp.asarray(2.0)))
        ),
        v_max=3.0,
    )
    assert "table within" in text
    assert "up to a speed of 3.0" in text


def test_lossy_gears_are_the_librarys() -> None:
    assert (
        "Components.LossyGear gear(ratio=2.0, lossTable=[0.0, 0.5, 0.5, 0.0, 0.0]);"
        in machine_text(machines.lossy_gear())
    )


@pytest.mark.parametrize(
    "end", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "*/\n", "\n\n"]
)
def test_a_comment_stays_a_comment(end: str) -> None:
    block = fx.Mechanism(mass=fx.Mass(m=2.0))
    plain = machine_text(block)
    for comment in (f"first{end}end Machine; model X", [f"first{end}end Machine; model X"]):
        lines = machine_text(block, comment=comment).splitlines()
        assert [line for line in lines if not line.startswith("  //")] == plain.splitlines()


@pytest.mark.parametrize("name", ["1a", "", "model", "end", "Real", "2"])
def test_a_name_that_modelica_does_not_take_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be an identifier of Modelica, got"):
        machine_text(fx.Mechanism(mass=fx.Mass(m=2.0)), name)
