"""Parameters in Modelica text are read with the names of frictax, and those of `to_modelica` come
back as they were.
"""

import inspect
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import machines
from exported_machines import sliding, turning
from frictax.export.modelica_machine import machine_text, modifiers, write_machine
from frictax.export.modelica_text import plain_name
from frictax.parameters import check, get, parameters, replace

MACHINES = [
    of
    for of in (*vars(machines).values(), sliding, turning)
    if inspect.isfunction(of) and inspect.signature(of).return_annotation is fx.Mechanism
]


def bristles() -> fx.Mechanism:
    law = fx.Stribeck(F_prop=0.3, F_Coulomb=1.0, F_Stribeck=0.7, fexp=20.0)
    return fx.Mechanism(
        block=fx.Mass(m=1.0),
        größe=fx.Inertia(J=2.0),
        guide=fx.SupportFriction("block", f_pos=law, bristle=fx.LuGre(sigma_0=1e4, sigma_1=30.0)),
        shaft=fx.BearingFriction(
            "größe", tau_pos=law, bristle=fx.ElastoPlastic(sigma_0=1e3, sigma_1=3.0, z_ba=0.4)
        ),
    )


def drawn(machine: fx.Mechanism, rng: np.random.Generator) -> fx.Mechanism:
    """The machine with other values, of 16 figures, of all parameters that may have them."""
    for p in parameters(machine):
        size = np.exp(np.sort(np.atleast_1d(rng.normal(0.0, 1.5, np.shape(p.value)))))
        value = np.asarray(p.value) * np.reshape(size, np.shape(p.value))
        if np.ndim(value) == 0 and not value:
            value = 1e-3 * rng.normal()
        changed = replace(machine, {p.path: value})
        try:
            check(changed)
        except ValueError:
            continue
        machine = machine if p.path.endswith(("nperiod", "times")) else changed
    return machine


def without_comments(text: str) -> str:
    return re.sub(r" *//[^\n]*\n", "", text)


@pytest.mark.parametrize("of", [*MACHINES, bristles], ids=lambda of: of.__name__)
@pytest.mark.slow_after(6)
@pytest.mark.parametrize("self_contained", [False, True])
def test_what_is_exported_comes_back_to_the_last_digit(of: Any, self_contained: bool) -> None:
    rng = np.random.default_rng(len(of.__name__))
    for machine in (of(), drawn(of(), rng), drawn(of(), rng)):
        try:
            text = machine_text(machine, self_contained=self_contained, rows=10**6)
        except ValueError:  # which Modelica cannot say
            return
        values = fx.from_modelica(text)
        again = replace(machine, values)
        for p in parameters(machine):
            at = p.path.rpartition(".")[0]
            if at.endswith(("_pos", "_neg")) or ".f_pos" in at or ".bristle" in p.path:
                continue  # laws are tables in Modelica
            np.testing.assert_array_equal(get(again, p.path), p.value, p.path)
        bristled = any("bristle" in path for path in values)
        if not bristled:
            once_more = machine_text(again, self_contained=self_contained, rows=10**6)
            assert without_comments(once_more) == without_comments(text)
        for name in machine.names:
            part = machine[name]
            if hasattr(part, "law") and not isinstance(
                part, fx.LossyGear | fx.MassWithStopAndFriction
            ):
                v = jnp.asarray([0.0, 0.01, 0.5, 3.0])
                f = part.law(1)(v)
                np.testing.assert_allclose(again[name].law(1)(v), f, rtol=3e-3, atol=1e-3 * f[0])


def test_modifiers_of_some_parts_and_of_a_sweep_come_back() -> None:
    machine = sliding()
    values = fx.from_modelica(modifiers(machine, ["cart", "rail"]))
    assert values["rail.fn_max"] == 3.0
    assert {path.partition(".")[0] for path in values} == {"cart", "rail"}
    sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    found = fx.fit(fx.Coulomb, sweep)
    friction = fx.SupportFriction("mass", **fx.from_modelica(found.to_modelica()))
    assert float(friction.f_pos(2.5)) == pytest.approx(float(found.law(2.5)), rel=1e-9)


def test_a_long_table_of_a_drive_is_read_from_its_file(tmp_path: Any) -> None:
    t = np.linspace(0.0, 1.0, 301)
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0), drive=fx.Force("mass", fx.Sampled(t, np.sin(9 * t), hold=True))
    )
    text = write_machine(machine, tmp_path)[0].read_text()
    with pytest.raises(ValueError, match=r"line \d+: 'drive_f'.*Give `folder`"):
        fx.from_modelica(text)
    signal = fx.from_modelica(text, tmp_path)["drive.f"]
    assert signal.hold
    np.testing.assert_array_equal(signal.values, np.sin(9 * t))


