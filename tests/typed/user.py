"""What a user writes, right and wrong: read by a type checker, and never run.

A line that ends in `# wrong` must be reported, and no other. What `reveal_type` is asked of is
what an editor offers.
"""

from typing import assert_type, reveal_type

import jax.numpy as jnp
import optax
from matplotlib.figure import Figure

import frictax as fx
from frictax.fitting import FitOptions

# -- a machine and its run

law = fx.Stribeck(F_prop=1.0, F_Coulomb=5.0, F_Stribeck=10.0, fexp=2.0)
fx.Stribeck(F_prop=1.0, F_coulomb=5.0, F_Stribeck=10.0, fexp=2.0)  # wrong
block = fx.Mechanism(
    mass=fx.Mass(m=1.0, v=0.5),
    friction=fx.SupportFriction("mass", f_pos=law, peak=1.1),
    drive=fx.Force("mass", fx.Sine(amplitude=25.0, f=0.25)),
)
ts = jnp.linspace(0.0, 5.0, 501)
run = fx.simulate(block, ts, fx.Adaptive(rtol=1e-8), energy=True)
assert_type(run, fx.Trajectory)
assert_type(run.plot(["mass"], rotational=False, width=6.0), Figure)
fx.simulate(block, ts, engine=fx.OnSamples(substeps=2))
fx.simulate(block, ts, energi=True)  # wrong
fx.simulate(block, ts, engine="adaptive")  # wrong
fx.Adaptive(rtoll=1e-8)  # wrong
run.plot(widht=6.0)  # wrong
assert_type(block.plot(width=6.0), Figure)
block.plot(height=3.0)  # wrong
fx.linearize(block, ts[0], run.ys[0], run.modes[0], inputs="drive")
fx.linearize(block, ts[0], run.ys[0], run.modes[0], drives="drive")  # wrong

# -- measurements

sweep = fx.Sweep.from_csv("sweep.csv", velocity="omega", force="torque", direction="positive")
fx.Sweep.from_csv("sweep.csv", velocity="omega", force="torque", direction="forward")  # wrong
fx.Sweep.from_csv("sweep.csv", velocity="v", force="f", decimal=",", sign=-1)
fx.Sweep.from_csv("sweep.csv", velocity="v", force="f", decimal=":")  # wrong
fx.Sweep.from_csv("sweep.csv", velocity="v", force="f", sign=2)  # wrong
sweep.select("negative")
sweep.select("left")  # wrong
record = fx.Record.from_csv(
    "run.csv", time="t", inputs={"drive": "F"}, outputs={"mass.s": fx.Column("q", unit="mm")}
)
fx.Record.from_csv("run.csv", time="t", outputs={"mass.s": "q"}, delimeter=";")  # wrong
fx.Column("q", unti="mm")  # wrong
assert_type(record.plot(width=6.0), Figure)
record.trim(0.0, 2.0, reset=True).decimate(4)
record.trim(0.0, 2.0, rest=True)  # wrong

# -- fits

reveal_type(FitOptions.__init__)
of_sweep = fx.fit(fx.Stribeck, sweep, offset=0.0, method=fx.Optax(optax.adam(0.1)), starts=8)
fx.fit(fx.Stribeck, sweep, objective=fx.FreeRun())  # wrong
fx.fit(fx.Stribeck, sweep, loss="huber")  # wrong
found = fx.fit(
    block,
    {"a": record, "b": record},
    free=["mass.m", "friction.f_pos"],
    own=["mass.v"],
    objective=fx.Windows(0.5),
    start=fx.InverseDynamics(cutoff=20.0),
    priors=[fx.Normal("mass.m", 1.0, 0.1)],
    bounds={"mass.m": (0.5, 2.0)},
    instruments={"outputs.mass.s": fx.Instrument(delay=1e-3)},
    engine=fx.OnSamples(),
    method=fx.LevenbergMarquardt(tolerance=1e-4),
    loss=fx.Huber(),
    level=0.9,
    starts=4,
    spread=0.5,
    seed=1,
    progress=print,
)
assert_type(found, fx.FitResult[fx.Mechanism])
assert_type(found.model, fx.Mechanism)
assert_type(found["mass.m"], fx.Estimate)
fx.fit(block, record, objectve=fx.Windows(0.5))  # wrong
fx.fit(block, record, objective=fx.Squares())  # wrong
fx.fit(block, record, objective="free run")  # wrong
fx.fit(block, record, method="lm")  # wrong
fx.fit(block, record, loss=fx.FreeRun())  # wrong
fx.fit(block, record, peak=1.1)  # wrong
fx.Windows(0.5, cutof=20.0)  # wrong
fx.fit_many(block, record, {"mass.s": ts}, free="mass.m", objective=fx.FreeRun())
fx.fit_many(block, record, {"mass.s": ts}, fre="mass.m")  # wrong
fx.fit_many(block, record, {"mass.s": ts}, objectve=fx.FreeRun())  # wrong
fx.weighted_residuals(block, record, fx.FreeRun(), engine=fx.OnSamples())
fx.weighted_residuals(block, record, engin=fx.OnSamples())  # wrong

# -- what a fit does

