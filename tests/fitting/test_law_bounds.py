"""What a fit does with numbers on their bounds, and with units of a machine of one's own."""

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.problem.initial_state import begun_at
from frictax.fitting.problem.problem import steady_plan
from frictax.fitting.problem.setup import check_channels
from frictax.fitting.result.units import unit_of
from frictax.parameters import Positive, Scalar, parameter, parameters, replace

T = np.linspace(0.0, 1.0, 41)


def block(law) -> fx.Mechanism:
    """A block and a rotor, each with friction and a drive."""
    return fx.Mechanism(
        mass=fx.Mass(m=2.0),
        f=fx.SupportFriction("mass", f_pos=law),
        d=fx.Force("mass", 0.0),
        rotor=fx.Inertia(J=1.0),
        b=fx.Brake("rotor"),
        tau=fx.Torque("rotor", 0.0),
    )


def record(outputs: dict[str, str], inputs: dict[str, str] | None = None) -> fx.Record:
    """A record whose channels have these units."""
    inputs = {"d": "N"} if inputs is None else inputs
    return fx.Record(
        T,
        {name: np.cos((3 + i) * T) for i, name in enumerate(inputs)},
        {name: np.sin((1 + i) * T) for i, name in enumerate(outputs)},
        units=outputs | inputs,
    )


def asked(model, free, own=()):
    """The problem and its notices, without a search."""
    records = {"run": record({"mass.v": "m/s"})}
    return build_problem(model, records, FitOptions(free=free, own=own))


LAWS = {
    "Coulomb": (fx.Coulomb(F_Coulomb=1.0), ["F_prop"]),
    "Stribeck": (fx.Stribeck(0.0, 1.0, 0.0, 2.0), ["F_prop", "F_Stribeck"]),
}


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("free", [["f.f_pos"], ["f"], "f.f_pos"])
def test_a_law_named_as_a_whole_leaves_its_numbers_on_their_bounds(kind, free) -> None:
    law, left = LAWS[kind]
    problem, notices = asked(block(law), free)
    paths = {u.path for u in problem.unknowns}
    told = {n.subject for n in notices if n.code == "left-at-bound"}
    assert {f"f.f_pos.{name}" for name in left} <= told
    assert not told & paths
    assert "f.f_pos.F_Coulomb" in paths


def test_numbers_of_each_record_named_by_the_law_are_left_on_their_bounds() -> None:
    problem, notices = asked(block(fx.Coulomb(F_Coulomb=1.0)), ["mass.m"], ["f.f_pos"])
    assert [u.path for u in problem.unknowns] == ["mass.m", "f.f_pos.F_Coulomb"]
    assert "f.f_pos.F_prop" in {n.subject for n in notices if n.code == "left-at-bound"}


def test_a_number_on_its_bound_that_is_named_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Coulomb.F_prop. = 0 lies on the edge"):
        asked(block(fx.Coulomb(F_Coulomb=1.0)), ["f.f_pos.F_Coulomb", "f.f_pos.F_prop"])


def test_a_law_whose_numbers_all_lie_on_their_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match=r"f.f_pos.F_Coulomb. = 0 lies on the edge"):
        asked(block(fx.Coulomb(F_Coulomb=0.0)), ["f.f_pos"])


def test_a_table_with_a_row_on_its_bound_is_refused_in_a_sentence() -> None:
    for free in (None, ["f.f_pos"]):
        with pytest.raises(ValueError, match=r"`Table.f` = \[0 2\] lies on the edge"):
            asked(block([[0.0, 0.0], [1.0, 2.0]]), free)


def test_a_law_for_a_sweep_leaves_its_numbers_on_their_bounds() -> None:
    v = np.linspace(0.1, 3.0, 12)
    sweep = fx.Sweep(v, 2.0 + 0.01 * np.cos(40 * v), velocity_unit="m/s", force_unit="N")
    found = fx.fit(fx.Coulomb(F_Coulomb=1.5), sweep)
    assert found.values["F_Coulomb"] == pytest.approx(2.0, abs=0.02)
    assert "left-at-bound" in {n.code for n in found.notices}