def driven(modifiers: str, output: str = "1") -> fx.Sampled:
    """The drive of a text with a table of two signals, of which one is connected."""
    return fx.from_modelica(
        f"""Modelica.Blocks.Sources.CombiTimeTable tab(table=[0, 0, 10; 1, 2, 20; 2, 2, 20],
          extrapolation=Modelica.Blocks.Types.Extrapolation.HoldLastPoint{modifiers});
        Modelica.Mechanics.Translational.Sources.Force drive;
        initial equation equation connect(drive.f, tab.y[{output}]); connect(tab.y[1], other.f);"""
    )["drive.f"]


@pytest.mark.parametrize(
    ("modifiers", "output", "times", "values"),
    [
        ("", "1", [0, 1, 2], [0, 2, 2]),
        ("", "2", [0, 1, 2], [10, 20, 20]),
        (", columns={3, 2}", "1", [0, 1, 2], [10, 20, 20]),
        (", columns={3}, offset={5}", "1", [0, 1, 2], [15, 25, 25]),
        (", offset={5, 7}, timeScale=60, shiftTime=1", "2", [1, 61, 121], [17, 27, 27]),
        (", offset={5}, startTime=3, timeScale=60", "1", [3, 63, 123], [5, 7, 7]),
    ],
)
def test_a_table_of_several_signals_has_its_columns_offsets_and_times(
    modifiers: str, output: str, times: list[float], values: list[float]
) -> None:
    signal = driven(modifiers, output)
    np.testing.assert_array_equal(signal.times, times)
    np.testing.assert_array_equal(signal.values, values)


