"""What is known beforehand of numbers that are fitted to records."""

import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from rigs import T, U, block, record


@pytest.mark.slow
def test_a_smooth_prior_keeps_a_table_from_storing_the_speeds_at_which_the_record_dwells() -> None:
    speeds = 0.9 * np.sin(2 * np.pi * T / 6.0) * (1 + 0.2 * np.sin(2 * np.pi * 3.1 * T))
    force = np.interp(np.abs(speeds), [0, 1.2], [1.0, 1.6]) * np.sign(speeds)
    s = np.concatenate([[0.0], np.cumsum(0.5 * (speeds[1:] + speeds[:-1]) * np.diff(T))])
    u = force + np.gradient(speeds, T) + 0.2 * np.random.default_rng(0).standard_normal(T.size)
    run = fx.Record(T, {"drive": u}, {"mass.s": s}, name="run")
    nodes = np.linspace(0, 1.2, 13)
    rough = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=np.stack([nodes, np.full(13, 1.3)], axis=1)),
        drive=fx.Force("mass", 0.0),
    )
    free, objective = ["friction.f_pos"], fx.InverseDynamics(20.0)
    found = [
        fx.fit(rough, run, free=free, objective=objective, priors=priors)
        for priors in ([], [fx.Smooth("friction.f_pos.f", sd=0.002)])
    ]
    error = [
        np.max(np.abs(f.values["friction.f_pos.f"] - np.interp(nodes, [0, 1.2], [1.0, 1.6])))
        for f in found
    ]
    assert error[1] < 0.05  # .009 to .038 for six seeds of the noise
    assert error[0] > 0.1


@pytest.mark.slow
def test_a_normal_prior_gives_the_weighted_mean_of_prior_and_data() -> None:
    clean = np.asarray(record(block(), {"mass.v": 1e-150}).outputs["mass.v"])
    noisy = clean + 0.05 + 0.02 * np.random.default_rng(0).standard_normal(T.size)
    run = fx.Record(T, {"drive": U}, {"mass.v": noisy}, name="run")
    prior, path = fx.Normal("outputs.mass.v.offset", mean=0.048, sd=1e-3), "outputs.mass.v.offset"
    plain, found = (
        fx.fit(block(), run, free=[path]),
        fx.fit(block(), run, free=[path], priors=[prior]),
    )
    white = plain.uncertainty(fx.White())
    of_data, of_prior = white.standard_errors[path] ** -2, prior.sd**-2
    expected = (plain.values[path] * of_data + prior.mean * of_prior) / (of_data + of_prior)
    assert found.values[path] == pytest.approx(expected, rel=1e-5)
    assert found.standard_errors[path] == pytest.approx((of_data + of_prior) ** -0.5, rel=1e-2)


def test_a_smooth_prior_does_not_bend_a_line_over_uneven_speeds() -> None:
    v = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])
    sweep = fx.Sweep(np.repeat(v, 2), np.repeat(5.0 + v, 2) + np.tile([0.05, -0.05], 7))
    start = fx.Table(np.stack([v, np.full(7, 5.0)], axis=1))
    found = fx.fit(start, sweep, priors=[fx.Smooth("f", sd=1e-3)])
    np.testing.assert_allclose(found.values["f"], 5.0 + v, atol=1e-3)
    even, forces = np.arange(5.0), np.array([1.0, 4.0, 2.0, 2.0, 5.0])
    prior = fx.Smooth("f", sd=2.0)
    for values in ({"f": forces}, {"f": forces, "v": 3.0 * even}):
        np.testing.assert_allclose(prior.residuals(values), np.diff(forces, 2) / 2.0)


def test_a_prior_names_a_shared_parameter_and_a_smooth_one_a_table() -> None:
    sweep = fx.Sweep(np.arange(1.0, 9.0), 5.0 + np.arange(8.0))
    with pytest.raises(ValueError, match="`Smooth.path` must name the forces of a `Table`"):
        fx.fit(fx.Coulomb, sweep, priors=[fx.Smooth("F_prop", sd=0.1)])
    path = "friction.f_pos.F_Coulomb"
    options = FitOptions(own=[path], priors=[fx.Normal(path, mean=1.0, sd=0.1)])
    with pytest.raises(ValueError, match="that all records share, got 'friction"):
        build_problem(block(), {"a": record(block())}, options)