@pytest.mark.parametrize("limits", [None, {"f.f_pos.F_prop": (0.0, 4.0)}])
def test_a_start_fit_that_ends_on_a_bound_is_taken_back_to_where_it_began(limits) -> None:
    model = block(fx.Coulomb(F_Coulomb=1.0, F_prop=1.0))
    records = {"run": record({"mass.v": "m/s"})}
    options = FitOptions(free=["f.f_pos"], bounds=limits)
    problem, _ = build_problem(model, records, options)
    for end in (0.0, 4.0) if limits else (0.0,):
        ended = replace(model, {"f.f_pos.F_prop": end, "f.f_pos.F_Coulomb": 2.0})
        begun = begun_at(ended, model, problem)
        assert float(begun["f"].f_pos.F_prop) == 1.0
        assert float(begun["f"].f_pos.F_Coulomb) == 2.0


@pytest.mark.parametrize(
    ("name", "unit", "right"),
    [("mass.s", "deg", "m"), ("mass.v", "rpm", "m/s"), ("f.f", "N.m", "N"), ("b.a", "m/s2", "rad")],
)
def test_an_output_in_a_unit_of_the_other_motion_is_refused(name, unit, right) -> None:
    with pytest.raises(ValueError, match=f"'{name}' must be in {right}.*got {unit}"):
        check_channels(block(fx.Coulomb(1.0)), record({name: unit}))


@pytest.mark.parametrize(("name", "unit"), [("d", "N.m"), ("tau", "N")])
def test_a_drive_in_a_unit_of_the_other_motion_is_refused(name, unit) -> None:
    with pytest.raises(ValueError, match=f"input '{name}' must be a .*got one in {unit}"):
        check_channels(block(fx.Coulomb(1.0)), record({"mass.v": "m/s"}, {name: unit}))


def test_a_sweep_in_units_of_the_other_motion_is_refused() -> None:
    right = r"'f' slides.* m/s and N, got rpm and N.m. Write .*velocity_unit='m/s', force_unit='N'"
    sweep = fx.Sweep([1, 2, 3], [1, 2, 3.1], velocity_unit="rpm", force_unit="N.m")
    with pytest.raises(ValueError, match=right):
        steady_plan(block(fx.Coulomb(1.0)), "f", sweep)


def test_channels_in_the_units_of_their_motion_are_taken_and_a_normal_force_is_one() -> None:
    outputs = {"mass.s": "mm", "rotor.phi": "deg", "b.fn": "N", "b.tau": "N.cm", "b.lossPower": "W"}
    check_channels(block(fx.Coulomb(1.0)), record(outputs, {"d": "kN", "tau": "mN.m"}))


class Crank(fx.AbstractLinkage):
    """A slide and an angle with friction each."""

    frictions: tuple[fx.SupportFriction, ...]
    m: Scalar = parameter(Positive(), "kg", default=1.0)
    l: Scalar = parameter(Positive(), "m", default=0.5)
    k: Scalar = parameter(Positive(), "N/m", default=3.0)

    def mass_matrix(self, q):
        return self.m * jnp.eye(2)

    def force(self, t, q, u, args):
        return -self.k * q

    def states(self):
        return ("slide.s", "crank.phi", "slide.v", "crank.w")


def test_a_machine_of_ones_own_has_the_units_that_it_declares_whatever_is_measured() -> None:
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(1.0, 1.0))
    machine = Crank((friction, friction))
    for outputs in ({"crank.phi": "rad"}, {"slide.s": "m"}, {"crank.w": "rpm", "slide.v": "mm/s"}):
        unit = unit_of({"run": record(outputs, {})}, machine)
        units = {p.path: unit(p) for p in parameters(machine)}
        assert (units["m"], units["l"], units["k"]) == ("kg", "m", "N/m")
        assert units["frictions.1.f_pos.F_Coulomb"] == "N.m"
        assert units["frictions.0.f_pos.F_prop"] == "N.s/m"
