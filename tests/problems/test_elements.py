"""Every contact element, sliding and turning, goes from a problem file to its report."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.problems import identify, read, result_texts
from frictax.problems.building import Place, build_machine as machine

T = np.linspace(0.0, 3.0, 301)

# Of each body: its position over time. Beside them the force that each contact takes up along it,
# by the values below.
SLIDES = """
rail = { kind = "Mass", m = 1.2 }
wheel = { kind = "Mass", m = 0.8 }
sledge.kind = "MassWithStopAndFriction"
sledge.m = 1.0
sledge.smin = -9
sledge.smax = 9
sledge.F_prop = 0.1
sledge.F_Coulomb = 0.6
sledge.F_Stribeck = 0
sledge.fexp = 5
support.kind = "SupportFriction"
support.body = "rail"
support.f_pos = { kind = "Coulomb", F_Coulomb = 0.7 }
support.f_neg = [[0, 0.5]]
brake = { kind = "Brake", body = "wheel", mu_pos = [[0, 0.2]], mu_neg = [[0, 0.1]], fn_max = 4.0 }
"""
TURNS = """
shaft = { kind = "Inertia", J = 1.2 }
disc = { kind = "Inertia", J = 0.8 }
hub = { kind = "Inertia", J = 1.0 }
bearing.kind = "BearingFriction"
bearing.body = "shaft"
bearing.tau_pos = { kind = "Coulomb", F_Coulomb = 0.7 }
bearing.tau_neg = [[0, 0.5]]
brake = { kind = "Brake", body = "disc", mu_pos = [[0, 0.2]], mu_neg = [[0, 0.1]], fn_max = 4.0 }
clutch = { kind = "Clutch", a = "shaft", b = "disc", mu_pos = [[0, 0.3]], fn_max = 2.0 }
freewheel = { kind = "OneWayClutch", a = "disc", b = "hub", mu_pos = [[0, 0.4]], fn_max = 2.0 }
"""


def two_ways(v: np.ndarray, forward: float, backward: float) -> np.ndarray:
    return np.where(v > 0, forward, -backward)


def taken_up(v: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The friction along each body that moves with speed `v`, of the elements above."""
    if "rail" in v:
        return {
            "rail": two_ways(v["rail"], 0.7, 0.5),
            "wheel": two_ways(v["wheel"], 0.8, 0.4),
            "sledge": two_ways(v["sledge"], 0.6, 0.6) + 0.1 * v["sledge"],
        }
    clutch, freewheel = two_ways(v["disc"] - v["shaft"], 0.6, 0.6), 0.8
    return {
        "shaft": two_ways(v["shaft"], 0.7, 0.5) - clutch,
        "disc": two_ways(v["disc"], 0.8, 0.4) + clutch - freewheel,
        "hub": np.full(T.size, freewheel),
    }


def folder_of(folder: Path, parts: str, turns: bool, free: dict[str, float]) -> Path:
    """A problem whose record is Newton's law, by masses of `parts` and motions that reverse, but
    that of the freewheel's hub.
    """
    table = tomllib.loads(parts)
    masses = {
        name: part.get("m", part.get("J"))
        for name, part in table.items()
        if "m" in part or "J" in part
    }
    place, speed, force, kind = (
        ("phi", "rad", "N.m", "Torque") if turns else ("s", "m", "N", "Force")
    )
    field = "tau" if turns else "f"
    s, v, a, record, lines = {}, {}, {}, {"t": T}, ""
    for i, name in enumerate(masses):
        w = 2.0 + 0.7 * i
        s[name], v[name], a[name] = (
            0.5 * np.sin(w * T),
            0.5 * w * np.cos(w * T),
            -0.5 * w**2 * np.sin(w * T),
        )
    if turns:
        s["hub"], v["hub"] = s["disc"] + 3.0 * T, v["disc"] + 3.0
        a["hub"] = a["disc"]
    friction, rng = taken_up(v), np.random.default_rng(0)
    for name, m in masses.items():
        record |= {
            f"{name}.u": m * a[name] + friction[name],
            f"{name}.y": s[name] + 1e-5 * rng.standard_normal(T.size),
        }
        parts += f'on_{name} = {{ kind = "{kind}", body = "{name}", {field} = 0.0 }}\n'
        lines += f'inputs.on_{name} = {{ column = "{name}.u", unit = "{force}" }}\n'
        lines += (
            f'outputs."{name}.{place}" = {{ column = "{name}.y", unit = "{speed}", sd = 1e-5 }}\n'
        )
    np.savetxt(
        folder / "run.csv",
        np.column_stack(list(record.values())),
        delimiter=",",
        header=",".join(record),
        comments="",
    )
    (folder / "problem.toml").write_text(
        'title = "All elements"\n[records.run]\nfile = "run.csv"\ntime ='
        f' "t"\n{lines}\n[machine]{parts}\n[fit]\nfree ='
        f" {json.dumps([name.partition('[')[0] for name in free])}\nobjective = {{ kind ="
        f' "InverseDynamics", cutoff = 20.0 }}\n[uncertainty]\nprofiles = ["{next(iter(free))}"]\n'
    )
    return folder