@pytest.mark.parametrize(
    ("modifiers", "output", "says"),
    [
        ("", "3", r"y\[3\] must be one of its 2 outputs, from 3 columns"),
        ("", "0", r"y\[0\] must be one of"),
        (", columns={4}", "1", "must be one of its 1 outputs"),
        (", startTime=3", "2", "jumps at startTime"),
        (", smoothness=Smoothness.ContinuousDerivative", "1", "line 2: smoothness must be"),
        (", extrapolation=Extrapolation.Periodic", "1", "line 2: extrapolation must be HoldLast"),
        (", period=3", "1", "line 2: 'period' must be a parameter of a table"),
    ],
)
def test_a_table_that_no_signal_can_follow_is_refused(
    modifiers: str, output: str, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        driven(modifiers, output)
    with pytest.raises(ValueError, match="extrapolation must be HoldLastPoint, got LastTwo"):
        fx.from_modelica("CombiTimeTable a(table=[0,0;1,1]); Force d; equation connect(a.y, d.f);")


STRANGERS = [
    ("f_pos=[0,5;1,3], peak=1.1", {"f_pos": [[0, 5], [1, 3]], "peak": 1.1}),
    (
        "(mue_pos = {{0, .5}, {1.0E0, 4e-1}},\r\n final peak=+1.25)",
        {"mu_pos": [[0, 0.5], [1, 0.4]], "peak": 1.25},
    ),
    ("peak = 1.1;\n// f_pos = [0, 9];\n/* peak = 3; */ cgeo = -(-2)", {"peak": 1.1, "cgeo": 2.0}),
    (
        'friction(peak=1.2), mass(m(unit="kg", displayUnit="g")=0.5)',
        {"friction.peak": 1.2, "mass.m": 0.5},
    ),
    (
        """within Axes;
        record Axis "One axis; its ; values"
          extends Modelica.Icons.Record;
          parameter Modelica.Units.SI.Mass m(displayUnit="g") = 2.5 "moved"
            annotation(Dialog(group="a"));
          final parameter Real f_pos[:, 2] = [0, 2*m; 1, m + 1];
          parameter Real w(unit="rad/s", displayUnit="rpm") = 2*Modelica.Constants.pi*50;
          parameter Boolean heated = false;
          parameter String name = "a \\"b\\"";
        end Axis;""",
        {"m": 2.5, "f_pos": [[0, 5], [1, 3.5]], "w": 100 * np.pi},
    ),
    (
        """model M
          Modelica.Mechanics.Rotational.Components.Inertia 'the rotor'(
            final J = 2e-5, phi(fixed=true, start=-1), w(start=3.0));
          Modelica.Mechanics.Rotational.Components.Brake brake(
            useSupport=true, mu_pos=[0, 0.5], fn_max=1e3, cgeo=0.2) "b"
            annotation(Placement(transformation(extent={{-10,-10},{10,10}})));
          Modelica.Blocks.Sources.Sine sine(freqHz=2, amplitude=0.5);
          Modelica.Mechanics.Rotational.Sources.Position position(exact=true);
        equation
          connect(sine.y, position.phi_ref) annotation(Line(points={{1,2}}));
        end M;""",
        {
            "the rotor.J": 2e-5,
            "the rotor.phi": -1.0,
            "the rotor.w": 3.0,
            "brake.mu_pos": [[0, 0.5]],
            "brake.fn_max": 1e3,
            "brake.cgeo": 0.2,
            "position.s": fx.Sine(amplitude=0.5, f=2.0),
        },
    ),
    (
        "extends Base(guide(friction(peak=1.2)), mass(s(start=3)));",
        {"guide.friction.peak": 1.2, "mass.s": 3.0},
    ),
    (
        "model D extends Base(mass(m=3, v(start=1))); end D;"
        " model Base Mass mass(m=2); equation x = 1; end Base;",
        {"mass.m": 3.0, "mass.v": 1.0},
    ),
    (
        "peak=2^-1*3, cgeo=2/-2*4, k=2*-3+1, m=-2^2, n=8/2/2",
        {"peak": 1.5, "cgeo": -4.0, "k": -5.0, "m": -4.0, "n": 2.0},
    ),
    (
        "Modelica.Mechanics.Translational.Components.Spring a(c=1e3, s_rel0=-.5), b(c=2);",
        {"a.c": 1e3, "a.s_rel0": -0.5, "b.c": 2.0},
    ),
]


@pytest.mark.parametrize(("text", "values"), STRANGERS)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_text_as_people_have_it_is_read(text: str, values: dict[str, Any], ends: str) -> None:
    if ends == "\r" and "//" in text:  # a comment would go on to the end
        return
    read = fx.from_modelica(text.replace("\r\n", "\n").replace("\n", ends))
    assert list(read) == list(values)
    for path, value in values.items():
        if isinstance(value, list):
            np.testing.assert_allclose(np.column_stack([read[path].v, read[path].f]), value)
        else:
            assert repr(read[path]) == repr(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "got none"),
        ("\n\nmass(m=2, peak=)", "line 3: a value must stand in place of '\\)'"),
        ("Mass m1(m=1,\n foo=2);", "line 2: 'foo' is no parameter of Mass"),
        ("Mass m1(\n\nm=F);", "line 3: 'm' must be a number or an array, got F"),
        ("Mass m1(m=1", "'\\)' must stand before the end"),
        ("f_pos=[0,5;1]", "line 1: an array must have rows of numbers, all of one length"),
        ("f_pos=[1,5;0,1]", "line 1: 'f_pos' is not valid: `Table.v` must"),
        ("peak=1.1 $", "'\\$' is no sign of Modelica"),
        ('name="a', "has no end"),
        ('Mass m(m(unit="g")=3);', "must be in SI units, got unit='g'"),
        ('Mass m(m(unit="N")=3);', "must be in kg, got unit='N'"),
        ("peak=1/0", "1.0 / 0.0 has no value"),
        ("peak=1e400", "must be finite"),
        ("x=" + "(" * 99 + "1" + ")" * 99, "at most 40 deep"),
        ("Modelica.Blocks.Math.Gain g(k=2);", "'Modelica.Blocks.Math.Gain' must be an element"),
        ("parameter Modelica.Units.NonSI.Angle_deg phi = 3;", "must be in SI units, got a Mod"),
        ("friction(redeclare model X = Y)", "a `redeclare` changes a class"),
        ("f(smoothness=Smoothness.ConstantSegments, peak=2)", "smoothness must be LinearSegments"),
        ("guide(a=[1, 2], peak(start=true)=F)", "line 1: 'peak' must be a number"),
        ("parameter Real x = if true then 1 else 2;", "must be a number or an array, got if"),
        ("k = sqrt(2)", "sqrt\\(...\\) must be a number"),
        ("Mass m[3](each m=2);", "array of components. Write each by name"),
        ("SupportFriction f(smoothness=Modelica.Blocks.Types.Smoothness.ContinuousDerivative);",
         "smoothness must be LinearSegments, got ContinuousDerivative"),
        ('Mass m(m=3, s(start=0.1, unit="mm"));', "must be in SI units, got unit='mm'"),
        ('Mass m(m=3, s(start=0.1, unit="kg"));', "must be in m, got unit='kg'"),
        ("Mass m(m=3); initial equation m.s = 5;", "line 1: an initial equation must be a start"),
        ("parameter Real x=2; Mass m(m=x); extends B(x=3);", "'x' must have its value in its"),
        ("x=" + "-" * 99 + "1", "at most 40 deep"),
        ("f_pos=[0, 5; 1, 3]*[2, 0; 0, 2]", "two arrays have no '\\*'. Write the result"),
        ("Brake b(mu0=0.5);", "'mu0' is no parameter of Brake. Did you mean 'mu_pos'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_one_sentence_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        fx.from_modelica(text)
    assert "\n" not in str(refused.value)


def test_text_that_is_cut_or_changed_anywhere_is_read_or_refused_with_a_sentence() -> None:
    rng, whole, sentences = np.random.default_rng(0), machine_text(sliding()), []
    for _ in range(60):
        a, b = sorted(rng.integers(0, len(whole), 2))
        text = whole[:a] + str(rng.choice(["", "(", "]", ";", "=", "end", '"', "{"])) + whole[b:]
        try:
            fx.from_modelica(text)
        except ValueError as refused:
            sentences.append(str(refused))
    assert len(sentences) > 20
    assert not [sentence for sentence in sentences if "\n" in sentence]


def test_names_come_back_as_they_were() -> None:
    assert [plain_name(x) for x in ("block_", "a_b", "gr_u00f6_u00dfe")] == [
        "block",
        "a_b",
        "größe",
    ]
