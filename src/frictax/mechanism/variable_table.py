"""The table of variables: name, meaning and unit of every variable of a part in a result.

The result classes, the tables with units and the units of measured channels use this table.
`measurements` imports this module, and must work without JAX. Therefore this module does not import
JAX.
"""

from typing import NamedTuple


class Variable(NamedTuple):
    """A row of the table `VARIABLES`.

    - `meaning`: the label in tables and reports.
    - `unit`, `rotational_unit`: the SI unit for a part that slides, and for a part that turns.
    - `rotational_name`: the variable's name for a part that turns; None if the name is the same.
    - `kind`: one of "number", "mode" (a whole number) and "flag" (true or false).
    """

    meaning: str
    unit: str
    rotational_unit: str
    rotational_name: str | None = None
    kind: str = "number"


VARIABLES = {
    # The next variables describe a motion.
    "s": Variable("position", "m", "rad", "phi"),
    "v": Variable("velocity", "m/s", "rad/s", "w"),
    "a": Variable("acceleration", "m/s2", "rad/s2"),
    "phi": Variable("angle", "rad", "rad"),
    "w": Variable("angular velocity", "rad/s", "rad/s"),
    "s_rel": Variable("extension", "m", "rad", "phi_rel"),
    "v_rel": Variable("rate of extension", "m/s", "rad/s", "w_rel"),
    "a_rel": Variable("relative acceleration", "m/s2", "rad/s2"),
    "phi_rel": Variable("relative angle", "rad", "rad"),
    "w_rel": Variable("relative angular velocity", "rad/s", "rad/s"),
    "v_relfric": Variable("velocity of the sliding faces", "m/s", "rad/s", "w_relfric"),
    "w_relfric": Variable("angular velocity of the sliding faces", "rad/s", "rad/s"),
    "a_relfric": Variable("acceleration of the sliding faces", "m/s2", "rad/s2"),
    # The next variables are forces and powers.
    "f": Variable("force", "N", "N.m", "tau"),
    "tau": Variable("torque", "N.m", "N.m"),
    "f0": Variable("sliding friction at rest", "N", "N.m", "tau0"),
    "tau0": Variable("sliding friction at rest", "N.m", "N.m"),
    "f0_max": Variable("breakaway force", "N", "N.m", "tau0_max"),
    "tau0_max": Variable("breakaway torque", "N.m", "N.m"),
    "fn": Variable("normal force", "N", "N"),
    "lossPower": Variable("power lost", "W", "W"),
    # The next variables are states of a contact.
    "mode": Variable("mode (-1 backward, 0 stuck, 1 forward, 2 free)", "1", "1", kind="mode"),
    "sa": Variable("curve parameter", "1", "1"),
    "locked": Variable("whether the contact is stuck", "1", "1", kind="flag"),
    "stuck": Variable("whether the contact is stuck", "1", "1", kind="flag"),
    "free": Variable("whether there is no normal force", "1", "1", kind="flag"),
    "stopped": Variable(
        "at the lower stop (-1), at no stop (0), at the upper stop (1)", "1", "1", kind="mode"
    ),
    # The next variables belong to bristles.
    "z": Variable("deflection of the bristle", "m", "rad"),
    "f_z": Variable("force in the bristle", "N", "N.m", "tau_z"),
    "tau_z": Variable("torque in the bristle", "N.m", "N.m"),
    # The next variables belong to drives and gears.
    "s_ref": Variable("reference position", "m", "rad"),
    "phi_a": Variable("angle of the first body", "rad", "rad"),
    "phi_b": Variable("angle of the second body", "rad", "rad"),
    "w_a": Variable("angular velocity", "rad/s", "rad/s"),
    "a_a": Variable("acceleration", "m/s2", "rad/s2"),
    "tau_a": Variable("torque", "N.m", "N.m"),
    "tauLoss": Variable("torque lost", "N.m", "N.m"),
    "phi_sun": Variable("angle of the sun", "rad", "rad"),
    "phi_ring": Variable("angle of the ring", "rad", "rad"),
    "phi_carrier": Variable("angle of the carrier", "rad", "rad"),
    # The next variables describe heat.
    "T": Variable("temperature", "K", "K"),
    "Q_flow": Variable("heat flow", "W", "W"),
}


def rotational_name(name: str) -> str:
    """Return the name of variable `name` on a part that turns.

    >>> rotational_name("f0_max"), rotational_name("a")
    ('tau0_max', 'a')
    """
    return VARIABLES[name].rotational_name or name
