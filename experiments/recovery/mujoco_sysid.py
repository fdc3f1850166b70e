"""The contestant MuJoCo: its system identification of the machines that it can describe.

After `pip install "mujoco[sysid]"`, `python experiments/recovery/mujoco_sysid.py` writes
`mujoco.csv` and its table in the README.
"""

import argparse
import contextlib
import csv
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from run import COLUMNS, HERE

from frictax.parameters import get

NAME = "mujoco.sysid"
BEGIN, END = "<!-- table: made by mujoco_sysid.py -->\n", "<!-- end of that table -->\n"
STEP = 0.0025  # [s] time step of MuJoCo, a quarter of the record's sample time
LIGHT, ARM = 0.01, 0.01  # [kg, m] body and arm for gravity; their inertia 1e-6 kg.m2 is negligible

# The joint is a slide or a hinge. `armature` is its mass or inertia, because both kinds have this
# field. Dry friction is as stiff as MuJoCo allows (a time constant of two steps).
XML = """
<mujoco>
  <option integrator="implicitfast" timestep="{step}" gravity="0 0 {gravity}"/>
  <worldbody>
    <body name="body">
      <inertial pos="0 0 -{arm}" mass="{light}" diaginertia="1e-9 1e-9 1e-9"/>
      <joint name="joint" type="{joint}" axis="1 0 0" armature="{inertia}" frictionloss="{dry}"
             damping="{viscous}" solreffriction="{stiff} 1" solimpfriction="0.99 0.99 0.001"/>
    </body>
  </worldbody>
  <actuator><motor name="drive" joint="joint"/></actuator>
  <sensor><{sensor} name="seen" joint="joint"/></sensor>
</mujoco>
"""
# Machine -> kind of joint, sensor, and m*g*l [N.m].
MACHINES = {
    "sliding": ("slide", "jointvel", 0.0),
    "turning": ("hinge", "jointpos", 0.0),
    "pendulum": ("hinge", "jointpos", 0.48),
}


def text(machine: str, start: np.ndarray) -> str:
    """Return the machine as MuJoCo XML; `start`: inertia, dry and viscous friction."""
    joint, sensor, mgl = MACHINES[machine]
    inertia, dry, viscous = start
    return XML.format(
        step=STEP, stiff=2 * STEP, gravity=-mgl / (LIGHT * ARM), light=LIGHT, arm=ARM,
        joint=joint, sensor=sensor, inertia=inertia, dry=dry, viscous=viscous,
    )  # fmt: skip


def fitted(machine: str, record: Any, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates (3,) and half intervals (3,) of inertia, dry and viscous friction. Options
    are defaults; bounds are a fifth of the start value and five times the start value.
    """
    import mujoco
    from mujoco import sysid

    def changes(field: str) -> Any:
        def change(spec: Any, p: Any) -> None:
            joint = spec.joint("joint")
            old = getattr(joint, field)
            setattr(joint, field, float(p.value[0]) if np.ndim(old) == 0 else [*p.value, 0.0, 0.0])

        return change

    spec = mujoco.MjSpec.from_string(text(machine, start))
    params = sysid.ParameterDict()
    for field, x in zip(("armature", "frictionloss", "damping"), start, strict=True):
        bounds = {"min_value": [0.2 * x], "max_value": [5.0 * x]}
        params.add(sysid.Parameter(field, [x], modifier=changes(field), **bounds))
    model = spec.compile()
    data = mujoco.MjData(model)
    (u,), (y,) = record.inputs.values(), record.outputs.values()
    control = sysid.TimeSeries.from_control_names(record.t, u[:, None], model, ["drive"])
    seen = sysid.TimeSeries.from_names(record.t, y[:, None], model, ["seen"])
    begin = sysid.create_initial_state(model, data.qpos, data.qvel, data.act)
    sequences = [sysid.ModelSequences("machine", spec, "run", begin, control, seen)]
    residual = sysid.build_residual_fn(models_sequences=sequences, n_threads=1)
    with contextlib.redirect_stdout(io.StringIO()):  # `optimize` prints every step
        best, result = sysid.optimize(params, residual, verbose=False)
    left, _, _ = residual(result.x, best)
    _, half = sysid.calculate_intervals(left, np.asarray(result.jac))
    return np.asarray(best.as_vector()), np.asarray(half)


def runs(machine: str, imperfection: str, seeds: int) -> list[dict[str, str]]:
    """Return the runs of MuJoCo as rows with the same columns as those of `run.runs`."""
    from eight_machines import CASES
    from imperfections import measured

    case, out = CASES[machine](), []
    truth = np.array(list(case.truth.values()))
    start = np.array([float(get(case.guess, path)) for path in case.truth])
    for seed in range(seeds):
        record = case.data(measured(case, imperfection, seed))
        value, half = fitted(machine, record, start)
        table = np.stack([value - truth, half / 1.96, value - half - truth, value + half - truth])
        for path, numbers in zip(case.truth, (table / truth).T, strict=True):
            row = [str(seed), NAME, path, *(f"{x:.5g}" for x in numbers), ""]
            out.append(dict(zip(COLUMNS, row, strict=True)))
    return out


def main() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    from scores import COLUMNS as SCORES, SHORT, scored

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--rows", type=Path, default=HERE / "mujoco.csv", help="its scores")
    options.add_argument("--readme", type=Path, default=HERE / "README.md", help="with the table")
    chosen = options.parse_args()
    begin, rows = time.monotonic(), []
    for machine in MACHINES:
        for imperfection in SHORT:
            of = runs(machine, imperfection, chosen.seeds)
            rows += scored(of, machine, imperfection, [NAME])
            print(f"{machine}, {imperfection}: {time.monotonic() - begin:.0f} s", flush=True)
    with chosen.rows.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, SCORES, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    before, _, rest = chosen.readme.read_text(encoding="utf-8").partition(BEGIN)
    new = before + BEGIN + table(rows) + END + rest.partition(END)[2]
    chosen.readme.write_text(new, encoding="utf-8")


def table(rows: list[dict[str, str]]) -> str:
    """Return a table with a line for each machine and imperfection."""
    from scores import shown

    lines = [
        "| machine | imperfection | coverage | width | bias | wrong |",
        "|---|---|---|---|---|---|",
    ]
    for machine, imperfection in dict.fromkeys((r["machine"], r["imperfection"]) for r in rows):
        of = [r for r in rows if (r["machine"], r["imperfection"]) == (machine, imperfection)]
        lines.append(f"| {' | '.join([machine, imperfection, *shown(of)[:4]])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
