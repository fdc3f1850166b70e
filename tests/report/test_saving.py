"""A fit comes back from its file bit for bit, and what is no such file gives one sentence.

`saved/axis.fit` was written by the first version that could: what is saved stays readable. Before
0.1.0 is released it may be written anew: ``python tests/report/test_saving.py``.
"""

import copy
import dataclasses
import enum
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import frictax as fx
from frictax.parameters import AtLeast, CheckedModule, Positive, Real, Scalar, parameter
from machines import coupled_clutches

T = np.linspace(0.0, 2.0, 201)
U = 3.0 * np.sin(3.0 * T) + 1.5 * np.sin(2.3 * T)
NOISE = 0.01 * np.random.default_rng(0).standard_normal((4, T.size))
SAVED = Path(__file__).with_name("saved") / "axis.fit"


class Drag(CheckedModule, fx.AbstractLaw):
    F: Scalar = parameter(AtLeast(0.0), "N")
    c: Scalar = parameter(AtLeast(0.0), "N.s2/m2")

    def __call__(self, v: Any) -> Any:
        return self.F + self.c * v**2


class Pendulum(fx.AbstractAxis):
    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    phi: Scalar = parameter(Real(), "rad", default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return -0.48 * jnp.sin(y[0])

    def states(self) -> Any:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.stack([self.phi, 0.0]))


def pull(t: Any) -> Any:
    return 0.3 * jnp.cos(2.0 * t)


def block(law: Any = None, **parts: Any) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.2) if law is None else law),
        drive=fx.Force("mass", fx.Sampled(T, U)),
        **parts,
    )


def record(machine: Any, outputs: str = "mass.v", i: int = 0, **options: Any) -> fx.Record:
    run = fx.simulate(machine, T)
    part, _, variable = outputs.partition(".")
    size = 1e3 if options.get("units") else 1.0  # in millimetres
    seen = {outputs: size * (np.asarray(getattr(run[part], variable)) + NOISE[i])}
    return fx.Record(T, {"drive": U}, seen, **options)


def huber_sweep() -> Any:
    v = np.concatenate([np.linspace(-8.0, -0.5, 9), np.linspace(0.5, 8.0, 9), [0.0, 0.0]])
    f = np.sign(v) * (6.0 + 0.2 * np.abs(v)) + NOISE[0, : v.size] - 0.3
    f[-2:] = 7.0, -7.5
    sweep = fx.Sweep(
        v * 1e3, f, breakaway=v == 0, velocity_unit="mm/s", force_unit="N", citation="§ 3, “me”"
    )
    found = fx.fit(
        fx.Coulomb, sweep, f_neg=fx.Coulomb, offset=0.0, peak=1.1, loss=fx.Huber(), level=0.9
    )
    return found, ()


def own_law_and_functions() -> Any:
    """Two records, each with its own speed at the start; a law, a function and a lambda."""
    own = {"law": Drag(F=1.0, c=0.3), "wind": fx.Force("mass", pull)}
    truth = block(own["law"], wind=own["wind"], tide=fx.Force("mass", lambda t: -0.2 * t))
    runs = {"a/b": record(truth, name="first"), "..": record(truth, i=1, units={"mass.v": "mm/s"})}
    found = fx.fit(
        truth, runs, free=["friction.f_pos", "inputs.drive.offset"], own={"mass.v": [0.1, 0.2]}
    )
    return found, [Drag, truth, pull]


def windows_with_priors() -> Any:
    truth, free = block(fx.Table([[0, 1.0], [1, 1.2], [3, 1.9]])), ["mass.m", "friction.f_pos"]
    seen = record(truth, "mass.s", sd={"mass.s": 0.01}, hold=True)
    priors = [fx.Normal("mass.m", 1.0, 0.1), fx.Smooth("friction.f_pos.f", 0.5)]
    windows = fx.Windows(length=0.4, free_starts=True)
    return fx.fit(
        truth, seen, free=free, objective=windows, priors=priors, bounds={"mass.m": (0.5, 2.0)}
    ), ()