BRAKE = {"brake.mu_pos.f[0]": 0.2, "brake.mu_neg.f[0]": 0.1}
FOUND = {
    "slides": (
        SLIDES,
        {
            "support.f_pos.F_Coulomb": 0.7,
            "support.f_neg.f[0]": 0.5,
            **BRAKE,
            "sledge.F_Coulomb": 0.6,
        },
    ),
    "turns": (
        TURNS,
        {
            "bearing.tau_pos.F_Coulomb": 0.7,
            "bearing.tau_neg.f[0]": 0.5,
            **BRAKE,
            "clutch.mu_pos.f[0]": 0.3,
            "freewheel.mu_pos.f[0]": 0.4,
        },
    ),
}


@pytest.mark.parametrize("how", FOUND)
def test_a_problem_file_holds_all_elements(how: str, tmp_path: Path) -> None:
    parts, true = FOUND[how]
    problem = read(folder_of(tmp_path, parts, how == "turns", true))
    held = {name: type(part).__name__ for name, part in problem.machine.named_parts()}
    for name, part in tomllib.loads(parts).items():
        assert held[name] == part["kind"]


@pytest.mark.slow
@pytest.mark.parametrize("how", FOUND)
def test_all_elements_of_a_machine_go_from_its_problem_file_to_its_report(
    how: str, tmp_path: Path
) -> None:
    parts, true = FOUND[how]
    made = identify(folder_of(tmp_path, parts, how == "turns", true))
    texts = result_texts(made)
    result, force = json.loads(texts["result.json"]), "N.m" if how == "turns" else "N"
    found = {row["name"]: row for row in result["errors"]["estimates"]}
    for name, value in true.items():
        assert found[name]["value"] == pytest.approx(value, rel=0.05), name
        assert found[name]["unit"] == ("1" if ".mu_" in name else force)
    contacts = set(made.motions["run"].friction)
    assert contacts == {name.partition(".")[0] for name in true}
    assert all(np.isfinite(f).all() and f.any() for f in made.motions["run"].friction.values())
    report = texts["report.html"]
    assert f'"friction [{force}]"' in report
    assert all(f'"name":"{name}"' in report for name in contacts)
    (profile,) = result["profiles"].values()
    assert profile["says"].endswith("(95 %, profile likelihood, Guarded)")


