"""Inputs of few levels that jump are held from sample to sample."""

import numpy as np
import pytest

import frictax as fx

T = np.arange(400) / 100.0
RELAY = 13.0 * np.sign(np.sin(2.0 * T + 0.1))


def record(u: np.ndarray, **more) -> fx.Record:
    return fx.Record(T, {"motor": u}, {"cart.s": T**2}, **more)


def codes(of: fx.Record) -> list[str]:
    return [n.code for n in of.notices if n.code.startswith("levels-")]


def test_a_relay_is_held_and_a_notice_says_so() -> None:
    held = record(RELAY)
    assert held.hold
    assert codes(held) == ["levels-held"]
    assert held.notices[0].numbers["levels"] == 2


@pytest.mark.parametrize("hold", [True, False])
def test_hold_overrides_the_rule_and_nothing_is_said(hold: bool) -> None:
    told = record(RELAY, hold=hold)
    assert told.hold == hold
    assert codes(told) == []


@pytest.mark.parametrize(
    "u",
    [
        np.sin(T),
        np.ones(T.size),
        np.round(3 * np.sin(2.0 * T)),  # 7 levels
        np.where(np.arange(T.size) % 4 < 2, 1.0, -1.0),  # changes in half of the samples
    ],
)
def test_other_inputs_are_joined_by_straight_lines(u: np.ndarray) -> None:
    joined = record(u)
    assert not joined.hold
    assert codes(joined) == []


def test_a_relay_beside_a_smooth_input_is_joined_and_a_notice_says_so() -> None:
    both = fx.Record(T, {"motor": RELAY, "fan": np.sin(T)}, {"cart.s": T**2})
    assert not both.hold
    assert codes(both) == ["levels-joined"]


def test_a_constant_input_beside_a_relay_changes_nothing() -> None:
    assert fx.Record(T, {"motor": RELAY, "fan": np.ones(T.size)}, {"cart.s": T**2}).hold


def test_files_and_parts_of_a_record_follow_the_rule(tmp_path) -> None:
    path = tmp_path / "run.csv"
    table = np.column_stack([T, RELAY, T**2])
    np.savetxt(path, table, delimiter=",", header="t,u,s", comments="")
    read = fx.Record.from_csv(path, time="t", inputs={"motor": "u"}, outputs={"cart.s": "s"})
    assert read.hold
    assert codes(read) == ["levels-held"]
    assert read.trim(1.0).hold
    assert read.decimate(7).hold


@pytest.mark.slow
def test_the_friction_under_a_relay_is_found_without_a_word_on_hold() -> None:
    """Joined by straight lines the force would be off by a sample at each jump."""
    law = fx.Coulomb(F_Coulomb=1.5)

    def cart(F_Coulomb: float, force: fx.Sampled | float) -> fx.Mechanism:
        return fx.Mechanism(
            cart=fx.Mass(m=6.0),
            rail=fx.SupportFriction("cart", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb)),
            motor=fx.Force("cart", force),
        )

    u = 13.0 * np.sign(np.sin(25.0 * T + 0.1))
    v = np.asarray(fx.simulate(cart(law.F_Coulomb, fx.Sampled(T, u, hold=True)), T)["cart"].v)
    v = v + 1e-3 * np.random.default_rng(0).standard_normal(T.size)
    measured = fx.Record(T, {"motor": u}, {"cart.v": v})
    found = fx.fit(cart(2.5, 0.0), measured, free=["rail.f_pos.F_Coulomb"])
    low, high = found.intervals["rail.f_pos.F_Coulomb"]
    assert low < 1.5 < high
    assert "levels-held" in [n.code for n in found.notices_at_hand]


def test_a_reference_of_few_levels_is_no_mistake_in_a_closed_loop() -> None:
    objective = fx.ClosedLoop({"motor": fx.PositionController("cart", 0.0, kp=30.0, kv=20.0)})
    machine = fx.Mechanism(cart=fx.Mass(m=6.0), motor=fx.Force("cart", 0.0))
    steps = 0.1 * np.sign(np.sin(2.0 * T + 0.1))
    prepared = objective.prepare(objective.machine(machine), record(steps))
    assert not prepared.hold