def windows_read_from_a_filter() -> Any:
    truth = block()
    return fx.fit(
        truth, record(truth, "mass.s"), free=["friction.f_pos"], objective=fx.Windows(length=0.5)
    ), ()


def inverse_dynamics() -> Any:
    """Speed and force are given as they are: another objective, and nothing is simulated."""
    truth = block()
    dynamics = fx.InverseDynamics(cutoff=10.0, v_min=0.05)
    return fx.fit(
        truth, record(truth), free=["mass.m", "friction.f_pos"], objective=dynamics, level=0.99
    ), ()


def clutches_and_brake() -> Any:
    clutches, seen = coupled_clutches(), {}
    held = fx.Brake("J4", fn_max=2.0, f_normalized=fx.Step(height=0.1, startTime=0.7))
    machine = fx.Mechanism(**dict(clutches.named_parts()), held=held)
    run = fx.simulate(machine, T)
    for i in (1, 2, 3, 4):
        seen[f"J{i}.w"] = np.asarray(run[f"J{i}"].w) + NOISE[i - 1]
    speeds = fx.Record(T, {}, seen, sd=dict.fromkeys(seen, 0.01))
    return fx.fit(machine, speeds, free=["clutch1.mu_pos.f", "held.mu_pos.f"]), ()


def closed_loop() -> Any:
    servo = fx.PositionController("mass", fx.Sampled(T, U), kp=20.0, kv=40.0)
    machine = eqx.tree_at(lambda m: m.parts, block(), (*block().parts[:2], servo))
    loop = fx.ClosedLoop({"drive": fx.PositionController("mass", 0.0, kp=20.0, kv=40.0)})
    return fx.fit(
        block(), record(machine, "mass.s"), free=["friction.f_pos.F_Coulomb"], objective=loop
    ), ()


def machine_of_ones_own() -> Any:
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.02), peak=1.3)
    pendulum = Pendulum(friction, J=0.0067, phi=0.6)
    phi = fx.walk(pendulum, *pendulum.start(0.0), ts=jnp.asarray(T)).ys[:, 0]
    seen = fx.Record(T, outputs={"phi": phi + 0.1 * NOISE[0]})
    return fx.fit(pendulum, seen, free=["friction.f_pos.F_Coulomb", "phi"]), [Pendulum]


def other_engine_and_method() -> Any:
    engine, method = fx.Adaptive(solver=diffrax.Dopri5()), fx.Optax(optax.adam(0.01), steps=50)
    found = fx.fit(block(), record(block()), free=["mass.m"], engine=engine, method=method)
    return found, [method]


KINDS = [
    huber_sweep,
    own_law_and_functions,
    windows_with_priors,
    windows_read_from_a_filter,
    inverse_dynamics,
    clutches_and_brake,
    closed_loop,
    machine_of_ones_own,
    other_engine_and_method,
]


@pytest.fixture(scope="module")
def sweep_fit() -> fx.FitResult:
    return huber_sweep()[0]


@pytest.fixture(scope="module")
def content(sweep_fit: fx.FitResult, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return sweep_fit.save(tmp_path_factory.mktemp("fit") / "sweep.fit").read_bytes()


def assert_same(a: Any, b: Any, where: str = "found") -> None:
    """Of one type, and every number of the same bits."""
    assert type(a) is type(b), f"{where}: {type(a)} and {type(b)}"
    if isinstance(a, np.ndarray | np.generic | jax.Array):
        x, y = np.asarray(a), np.asarray(b)
        assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes()), where
        if isinstance(a, np.ndarray):
            assert a.flags.writeable == b.flags.writeable, where
            if a.flags.forc:  # sums run in the order of memory
                assert a.flags.c_contiguous == b.flags.c_contiguous, where
    elif isinstance(a, enum.Enum) or callable(a) and not dataclasses.is_dataclass(a):
        assert a is b, where
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, Mapping):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    else:
        assert a == b or a != a and b != b, where  # nan


PUBLIC = (
    "names values estimates standard_errors intervals degrees_of_freedom covariance correlation"
    " units fixed model residuals weighted_residuals jacobian costs rms noise_scale dof quantile"
    " notices warnings identifiability records"
).split()


