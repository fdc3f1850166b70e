"""Machines that differ in the names of their parts alone share their programs."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import frictax.programs.executables as programs
from frictax.mechanism.forces import AbstractSource
from frictax.mechanism.layout import PARTS, layout
from frictax.mechanism.mechanism import names_of_others, structure_only
from machines import stop2

TS = np.linspace(0.0, 1.0, 31)


def train(motor: str, gear: str, rotor: str, seat: str, heat: str, more: str) -> fx.Mechanism:
    """A motor that turns a rotor by a gear, with friction that heats what holds it."""
    law = fx.Coulomb(F_Coulomb=0.3, F_prop=0.1)
    return fx.Mechanism(
        **{
            motor: fx.Inertia(J=0.02, w=3.0),
            rotor: fx.Inertia(J=0.1, w=1.5),
            gear: fx.IdealGear(motor, f"{rotor}.flange_a", ratio=2.0),
            seat: fx.BearingFriction(rotor, tau_pos=law, peak=1.2),
            heat: fx.HeatCapacitor(seat, C=5.0),
            more: fx.Torque(motor, fx.Sine(amplitude=0.8, f=1.5)),
        }
    )


NAMES = ("motor", "gear", "rotor", "bearing", "housing", "torque")
OTHERS = ("z", "part0", "a", "part3", "J", "body")  # in another order of the alphabet


@pytest.mark.slow
@pytest.mark.parametrize("transformed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_machine_of_other_names_compiles_nothing_and_runs_to_the_same_last_bit(
    transformed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(names: tuple[str, ...]) -> list[Any]:
        def end(J: Any) -> Any:
            machine = fx.parameters.replace(train(*names), {f"{names[2]}.J": J})
            run = fx.simulate(machine, TS, fx.OnSamples())
            return run[names[2]].w[-1] + run.events.time[0]

        if transformed:
            J = jnp.array([0.1, 0.12])
            return [jax.jacfwd(end)(J[0]), jax.vmap(end)(J)]
        run = fx.simulate(train(*names), TS, fx.OnSamples(), energy=True)
        assert set(run.names) == set(names)
        assert run.events.names == (names[3],)
        assert run.system.states()[-1] == f"{names[4]}.T"
        assert int(run.events.count) > 1
        return [run.events.time, run.path, run.energy, [run[name] for name in names]]

    first = told(NAMES)
    monkeypatch.setattr(programs, "_lower", lambda *_: pytest.fail("compiled"))
    second = told(OTHERS)
    assert float(jnp.max(jnp.abs(first[0]))) > 1e-3
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert all(map(np.array_equal, jax.tree.leaves(first), jax.tree.leaves(second)))


def test_what_differs_in_more_than_names_is_of_another_structure() -> None:
    def pulled(on: str, first: str = "one", **friction: Any) -> fx.Mechanism:
        bodies = {name: fx.Mass(m=1.0) for name in (first, "two")}
        law = fx.Coulomb(F_Coulomb=1.0)
        return fx.Mechanism(
            **bodies,
            friction=fx.SupportFriction("two", f_pos=law, **friction),
            drive=fx.Force(on, 2.0),
        )

    machines = [
        pulled("one"),
        pulled("two"),
        pulled("two.flange_a"),
        pulled("two", support="one"),
        pulled("two", support="one.flange_b"),
        fx.Mechanism(**dict(reversed(list(pulled("two").named_parts())))),
    ]
    found = {jax.tree.structure(structure_only(machine)) for machine in machines}
    assert len(found) == len(machines)
    assert jax.tree.structure(structure_only(pulled("other", "other"))) in found


def test_of_a_part_alone_what_names_others_is_text() -> None:
    kinds, seen = [kind for kind in PARTS if isinstance(kind, type)], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if not kind.__module__.startswith("frictax."):
            continue
        static = {f.name: str(f.type) for f in dataclasses.fields(kind) if f.metadata.get("static")}
        text = {name for name, annotation in static.items() if "str" in annotation}
        assert text == set(names_of_others(kind)), kind
        seen |= text
    assert len(seen) > 5


def test_the_layout_is_the_same() -> None:
    for machine in (train(*NAMES), stop2()):
        assert layout(structure_only(machine)) == layout(machine)
        assert structure_only(machine).names == tuple(f"part{i}" for i in range(len(machine.names)))
        assert jax.tree.leaves(structure_only(machine)) == jax.tree.leaves(machine)


class _Magnet(AbstractSource):
    """Pulls by a text of its own."""

    label: str = dataclasses.field(default="mass", metadata={"static": True})


def test_a_machine_with_a_part_of_the_users_own_keeps_its_names() -> None:
    machine = fx.Mechanism(mass=fx.Mass(m=1.0), magnet=_Magnet("mass"))
    assert structure_only(machine) is machine