MASS, INERTIA = 'body = { kind = "Mass", m = 1.2 }', 'body = { kind = "Inertia", J = 1.2 }'
TWO = INERTIA + '\nother = { kind = "Inertia", J = 0.5 }\nc = { a = "body", b = "other", '
LAW, BACK = (
    '{ kind = "Coulomb", F_Coulomb = 0.8, F_prop = 0.1 }',
    '{ kind = "Coulomb", F_Coulomb = 0.5, F_prop = 0.2 }',
)
STOP = (
    'body = { kind = "MassWithStopAndFriction", m = 1.2, F_prop = 0.1, F_Coulomb = 0.8, F_Stribeck'
    " = 0.2, fexp = 5.0, "
)
SUPPORT = f'{MASS}\nc = {{ kind = "SupportFriction", body = "body", f_pos = {LAW}'
BEARING = f'{INERTIA}\nc = {{ kind = "BearingFriction", body = "body", tau_pos = {LAW}'
PRESSED = "mu_pos = [[0, 0.2]], fn_max = 4.0"
ALONE = {
    "support, two ways": (f"{SUPPORT}, f_neg = {BACK} }}", "c.f_neg.F_Coulomb"),
    "stops, two ways": (f"{STOP} smin = -0.3, smax = 0.3, f_neg = {BACK} }}", "body.F_Coulomb"),
    "bearing": (f"{BEARING} }}", "c.tau_pos.F_Coulomb"),
    "brake": (
        f'{MASS}\nc = {{ kind = "Brake", body = "body", {PRESSED}, mu_neg = [[0, 0.25]] }}',
        "c.mu_neg.f",
    ),
    "drag and ripple": (
        f'{SUPPORT} }}\nair = {{ kind = "QuadraticSpeedDependentForce", body = "body", f_nominal ='
        ' -0.3 }\ncogging = { kind = "PeriodicPositionDependentForce", body = "body", f_sin = 0.4,'
        " period = 0.3 }",
        "air.f_nominal",
    ),
    "freewheel": (f'{TWO} kind = "OneWayClutch", {PRESSED} }}', "c.mu_pos.f"),
    "lossy gear": (
        f'{TWO} kind = "LossyGear", ratio = 2, lossTable = [[0, 0.9, 0.85, 0.1, 0.1]] }}',
        "body.J",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("element", ALONE)
def test_an_element_alone_is_found_by_free_runs_and_reported(element: str, tmp_path: Path) -> None:
    parts, path = ALONE[element]
    turns = "Inertia" in parts
    drive: Any = fx.Torque if turns else fx.Force
    u = 3.0 * np.sin(2.2 * T) + 1.5 * np.sin(5.1 * T)
    built = dict(machine(tomllib.loads(parts), Place("problem.toml")).named_parts())
    truth = fx.Mechanism(**built, drive=drive("body", fx.Sampled(jnp.asarray(T), jnp.asarray(u))))
    run, place = fx.simulate(truth, jnp.asarray(T)), "phi" if turns else "s"
    bodies = [name for name in ("body", "other") if name in built]
    seen = {
        n: (
            np.asarray(getattr(run[n], place))
            + 1e-4 * np.random.default_rng(i).standard_normal(T.size)
        )
        for i, n in enumerate(bodies)
    }
    np.savetxt(
        tmp_path / "run.csv",
        np.column_stack([T, u, *seen.values()]),
        delimiter=",",
        header=",".join(["t", "u", *seen]),
        comments="",
    )
    outputs = "".join(
        f'outputs."{n}.{place}" = {{ column = "{n}", unit = "{"rad" if turns else "m"}", sd = 1e-4'
        " }\n"
        for n in bodies
    )
    kind, unit = (
        ('kind = "Torque", tau = 0.0', "N.m") if turns else ('kind = "Force", f = 0.0', "N")
    )
    (tmp_path / "problem.toml").write_text(
        f'title = "{element}"\n[records.run]\nfile = "run.csv"\ntime = "t"\ninputs.drive = {{'
        f' column = "u", unit = "{unit}" }}\n{outputs}[machine]\n{parts}\ndrive = {{ body = "body",'
        f' {kind} }}\n[fit]\nfree = ["{path}"]\n'
    )
    made = identify(tmp_path)
    assert "report.html" in result_texts(made)
    assert made.found.converged
    known: Any = machine(tomllib.loads(parts), Place("problem.toml"))
    for step in path.split("."):
        known = known[step] if isinstance(known, fx.Mechanism) else getattr(known, step)
    np.testing.assert_allclose(made.found.values[path], known, rtol=0.02)
    (friction,) = made.motions["run"].friction.values()
    part = run["c" if "c" in built else "body"]
    true = next(getattr(part, name) for name in ("f", "tau", "tauLoss") if hasattr(part, name))
    assert np.median(np.abs(friction - np.asarray(true))) < 0.02
