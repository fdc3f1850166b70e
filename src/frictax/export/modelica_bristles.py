"""Contacts with a bristle as Modelica's components."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from frictax.bristles import Dahl, ElastoPlastic, LuGre
from frictax.bristles.bristle import inverse_fading_speed
from frictax.mechanism.layout import Contact

from .modelica_sheet import Sheet
from .modelica_words import law_table, matrix, number

_ELEMENTS = {Dahl: "LuGreFriction", LuGre: "LuGreFriction", ElastoPlastic: "ElastoPlasticFriction"}


def write_bristle(
    sheet: Sheet, name: str, part: Any, contact: Contact, field: str, unit: str
) -> None:
    """Write the friction called `name`, the law of which is in `field`; raises `ValueError`, one
    sentence, for a bristle that the elements cannot say.

    The library has none of them.
    """
    bristle, here, support = part.bristle, sheet.names[name], contact.support
    turns = sheet.turns(contact.flange) or (support is not None and sheet.turns(support))
    if type(bristle) not in _ELEMENTS or float(getattr(bristle, "exponent", 1.0)) != 1.0:
        raise ValueError(
            f"`{name}.bristle` is {bristle!r}, for which the export has no element. It has"
            " `LuGre`, `ElastoPlastic`, and `Dahl` with the exponent 1; or leave it out, for"
            " friction that sticks."
        )
    sigma_1 = jnp.asarray(getattr(bristle, "sigma_1", 0.0))
    v_d = getattr(bristle, "v_d", None)
    modifiers = [
        f"sigma_0={number(bristle.sigma_0)}",
        f"sigma_1={number(sigma_1)}",
        f"z_start={number(bristle.z)}",
    ]
    said = []
    for way, direction, which in (
        ("forward", 1, field),
        ("backward", -1, field.replace("_pos", "_neg")),
    ):
        law = part.law(direction)
        rows, words = law_table(law, f"{name}.{which}", sheet.tolerance, sheet.v_max, unit)
        viscous = float(law.viscous_slope)
        bends = np.column_stack([rows[:, 0], rows[:, 1] - viscous * rows[:, 0]])
        modifiers += [
            f"{way}={matrix(bends)}",
            f"viscous_{way}={number(viscous)}",
            f"fading_{way}={number(inverse_fading_speed(sigma_1, v_d, law))}",
        ]
        if isinstance(bristle, ElastoPlastic):
            least = law.f0 if law.stribeck_dip is None else law.stribeck_dip[0]
            modifiers.append(f"least_{way}={number(least)}")
        if direction == 1 or law is not part.law(1):
            said.append(f"{words}; the viscous part is beside it")
    if isinstance(bristle, ElastoPlastic):
        modifiers.append(f"z_ba={number(bristle.z_ba)}")
    element = ("Rotational" if turns else "") + _ELEMENTS[type(bristle)]
    sheet.declare(element, here, modifiers, own=True, comment="\n".join(said))
    sheet.connect(f"{here}.flange_b", sheet.flange(contact.flange, turns=turns))
    grounded = sheet.housing(name, turns) if support is None else sheet.flange(support, turns=turns)
    sheet.connect(f"{here}.support", grounded)
