"""Numbers that are none, too large, or true: one sentence, whatever takes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frictax as fx

T = np.linspace(0.0, 1.0, 11)
TAKES: dict[str, Callable[[Any], Any]] = {
    "mass": lambda x: fx.Mass(m=x),
    "law": lambda x: fx.Coulomb(F_Coulomb=x),
    "signal": lambda x: fx.Sine(amplitude=x, f=1.0),
    "sensor": lambda x: fx.Instrument(gain=x),
    "controller": lambda x: fx.PositionController("mass", 0.0, kp=x, kv=1.0),
    "engine": lambda x: fx.OnSamples(tolerance=x),
    "sd": lambda x: fx.Record(T, outputs={"mass.v": T}, sd={"mass.v": x}),
    "samples": lambda x: fx.Record(T, outputs={"mass.v": [x] * 11}),
    "turn": lambda x: fx.Column("v", per_turn=x),
}


@pytest.mark.parametrize("what", TAKES)
@pytest.mark.parametrize(
    "value", [10**400, -(10**400), float("nan"), True], ids=["huge", "-huge", "nan", "true"]
)
def test_what_is_no_number_is_refused_in_a_sentence(what: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"[a-z`].*\.$") as said:
        TAKES[what](value)
    assert len(str(said.value)) < 700


def test_a_rate_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\n1\n2\n3\n4\n")
    with pytest.raises(ValueError, match="`rate` must be a number of samples"):
        fx.Record.from_csv(tmp_path / "a.csv", rate=10**400, outputs={"mass.v": "v"})
    with pytest.raises(ValueError, match="must be > 0 and finite, as its square must"):
        TAKES["sd"](1e300)


@pytest.mark.parametrize("name", ["self", "class", "lambda", "parts", "args"])
def test_a_part_may_be_called_as_python_calls_other_things(name: str) -> None:
    machine = fx.Mechanism(**{name: fx.Mass(m=1.0, v=2.0)})
    assert machine.names == (name,)
    assert float(machine[name].m) == 1.0


@pytest.mark.parametrize("sign", ["\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\x1a"])
def test_a_column_name_that_a_terminal_would_obey_is_refused(tmp_path: Path, sign: str) -> None:
    (tmp_path / "a.csv").write_text(f"t,v{sign}[2J\n0,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="holds the sign") as said:
        fx.Record.from_csv(tmp_path / "a.csv", time="t", outputs={"mass.v": "v"})
    assert sign not in str(said.value)