def assert_answers_alike(found: Any, again: Any) -> None:
    assert_same(found, again)
    for name in PUBLIC:
        assert_same(getattr(found, name), getattr(again, name), name)
    assert jax.tree.structure(found.model) == jax.tree.structure(again.model)
    assert jax.tree.structure(found.problem) == jax.tree.structure(again.problem)
    for label in found.records:
        assert_same(found.predicted(label), again.predicted(label), f"predicted({label!r})")
        assert_same(found.model_for(label), again.model_for(label), f"model_for({label!r})")
    assert str(found) == str(again)
    assert found.to_json() == again.to_json()


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_number_of_a_fit_comes_back_bit_for_bit(
    kind: Callable[[], Any], tmp_path: Path
) -> None:
    found, known = kind()
    assert found.save(tmp_path / "x.fit") == tmp_path / "x.fit"
    again = fx.load_fit(tmp_path / "x.fit", known=known)
    assert_answers_alike(found, again)
    assert [p.name for p in tmp_path.iterdir()] == ["x.fit"]
    assert again.save(tmp_path / "y.fit").read_bytes() == (tmp_path / "x.fit").read_bytes()


def test_what_a_fit_is_asked_later_it_answers_from_its_file_too(
    sweep_fit: fx.FitResult, tmp_path: Path
) -> None:
    again = fx.load_fit(sweep_fit.save(tmp_path / "x.fit"))
    assert_same(again.predict([-1.0, 0.0, 2.0]), sweep_fit.predict([-1.0, 0.0, 2.0]))
    assert_same(again.band([1.0, 2.0]), sweep_fit.band([1.0, 2.0]))
    assert (again.bic, again.aicc) == (sweep_fit.bic, sweep_fit.aicc)
    assert str(again.uncertainty(fx.White())) == str(sweep_fit.uncertainty(fx.White()))
    name = sweep_fit.names[0]
    assert str(again.profile(name)) == str(sweep_fit.profile(name))
    assert str(again.residual_study()) == str(sweep_fit.residual_study())
    assert again.report(tmp_path / "x.html").is_file()


@pytest.mark.slow
def test_a_fit_to_a_record_goes_on_from_its_file(tmp_path: Path) -> None:
    found = windows_read_from_a_filter()[0]
    again = fx.load_fit(found.save(tmp_path / "x.fit"))
    assert str(again.missing()) == str(found.missing())
    assert str(again.residual_study()) == str(found.residual_study())
    assert str(again.free_run("record")) == str(found.free_run("record"))
    assert again.to_modelica() == found.to_modelica()
    assert again.report(tmp_path / "x.html").is_file()


@pytest.mark.slow
def test_draws_of_a_posterior_come_back_bit_for_bit(tmp_path: Path) -> None:
    drawn = inverse_dynamics()[0].posterior(draws=100, warmup=100, chains=2)
    again = fx.load_posterior(drawn.save(tmp_path / "x.fit"))
    assert_same(drawn, again)
    assert str(drawn) == str(again)
    assert_same(drawn.friction("friction", [1.0]), again.friction("friction", [1.0]))
    with pytest.raises(
        ValueError, match=r"x.fit holds a Posterior: read it by `fx.load_posterior`"
    ):
        fx.load_fit(tmp_path / "x.fit")


def test_a_file_of_the_first_version_is_read() -> None:
    found = fx.load_fit(SAVED)
    assert found.values == {"friction.f_pos.F_Coulomb": 0.9992751459215137}
    ends = 0.9945236001074654, 1.004026691735562
    assert found.intervals == {"friction.f_pos.F_Coulomb": ends}
    assert found.units == ("N",)
    assert found.records["axis"].n == 41


# --- own code ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_law_and_functions()[0].save(tmp_path_factory.mktemp("own") / "own.fit")


def test_own_code_is_never_looked_up_by_a_name_in_the_file(own_file: Path) -> None:
    with pytest.raises(ValueError) as said:
        fx.load_fit(own_file)
    assert re.fullmatch(
        r"\S+own.fit holds what is not frictax's own, and no code: Drag of \S*test_saving, pull of"
        r" \S*test_saving, <lambda> of \S*test_saving. Hand it over: load_fit\('\S+own.fit',"
        r" known=<the machine fitted>\).",
        str(said.value),
    )


