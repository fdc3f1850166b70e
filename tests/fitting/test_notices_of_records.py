"""What a record says of itself reaches every result of a fit to it. For reports: test_tied.py."""

import json

import numpy as np
import pytest

import frictax as fx

T = np.linspace(0.0, 2.0, 201)
FREE = ["friction.f_pos.F_Coulomb"]


def block(F_Coulomb: float = 1.0, force: float | fx.Sampled = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb)),
        drive=fx.Force("mass", force),
    )


@pytest.fixture(scope="module")
def clipped() -> fx.Record:
    """A speed that a sensor cuts off at 60 % of its largest value."""
    force = 3.0 * np.sin(5.0 * T)
    v = np.asarray(fx.simulate(block(1.0, fx.Sampled(T, force)), T)["mass"].v)
    v = np.clip(v + 1e-3 * np.random.default_rng(0).standard_normal(T.size), None, 0.6 * v.max())
    return fx.Record(T, {"drive": force}, {"mass.v": v}, name="clipped")


@pytest.fixture(scope="module")
def found(clipped: fx.Record) -> fx.FitResult:
    by_force = fx.InverseDynamics(20.0, at_samples=True)  # compiles faster than a free run
    return fx.fit(block(), clipped, free=FREE, objective=by_force)


def test_a_record_tells_what_is_suspicious_by_codes_and_by_sentences(clipped: fx.Record) -> None:
    assert [(n.code, n.subject) for n in clipped.notices] == [("record-saturated", "mass.v")]
    assert clipped.warnings == tuple(str(n) for n in clipped.notices)
    assert int(clipped.notices[0].numbers["samples"]) > 5


def test_a_fit_passes_on_the_notices_of_its_record(found, clipped) -> None:
    (notice,) = [n for n in found.notices if n.code == "record-saturated"]
    assert notice.numbers["in_record"] == "clipped"
    assert str(notice) == f"Record 'clipped': {clipped.notices[0]}"
    assert str(found).count(str(notice)) == 1
    assert str(notice) in found.warnings


def test_json_and_cards_have_them(found) -> None:
    told = json.loads(found.to_json())
    assert "record-saturated" in [n["code"] for n in told["notices"]]
    assert found._repr_html_().count("stays at its largest value") == 1


@pytest.mark.slow
def test_rows_of_fleets_have_their_codes(clipped: fx.Record) -> None:
    table = fx.fleet(block(), [clipped], free=FREE, jobs=1).table
    assert "record-saturated" in table["notices"][0].split()


def test_what_was_doubtful_while_a_file_was_read_is_a_notice(tmp_path) -> None:
    path = tmp_path / "run.csv"
    rows = np.column_stack([T, 3.0 * np.sin(5.0 * T), T**2])
    np.savetxt(path, rows, delimiter=",", header="t,force [lbs],v_mps", comments="")
    record = fx.Record.from_csv(
        path, time="t", inputs={"drive": "force [lbs]"}, outputs={"mass.v": "v_mps"}
    )
    told = [n for n in record.notices if n.code == "record-read"]
    assert told
    assert all(n.numbers["told"] == note for n, note in zip(told, record.notes, strict=True))
