"""Modifier text for Modelica."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from frictax.export.modelica_text import sample
from frictax.fitting import fit
from frictax.laws import Coulomb, Stribeck, Table
from frictax.measurements import Sweep

LAW = Stribeck(F_prop=1.0, F_Coulomb=5.0, F_Stribeck=10.0, fexp=2.0)


def sweep(law, v, **options) -> Sweep:
    v = np.asarray(v)
    return Sweep(
        v,
        np.sign(v) * np.asarray(law(jnp.abs(jnp.asarray(v)))),
        velocity_unit="m/s",
        force_unit="N",
        **options,
    )


@pytest.fixture(scope="module")
def drive(root) -> Sweep:
    return Sweep.from_csv(
        root / "data" / "screw_drives" / "sweep.csv",
        velocity="omega",
        force="torque",
        where={"drive": 1},
    )


def code(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("//")]


def table(line: str) -> np.ndarray:
    rows = re.search(r"\[(.*)\]", line)
    assert rows
    return np.array([[float(cell) for cell in row.split(",")] for row in rows.group(1).split(";")])


def test_a_translational_law_of_exponent_1_gives_the_four_coefficients() -> None:
    lines = code(fit(LAW, sweep(LAW, np.linspace(0.1, 4, 12))).to_modelica())
    assert len(lines) == 1
    found = dict(re.findall(r"(\w+)=([^,)]+)", lines[0]))
    assert lines[0].startswith("MassWithStopAndFriction(")
    assert {name: round(float(value), 6) for name, value in found.items()} == {
        "F_prop": 1,
        "F_Coulomb": 5,
        "F_Stribeck": 10,
        "fexp": 2,
    }


def test_a_rotational_law_gives_a_bearing_with_a_table_within_the_stated_error(drive) -> None:
    one = drive.positive()
    found = fit(Stribeck, one)
    text = found.to_modelica(tolerance=1e-3)
    (line,) = code(text)
    assert re.fullmatch(r"BearingFriction\(tau_pos=\[[-+.e0-9,; ]*\], peak=1\.0\)", line)
    rows = table(line)
    v = np.linspace(0.0, rows[-1, 0], 5001)
    error = np.max(np.abs(np.interp(v, *rows.T) - found.predict(v)))
    stated = float(re.search(r"within (\S+) N.m", text).group(1))  # type: ignore[union-attr]
    assert error <= 1.05 * stated <= 1.05e-3 * np.max(np.abs(one.force)) * 1.1
    assert rows[0, 0] == 0.0
    assert np.all(np.diff(rows[:, 0]) > 0)


def test_a_table_is_written_as_it_is() -> None:
    law = Table([[0, 3], [1, 2], [4, 3.5]])
    (line,) = code(fit(law, sweep(law, np.linspace(0.1, 4, 12))).to_modelica())
    assert line.startswith("SupportFriction(f_pos=[")
    np.testing.assert_allclose(table(line), [[0, 3], [1, 2], [4, 3.5]], rtol=1e-6)


def test_a_fitted_peak_goes_with_the_table() -> None:
    v = np.concatenate([np.linspace(0.5, 5, 10), np.zeros(4)])
    f = np.where(v == 0, 6.0, 5.0 + v)
    found = fit(Coulomb, Sweep(v, f, breakaway=v == 0, velocity_unit="m/s", force_unit="N"))
    (line,) = code(found.to_modelica())
    assert float(line.split("peak=")[1].rstrip(")")) == pytest.approx(1.2, rel=1e-6)
    np.testing.assert_allclose(table(line), [[0, 5], [5, 10]], rtol=1e-6)


def test_a_dip_at_a_millionth_of_the_highest_speed_is_in_the_table() -> None:
    law = Stribeck(F_prop=1.0, F_Coulomb=2.0, F_Stribeck=1.0, fexp=3e5, exponent=2.0)
    rows, error = sample(law, 1.0)
    v = np.geomspace(1e-9, 1.0, 20001)
    assert (
        np.max(np.abs(np.interp(v, *rows.T) - np.asarray(law(jnp.asarray(v)))))
        <= 1.01 * error
        <= 1.01e-3 * 3.0
    )


def test_the_name_of_a_sweep_stays_inside_its_comment() -> None:
    text = fit(Coulomb, sweep(Coulomb(5.0, 1.0), [1.0, 2.0, 3.0], name="a\nb();")).to_modelica()
    assert text.startswith("// a b();: steady")
    assert len(code(text)) == 1


def test_a_second_law_and_an_offset_are_told_in_comments(drive) -> None:
    both = fit(Stribeck, drive, f_neg=Stribeck).to_modelica()
    assert len(code(both)) == 1
    assert "// BearingFriction(" in both
    assert "constant torque of" in fit(Stribeck, drive, offset=0.0).to_modelica()


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4])
def test_a_sampled_table_keeps_to_its_law(tolerance: float) -> None:
    rows, error = sample(LAW, 4.0, tolerance)
    v = jnp.linspace(0.0, 4.0, 20001)
    actual = np.max(np.abs(np.interp(np.asarray(v), *rows.T) - np.asarray(LAW(v))))
    assert actual <= 1.01 * error <= 1.01 * tolerance * 15.0
