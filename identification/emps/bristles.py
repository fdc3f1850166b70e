"""Does the axis have presliding, and does a bristle improve the model with dry friction?

Run: python identification/emps/bristles.py      (four minutes)
"""

import jax
from identify import DIRECTIONS, axis, folder, read

import frictax as fx
from frictax.bristles import AbstractBristle

BRISTLES: dict[str, tuple[AbstractBristle | None, list[str]]] = {
    "rigid": (None, []),
    "Dahl": (fx.Dahl(1e6), ["sigma_0"]),
    "LuGre": (fx.LuGre(1e6, 1e3), ["sigma_0", "sigma_1"]),
    "elasto-plastic": (fx.ElastoPlastic(1e6, z_ba=0.7), ["sigma_0"]),
}


def structures(*names: str) -> dict[str, fx.Structure]:
    """Return structures of the axis with friction by direction, without and with bristles."""
    out, parts = {}, dict(axis().named_parts())
    for name in names or BRISTLES:
        bristle, free = BRISTLES[name]
        rigid = parts["friction"]
        friction = fx.SupportFriction(
            "mass", f_pos=rigid.f_pos, f_neg=rigid.f_neg, peak=1.0, bristle=bristle
        )
        out[name] = fx.Structure(
            fx.Mechanism(**(parts | {"friction": friction})),
            [*DIRECTIONS, *(f"friction.bristle.{number}" for number in free)],
        )
    return out


def compared(record: fx.Record, *names: str) -> fx.StructureComparison:
    """Compare structures by inverse dynamics. Bristle states follow from the measured motion."""
    return fx.compare(record, structures(*names), objective=fx.InverseDynamics(70.0))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    print(compared(read("identification", folder())))