def test_own_code_that_predicts_something_else_is_refused(own_file: Path) -> None:
    class Drag(CheckedModule, fx.AbstractLaw):
        F: Scalar = parameter(AtLeast(0.0), "N")
        c: Scalar = parameter(AtLeast(0.0), "N.s2/m2")

        def __call__(self, v: Any) -> Any:
            return self.F + 0.5 * self.c * v**2

    with pytest.raises(ValueError, match=r"differs by .* times the noise. Hand over the code that"):
        fx.load_fit(own_file, known=[Drag, pull, lambda t: -0.2 * t])


def test_an_own_class_that_has_changed_its_fields_is_refused(own_file: Path) -> None:
    class Drag(fx.AbstractLaw):
        F: Any
        d: Any

        def __call__(self, v: Any) -> Any:
            return self.F + self.d * v

    with pytest.raises(ValueError, match=r"Its Drag has a c, which the class here has not."):
        fx.load_fit(own_file, known=[Drag, pull, lambda t: -0.2 * t])


def test_what_no_file_can_hold_is_said_before_anything_is_written(
    sweep_fit: fx.FitResult, tmp_path: Path
) -> None:
    odd = copy.copy(sweep_fit)
    object.__setattr__(odd, "rms", {"sweep": object()})
    with pytest.raises(ValueError, match=r"rms\.sweep is a object, which no file can hold"):
        odd.save(tmp_path / "x.fit")
    objects = dataclasses.replace(sweep_fit, costs=np.array([{}, {}]))
    with pytest.raises(ValueError, match=r"costs is an array of object, which no file can hold"):
        objects.save(tmp_path / "x.fit")
    assert not list(tmp_path.iterdir())


# --- files ---------------------------------------------------------------------------------------


def test_a_file_that_is_there_is_kept_unless_it_is_to_be_overwritten(
    sweep_fit: fx.FitResult, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x.fit"
    path.write_text("precious")
    with pytest.raises(
        FileExistsError, match=r"x.fit exists. Write save\('.*x.fit', overwrite=Tru"
    ):
        sweep_fit.save(path)
    assert path.read_text() == "precious"
    assert sweep_fit.save(path, overwrite=True).read_bytes() == content
    with pytest.raises(FileNotFoundError, match="There is no folder .*nowhere for the fit"):
        sweep_fit.save(tmp_path / "nowhere" / "x.fit")
    assert [p.name for p in tmp_path.iterdir()] == ["x.fit"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"", "is no fit file of frictax"),
        (b"v,f\n1,2\n", "is no fit file of frictax. Name one that `found.save` wrote."),
        (b"PK\x03\x04" + bytes(200), "is no fit file of frictax"),
    ],
    ids=["empty", "csv", "zip"],
)
def test_what_is_no_fit_file_is_told(given: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "x.fit").write_bytes(given)
    with pytest.raises(ValueError, match=says):
        fx.load_fit(tmp_path / "x.fit")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no file .*x.fit"):
        fx.load_fit(tmp_path / "x.fit")
    with pytest.raises(IsADirectoryError, match="is a folder. Name the fit file in it."):
        fx.load_fit(tmp_path)