assert_type(found.uncertainty(fx.HAC()), fx.Uncertainty)
found.uncertainty("hac")  # wrong
assert_type(found.profile("mass.m", by=fx.HAC(), level=0.9), fx.Profile)
assert_type(found.profile(("mass.m", "mass.v"), points=9), fx.ProfilePair)
found.profile("mass.m", points=9)  # wrong
found.profile("mass.m", levle=0.9)  # wrong
assert_type(found.posterior(draws=500, warmup=500, chains=2, progress=True), fx.Posterior)
found.posterior(drawz=500)  # wrong
assert_type(found.posterior().plot(names=["mass.m"]), Figure)
assert_type(found.residual_study("a", cutoff=20.0), fx.ResidualStudy)
found.residual_study("a", cut=20.0)  # wrong
assert_type(found.residual_study()["speed"].strong, bool)
assert_type(found.missing().structures(), dict[str, fx.Structure])
assert_type(found.band([1.0, 2.0], level=0.9), fx.Band)
found.band([1.0, 2.0], levl=0.9)  # wrong
found.residual_study()["sped"]  # wrong
found.free_run("a", objective=fx.FreeRun(), draws=100, seed=1)
found.free_run("a", draw=100)  # wrong
found.validate(record, states=["mass.s"])
found.validate(record, state=["mass.s"])  # wrong
found.transfer(found)
found.report("report.html", title="Axis", notes=["one"], overwrite=False, profiles=[])
found.report("report.html", titel="Axis")  # wrong
assert_type(found.plot("a", width=6.0), Figure)
found.plot("a", size=6.0)  # wrong
assert_type(found.to_modelica("a", self_contained=True), str)
found.to_modelica("a", selfcontained=True)  # wrong
found.write_modelica("folder", overwrite=True, rows=100)
found.to_urdf("friction", v_max=1.0)
found.to_mujoco(name="friction", joint="hinge")
found.to_mujoco(name="friction", joints="hinge")  # wrong
assert_type(fx.report.draw_starts(found, width=5.0), Figure)

# -- which model, and what can be told

made = fx.compare(sweep, {"Coulomb": fx.Coulomb, "Stribeck": law}, offset=0.0, loss=fx.Huber())
assert_type(made, fx.Comparison)
assert_type(made["Coulomb"], fx.ComparedLaw)
fx.compare(sweep, cutoff=20.0)  # wrong
structures = {"one": fx.Structure(block, free=["mass.m"])}
several = fx.compare(record, structures, objective=fx.Windows(0.5), repeats=3, bands=2)
assert_type(several, fx.StructureComparison)
assert_type(several.plot(width=8.0), Figure)
fx.compare(record, structures, objectve=fx.Windows(0.5))  # wrong
fx.Structure(block, fre=["mass.m"])  # wrong
assert_type(fx.outlook(block, record, free=["mass.m"], by=fx.HAC()), fx.Outlook)
fx.outlook(block, record, starts=3)  # wrong
fx.outlook(block, record, objectve=fx.Windows(0.5))  # wrong
fx.outlook(fx.Coulomb, sweep, f_neg=fx.Coulomb, starts=3)
fx.default_structures(block, "friction", record, nodes=6, cutoff=20.0)
fx.default_structures(block, "friction", record, node=6)  # wrong

# -- kept, many machines, designed

found.save("motor.fit", overwrite=True)
found.save("motor.fit", overwrit=True)  # wrong
assert_type(fx.load_fit("motor.fit", known=[]), fx.FitResult)
fx.load_fit("motor.fit", know=[])  # wrong
fx.load_posterior("motor.draws", knwon=[])  # wrong
found.derived(["breakaway"], levl=0.9)  # wrong
found.missing(cutof=20.0)  # wrong
table = fx.fleet(block, [record], free=["mass.m"], out="fleet.parquet", jobs=1, resume=True)
assert_type(table, fx.Fleet)
fx.fleet(block, [record], free=["mass.m"], job=1)  # wrong
fx.fleet(block, [record], objectve=fx.Windows(0.5))  # wrong
assert_type(fx.population(table, ["mass.m"], level=0.9), fx.Population)
fx.population(table, ["mass.m"], levels=0.9)  # wrong
assert_type(fx.drift(table, own_temperature=True), fx.Drift)
fx.drift(table, own_temprature=True)  # wrong
assert_type(fx.verdicts(table, {"mass.m": (None, 2.0)}), fx.Verdicts)
fx.verdicts(table, limit={"mass.m": (None, 2.0)})  # wrong
fx.write_fleet_report(table, "fleet.html", overwrit=False)  # wrong
limits = fx.Limits(force=3.0, travel=0.2, band=(0.25, 3.0))
fx.Limits(forces=3.0)  # wrong
noise = {"mass.v": 2e-3}
experiment = fx.design(block, noise, duration=4.0, rate=50.0, limits=limits, starts=1)
assert_type(experiment, fx.Design)
fx.design(block, noise, duration=4.0, rate=50.0, limits=limits, start=1)  # wrong
experiment.check(100, seed=1)
experiment.check(100, sed=1)  # wrong
experiment.report("design.html", titel="Design")  # wrong
fx.limit_cycle(block, perod=1.0)  # wrong
fx.kalman_filter(block, record, start_sd={"mass.v": 0.1}, members=10)
fx.kalman_filter(block, record, start_sd={"mass.v": 0.1}, member=10)  # wrong
