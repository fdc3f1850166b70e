"""Structured text: a parser of the language reads it, and its own text computes frictax's run."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.export.code import machine as machine_code
from frictax.export.code.feedforward import to_feedforward
from frictax.export.code.languages import StructuredText
from frictax.export.code.machine import MachineCode
from frictax.export.code.statements import REAL
from frictax.export.code.texts import structured_text

from .structured_text import translated
from .test_code import T, block, lossy_gear, pendulum
from .test_feedforward import DIRECTIONS, GUIDE


class Fall(fx.AbstractHybridSystem):
    """A falling body, whose states have the names of variables of the function block."""

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([y[1], jnp.full_like(y[1], -9.81)])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return y[:1] + 100.0

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, mode, jnp.array(0)

    def start(self, t: Any) -> Any:
        return jnp.array([1.0, 0.0]), jnp.array([0])

    def states(self) -> tuple[str, ...]:
        return "s", "end"


def slide(*names: str) -> fx.Mechanism:
    bodies = {name: fx.Mass(m=1.0) for name in names}
    return fx.Mechanism(**bodies, drive=fx.Force(names[0], 1.0))


@pytest.mark.parametrize(
    ("machine", "inputs", "outputs", "words"),
    [
        (Fall(), {}, None, "s_2 end_2"),
        (slide("m", "M"), {}, ["m.s", "M.s"], "m_s M_s_2"),
        (slide("größe", "a_"), {}, ["größe.s", "a_.s"], "gr_u00f6_u00dfe_s a_s"),
        (slide("a"), {"drive.f": "linear"}, ["drive.f", "a.v"], "drive_f_2 a_v"),
    ],
)
def test_every_variable_has_a_name_that_the_language_allows(
    machine: Any, inputs: Any, outputs: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "_steps", lambda *_: (1, 0.0, np.ones(4)))
    text = structured_text(MachineCode(machine, T[:3], fx.OnSamples(), inputs, outputs))
    block = text[text.index("FUNCTION_BLOCK") :]
    names = re.findall(r"^  (\S+) : ", block, re.MULTILINE)
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch("[A-Za-z](_?[A-Za-z0-9])*", name) for name in names)
    declared = block.partition("VAR_OUTPUT")[2].split("  events", 1)[0]
    assert re.findall(r"(\S+) : ", declared) == words.split()
    assert ("The variable s_2 is s." in text) is isinstance(machine, Fall)
    translated(text)["FX_Machine"]()


def test_numbers_of_single_precision_have_its_range() -> None:
    law = fx.Table([[0.0, 1.0], [1.0, 2.0]], extrapolation="error")
    text = to_feedforward(fx.SupportFriction("mass", f_pos=law), language="st")
    assert "3.0E+38" in text
    assert "E+300" not in text
    assert StructuredText("REAL").literal(-1e-300, REAL) == "-1.2E-38"
    assert StructuredText("REAL").literal(1e300, REAL) == "3.0E+38"
    assert StructuredText().literal(np.inf, REAL) == "1.0E+300"


@pytest.mark.parametrize("contact", [GUIDE, DIRECTIONS], ids=["Stribeck", "directions"])
def test_the_feed_forward_is_the_law(contact: fx.SupportFriction) -> None:
    feed = translated(to_feedforward(contact, language="st"))["Friction_Feedforward"]()
    for speed in (0.02, 0.3, 0.9, -0.02, -0.4):
        sign = 1 if speed > 0 else -1
        force = sign * float(contact.law(sign)(abs(speed)))
        assert feed(command=speed, speed=speed, dt=1.0)["force"] == pytest.approx(force, rel=1e-6)
    assert feed(command=0.1, speed=0.0, dt=1.0)["force"] > float(contact.law(1)(0.1))


def test_a_power_of_0_has_no_logarithm_of_0() -> None:
    """Many controllers stop at it."""
    law = fx.Stribeck(F_prop=0.1, F_Coulomb=1.0, F_Stribeck=0.5, fexp=10.0, exponent=0.7)
    guide = fx.SupportFriction("mass", f_pos=law)
    feed = translated(to_feedforward(guide, language="st"))["Friction_Feedforward"]()
    assert np.isfinite(feed(command=0.0, speed=0.0, dt=1.0)["force"])
    for speed in (1e-12, 0.1):
        force = feed(command=speed, speed=speed, dt=1.0)["force"]
        assert force == pytest.approx(float(law(speed)), rel=1e-6)


def shortened(text: str, seen: set[str]) -> list[str]:
    """Return the functions of a text without repeated statements, which `seen` collects. Digits,
    numbered variables and repeated arguments of calls make no other statement.
    """
    text = re.sub(r"\d+(?![a-z_\d])", "1", re.sub(r",\n\s+", ", ", text))
    text = re.sub(r"\b[akmorvy]1\b", "v", text)
    text = re.sub(r"(\bv (?::=|=>) v, )\1+", r"\1", text)
    lines = list[str]()
    for line in map(str.strip, text.splitlines()):
        lines += [line] * (not line.endswith(";") or line not in seen)
        seen.add(line)
    parts = r"^FUNCTION.*?^END_FUNCTION(?:_BLOCK)?$"
    return re.findall(parts, "\n".join(lines), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_a_parser_of_the_language_reads_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Function by function: the time of this parser grows faster than the length of its text."""
    blark = pytest.importorskip("blark", reason="blark, a parser of structured text, is missing")
    monkeypatch.setattr(machine_code, "_steps", lambda *_: (2, 0.0, np.ones(1)))
    texts = [to_feedforward(DIRECTIONS, language="st")]
    for machine, given in ((block(), {"drive.f": "linear"}), (pendulum(), {}), (lossy_gear(), {})):
        texts.append(structured_text(MachineCode(machine, T, fx.OnSamples(), given, None)))
    seen = set[str]()
    for text in texts:
        parts = shortened(text, seen)
        assert len(parts) >= 2
        for part in parts:
            assert blark.parse_source_code(part).exception is None, part
        broken = parts[0].replace(":=", "=:", 1)
        assert blark.parse_source_code(broken).exception is not None
