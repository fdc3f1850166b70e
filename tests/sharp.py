"""An experiment with many short slips: the force makes the worst relative error of six numbers
least, and thereby leads the block to the edges of its events.
"""

import jax.numpy as jnp
import numpy as np

import frictax as fx

T = np.linspace(0.0, 10.0, 2001)
TRUTH = {
    "mass.m": 1.0,
    "friction.f_pos.F_Coulomb": 1.0,
    "friction.f_pos.F_prop": 0.2,
    "friction.f_pos.F_Stribeck": 0.4,
    "friction.f_pos.fexp": 5.0,
    "friction.peak": 1.1,
}
FREE = ["mass.m", "friction.f_pos", "friction.peak"]
# of sines and cosines of 0.1, 0.2, ..., 3 Hz
_SINES = np.array(
    [
        0.13,
        0.469,
        -0.855,
        -0.125,
        0.515,
        0.754,
        -0.452,
        0.037,
        0.312,
        0.462,
        -0.174,
        -1.045,
        -0.552,
        0.772,
        0.411,
        0.674,
        -0.095,
        -0.194,
        -0.26,
        0.15,
        0.297,
        1.158,
        0.437,
        0.196,
        0.605,
        -0.218,
        0.526,
        0.009,
        0.863,
        -0.083,
    ]
)
_COSINES = np.array(
    [
        -0.074,
        0.458,
        -0.177,
        0.895,
        0.105,
        -0.268,
        -1.205,
        0.707,
        1.781,
        -0.298,
        0.67,
        0.555,
        1.091,
        0.899,
        -0.251,
        0.457,
        0.943,
        0.697,
        -0.327,
        -0.394,
        0.712,
        -0.607,
        0.395,
        -0.475,
        0.229,
        0.323,
        -0.292,
        -0.459,
        0.13,
        -0.138,
    ]
)
_PHASES = 2.0 * np.pi * 0.1 * np.arange(1, 31)[:, None] * T
FORCE = 3.0 * np.tanh((_SINES @ np.sin(_PHASES) + _COSINES @ np.cos(_PHASES)) / 3.0)


def block(values: np.ndarray) -> fx.Mechanism:
    """With the numbers in the order of `TRUTH`."""
    m, F_Coulomb, F_prop, F_Stribeck, fexp, peak = values.tolist()
    law = fx.Stribeck(F_Coulomb=F_Coulomb, F_prop=F_prop, F_Stribeck=F_Stribeck, fexp=fexp)
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=law, peak=peak),
        drive=fx.Force("mass", fx.Sampled(jnp.asarray(T), jnp.asarray(FORCE))),
    )


def draws(count: int, sd: float, first: int = 0) -> list[tuple[fx.Mechanism, fx.Record]]:
    """Starts that are 5 to 20 % off, `peak` in its distance from 1, with noisy records."""
    truth, out = np.array(list(TRUTH.values())), []
    clean = np.asarray(fx.simulate(block(truth), T)["mass"].v)
    for i in range(first, first + count):
        rng, v = np.random.default_rng(1000 + i), clean.copy()
        v[1:] += sd * rng.standard_normal(T.size - 1)
        off = 1.0 + rng.choice([-1, 1], 6) * rng.uniform(0.05, 0.2, 6)
        start = np.append(truth[:5] * off[:5], 1.0 + 0.1 * off[5])
        out.append((block(start), fx.Record(T, {"drive": FORCE}, {"mass.v": v}, sd={"mass.v": sd})))
    return out


# The least sums of squares known of `draws(60, 0.01)`, from 48 random kicks of each and probes.
LEAST = np.array(
    [
        1914.66,
        1937.43,
        1994.68,
        1911.82,
        2009.90,
        1948.99,
        1946.98,
        1930.57,
        1945.60,
        1924.61,
        1976.70,
        2049.08,
        1976.69,
        1987.11,
        1973.35,
        1955.89,
        2095.92,
        2057.17,
        1958.93,
        2053.62,
        1958.95,
        2029.80,
        2039.95,
        1979.10,
        1919.96,
        1903.32,
        1978.23,
        1975.17,
        2101.08,
        1902.65,
        2058.45,
        2000.59,
        2074.29,
        2013.58,
        2091.23,
        2035.27,
        1965.94,
        1985.84,
        1960.06,
        2036.45,
        1954.90,
        2121.34,
        1897.67,
        1948.86,
        2039.70,
        2046.32,
        2044.18,
        1977.91,
        1945.31,
        2035.80,
        2159.71,
        2130.87,
        1983.17,
        1987.80,
        2001.61,
        1904.69,
        2053.20,
        1928.48,
        1981.47,
        2026.93,
    ]
)
