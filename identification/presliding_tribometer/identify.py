"""Which model describes presliding friction with the fewest parameters?

Fits bristles to the strokes of a tribometer (`frictax data fetch presliding_tribometer`). The
record has displacement and friction, so no equation of motion is integrated.

Run: python identification/presliding_tribometer/identify.py
"""

import jax
import numpy as np

import frictax as fx
from frictax.bristles import AbstractBristle

LOADED = 8.0, 209.5  # [s] begin and end of the loaded part
LIMITS = ["guide.f_pos.F_Coulomb", "guide.f_neg.F_Coulomb"]
TOLD = "stiffness-in-series bristle-undamped at-lower-bound near-bound null-direction".split()


def elements(n: int) -> AbstractBristle:
    """Return `n` springs with sliders, of 4e4 to 5e4 N/m in total, that slip one by one."""
    grid = np.geomspace(0.5, 2.0, n) if n > 1 else np.ones(1)
    return fx.MaxwellSlip(4e4 / (n * grid), share=np.ones(n))


BRISTLES = {
    "as good as rigid": (fx.Dahl(1e9), []),
    "Dahl": (fx.Dahl(4e4), ["sigma_0"]),
    "LuGre": (fx.LuGre(4e4, 10.0), ["sigma_0", "sigma_1"]),
    "spring and slider": (elements(1), ["k"]),
    "Maxwell-slip of 2": (elements(2), ["k", "ratio"]),
    "Maxwell-slip of 4": (elements(4), ["k", "ratio"]),
    "elasto-plastic": (fx.ElastoPlastic(4e4, z_ba=0.7), ["sigma_0", "z_ba"]),
}


def strokes(every: int = 1) -> fx.Record:
    """Return the loaded part of the record; `every`: keep one of so many samples."""
    path = fx.data.path("presliding_tribometer") / "test_data_2.txt"
    t, _, s, f = np.loadtxt(path, skiprows=1, unpack=True)
    loaded = (t >= LOADED[0]) & (t <= LOADED[1])
    t, s, f = (x[loaded][::every] for x in (t, s, f))
    # The file has the force on the stage, whose sign is opposite to that of the friction.
    units = {"stage": "mm", "guide.f": "uN"}
    return fx.Record(t, {"stage": s}, {"guide.f": -f}, units=units, name="strokes")


def tribometer(bristle: AbstractBristle) -> fx.Mechanism:
    """Return a table on a guide with a friction limit for each direction; the stage moves it."""
    law = fx.Coulomb(F_Coulomb=2.5)
    return fx.Mechanism(
        table=fx.Mass(m=1.0),
        stage=fx.Position("table", 0.0),
        guide=fx.SupportFriction("table", f_pos=law, f_neg=law, bristle=bristle),
    )


def structure(name: str) -> fx.Structure:
    bristle, free = BRISTLES[name]
    return fx.Structure(tribometer(bristle), [*LIMITS, *(f"guide.bristle.{n}" for n in free)])


def fitted(name: str, record: fx.Record) -> fx.FoundMachine:
    one = structure(name)
    return fx.fit(one.model, record, free=one.free)


def scatter(record: fx.Record) -> tuple[float, float]:
    """Return the rms deviation [N] of the strokes from their mean, forward and backward. A model of
    the contact cannot explain this scatter, because all strokes have the same motion.
    """
    s, f = record.inputs["stage"], record.outputs["guide.f"]
    middle = 0.5 * (s.max() + s.min())
    at = np.linspace(s.min() + 2e-6, s.max() - 2e-6, 200)
    found = []
    for way in (1.0, -1.0):
        side = way * (s - middle)
        starts = np.flatnonzero((side[:-1] < 0) & (side[1:] >= 0))
        half = round(0.6 * record.rate)
        like = []
        for i in starts[1:-1]:
            part = slice(i - half, i + half)
            order = np.argsort(s[part])
            like.append(np.interp(at, s[part][order], f[part][order]))
        found.append(float(np.sqrt(np.mean(np.var(like, axis=0)))))
    return found[0], found[1]


def main() -> None:
    record = strokes()
    print(f"{'':18}{'rms [N]':>9}{'condition':>11}  values")
    for name in BRISTLES:
        found = fitted(name, record)
        condition = found.identifiability.condition
        values = ", ".join(
            f"{e.name.removeprefix('guide.')} {e.value:.4g}" for e in found.estimates
        )
        print(f"{name:18}{found.rms['strokes']['guide.f']:9.4f}{condition:11.3g}  {values}")
        for notice in found.notices_at_hand:
            if notice.code in TOLD:
                print(f"{'':18}! {notice}")
    print("like strokes differ by {:.3f} and {:.3f} N rms".format(*scatter(record)))
    made = fx.compare(
        strokes(4), {name: structure(name) for name in BRISTLES}, objective=fx.FreeRun(), repeats=5
    )
    print(made)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