def refused(content: bytes, path: Path) -> str:
    """The sentence that a file with this content gives."""
    path.write_bytes(content)
    with pytest.raises(ValueError) as said:
        fx.load_fit(path)
    text = str(said.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert path.name in text
    return text


def test_a_file_that_was_cut_or_of_which_bits_fell_over_is_always_noticed(
    content: bytes, tmp_path: Path
) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "x.fit"
    for cut in rng.integers(0, len(content), 300):
        says = "is damaged: its end is missing" if cut > 60 else "is no fit file|is damaged"
        assert re.search(says, refused(content[:cut], path))
    for at, bit in zip(rng.integers(0, len(content), 300), rng.integers(0, 8, 300), strict=True):
        bent = bytearray(content)
        bent[at] ^= 1 << bit
        assert re.search("is damaged|is no fit file", refused(bytes(bent), path))
    assert "is damaged" in refused(content + b"\n", path)


def rewritten(
    content: bytes, change: Callable[[dict[str, bytes]], None], version: int = 1
) -> bytes:
    """The file with other members, and the checksum that goes with them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, whole in members.items():
            archive.writestr(name, whole)
        archive.comment = b"frictax, format %d, sha256 %s" % (version, b"0" * 64)
    body = out.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def test_a_newer_format_is_told(content: bytes, tmp_path: Path) -> None:
    newer = rewritten(content, lambda members: None, 12)
    assert re.search(
        r"is of format 12, and frictax \S+ knows up to 1. Read it by a newer frictax.",
        refused(newer, tmp_path / "x.fit"),
    )


def test_a_member_that_is_missing_is_named(content: bytes, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
    for name in names:

        def change(members: dict[str, bytes], name: str = name) -> None:
            del members[name]

        assert name in refused(rewritten(content, change), tmp_path / "x.fit")


def test_an_unknown_class_is_named(content: bytes, tmp_path: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["fit.json"] = members["fit.json"].replace(b'"Coulomb"', b'"os.system"')

    said = refused(rewritten(content, change), tmp_path / "x.fit")
    assert "cannot be read by 0.1.0. It holds a os.system, which this one does not have." in said


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("evil",)


def test_nothing_in_a_file_is_run(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pickled = io.BytesIO()
    np.save(pickled, np.array([Evil()]), allow_pickle=True)

    def change(members: dict[str, bytes]) -> None:
        members[next(name for name in members if "costs" in name)] = pickled.getvalue()

    assert "allow_pickle=False" in refused(rewritten(content, change), tmp_path / "x.fit")
    assert not (tmp_path / "evil").exists()


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = node.items() if isinstance(node, dict) else enumerate(node)
    out = [(*at, key) for key in (node if isinstance(node, dict) else range(len(node)))]
    for key, x in inside:
        if isinstance(x, dict | list):
            out += places(x, (*at, key))
    return out


@pytest.mark.parametrize("way", ["taken out", "replaced"])
def test_content_that_save_never_writes_raises_nothing_but_a_sentence(
    content: bytes, way: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        head = json.loads(archive.read("fit.json"))
    rng, everywhere = np.random.default_rng(1), places(head)
    path, sentences = tmp_path / "x.fit", []
    for k in rng.integers(0, len(everywhere), 60):
        changed = copy.deepcopy(head)
        *way_there, last = everywhere[k]
        node: Any = changed
        for step in way_there:
            node = node[step]
        if way == "taken out":
            del node[last]
        else:
            node[last] = [7, "x", None, {"jax": "y"}, [[]], {"is": "Mass", "has": {}}][k % 6]

        def change(members: dict[str, bytes], changed: Any = changed) -> None:
            members["fit.json"] = json.dumps(changed).encode()

        path.write_bytes(rewritten(content, change))
        try:
            fx.load_fit(path)
        except ValueError as why:
            sentences.append(str(why))
    assert len(sentences) > 20
    assert all(path.name in says and "\n" not in says for says in sentences)


def test_with_numbers_of_32_bits_nothing_is_read(sweep_fit: fx.FitResult, tmp_path: Path) -> None:
    path = sweep_fit.save(tmp_path / "x.fit")
    with jax.enable_x64(False), pytest.raises(ValueError, match="`load_fit` needs 64 bit numbers"):
        fx.load_fit(path)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    t = np.linspace(0.0, 1.0, 41)
    axis = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0)),
        drive=fx.Force("mass", 3.0),
    )
    seen = fx.Record(t, outputs={"mass.v": 2.0 * t + 0.01 * np.sin(40.0 * t)}, name="axis")
    SAVED.parent.mkdir(exist_ok=True)
    found = fx.fit(axis, seen, free=["friction.f_pos.F_Coulomb"])
    print(found.save(SAVED, overwrite=True), found.values, found.intervals)
