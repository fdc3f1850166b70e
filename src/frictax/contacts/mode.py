"""The modes of a friction element."""

import enum


class Mode(enum.IntEnum):
    """The state of a friction element, with the numbers of Modelica's PartialFriction.

    BACKWARD and FORWARD: sliding with negative or positive relative velocity. STUCK: at rest, held
    by friction. FREE: no normal force, no friction. UNKNOWN: before the first mode is chosen; no
    run returns it.
    """

    BACKWARD = -1
    STUCK = 0
    FORWARD = 1
    FREE = 2
    UNKNOWN = 3
