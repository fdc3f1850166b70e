"""Advice for parameter names of the Modelica Standard Library that frictax does not have."""

from collections.abc import Iterable

_TIMES = "Leave it out: frictax locates events in time, at any speed."
_SCALES = "It scales or chooses a state for Modelica's solvers. Leave it out."
_ELEMENT_4 = "since version 4.0 of the Modelica Standard Library"
_FLANGE = (
    "Parts name bodies instead of connecting flanges. Write the name of the body, such as"
    " 'mass' or 'mass.flange_a'."
)
_SUPPORT = (
    "Write support='housing', the name of the body or `Fixed` that bears the friction; a part"
    " without `support` is attached to the ground."
)
_HEAT = (
    "Every run has `lossPower`. Write HeatCapacitor(('brake',), C=...) for a temperature, with the"
    " names of the parts that heat it."
)
_START = "Write the start value itself, such as {}=0.5; it is always fixed."
_ALONG = "Leave it out: the force opposes the motion in both directions."
_TABLE_FILE = "Write Sampled(times, values) with the columns of the table."
_CONSTANT = "Write the number itself, such as {}."
_STEP = "Write {}(body, Step(height=..., offset=..., startTime=...))."

# For each name in Modelica: the name in frictax (empty if it does not exist), and advice.
_NAMES: dict[str, tuple[str, str]] = {
    # The next names belong to friction elements.
    "mue_pos": ("mu_pos", f"It has this name {_ELEMENT_4}."),
    "mue0": ("mu_pos", "The first row of mu_pos is the coefficient at rest: [[0, 0.5]]."),
    "mu0": ("mu_pos", "The first row of mu_pos is the coefficient at rest: [[0, 0.5]]."),
    "useSupport": ("", _SUPPORT),
    "useHeatPort": ("", _HEAT),
    "heatPort": ("", _HEAT),
    "v_small": ("", _TIMES),
    "w_small": ("", _TIMES),
    "smoothness": (
        "",
        "A `Table` joins its rows by straight lines (LinearSegments). Leave it out, or add rows"
        " where the curve bends.",
    ),
    "phi_nominal": ("", _SCALES),
    "stateSelect": ("", _SCALES),
    "v_relfric": ("", "It follows from the motion: read it from a run."),
    "w_relfric": ("", "It follows from the motion: read it from a run."),
    "startForward": ("", "It follows from the motion: read it from a run."),
    "startBackward": ("", "It follows from the motion: read it from a run."),
    "locked": ("", "It follows from the motion: read it from a run."),
    "stuck": ("", "It follows from the motion: read it from a run."),
    "mode": ("", "It follows from the motion: read it from a run."),
    "sa": ("", "It follows from the motion: read it from a run."),
    "f0": ("", "It follows from the law at rest: read it from a run."),
    "f0_max": ("peak", "Breakaway is peak times the law at rest."),
    "tau0": ("", "It follows from the law at rest: read it from a run."),
    "tau0_max": ("peak", "Breakaway is peak times the law at rest."),
    "peak2": ("peak", "frictax takes the larger of peak and 1.0001 in a freewheel, as Modelica."),
    "peak": (
        "",
        "A `MassWithStopAndFriction` breaks away at 1.001 times its friction at rest, as in"
        " Modelica. Take a `SupportFriction` for another peak.",
    ),
    "fn": ("fn_max", "The normal force is fn_max*f_normalized."),
    # The next names belong to bodies and to parts that join bodies.
    "flange": ("", _FLANGE),
    "flange_a": ("", _FLANGE),
    "flange_b": ("", _FLANGE),
    "support": ("", "This part is attached to the ground, or to the bodies that it names."),
    "s_start": ("s", _START.format("s")),
    "v_start": ("v", _START.format("v")),
    "phi_start": ("phi", _START.format("phi")),
    "w_start": ("w", _START.format("w")),
    "s_rel_start": ("", "It follows from the positions of the two bodies. Start these."),
    "v_rel_start": ("", "It follows from the speeds of the two bodies. Start these."),
    "phi_rel_start": ("", "It follows from the angles of the two bodies. Start these."),
    "w_rel_start": ("", "It follows from the speeds of the two bodies. Start these."),
    "a_start": ("", "It follows from the forces. Leave it out."),
    "a": ("", "An acceleration follows from the forces. Leave it out."),
    "initType": ("", "Positions and speeds at the start are given by s, v, phi and w."),
    "phi0": ("s0", "One `Fixed` holds bodies that slide and bodies that turn."),
    "b": ("backlash", "`b` names the second body here."),
    "s_nominal": ("", _SCALES),
    "i": ("ratio", "It has this name since version 3 of the Modelica Standard Library."),
    "ideal": ("", "It follows from lossTable. Leave it out, or take `IdealGear`."),
    "T_start": ("T", _START.format("T")),
    "der_T": ("", "It follows from the heat flows. Leave it out."),
    # The next names belong to sources.
    "phi_ref": ("s", "A `Position` prescribes translations and rotations by `s`."),
    "s_ref": ("s", "A `Position` prescribes its motion by `s`."),
    "exact": ("", "Leave it out: the motion is followed exactly."),
    "f_crit": ("", "Leave it out: the motion is followed exactly, without a filter."),
    "f_constant": ("f", _CONSTANT.format("Force('mass', 5.0)")),
    "tau_constant": ("tau", _CONSTANT.format("Torque('rotor', 0.5)")),
    "v_fixed": ("", "Write Position(body, s) with s a `Ramp` of that slope."),
    "w_fixed": ("", "Write Position(body, s) with s a `Ramp` of that slope."),
    "stepForce": ("f", _STEP.format("Force")),
    "offsetForce": ("f", _STEP.format("Force")),
    "stepTorque": ("tau", _STEP.format("Torque")),
    "offsetTorque": ("tau", _STEP.format("Torque")),
    "ForceDirection": ("", _ALONG),
    "TorqueDirection": ("", _ALONG),
    # The next names belong to signals.
    "freqHz": ("f", f"It has this name {_ELEMENT_4}."),
    "continuous": (
        "",
        "Before startTime the signal has its offset. Choose the offset that it begins with.",
    ),
    "table": ("", _TABLE_FILE),
    "tableOnFile": ("", _TABLE_FILE),
    "tableName": ("", _TABLE_FILE),
    "fileName": ("", _TABLE_FILE),
    "columns": ("", _TABLE_FILE),
    "timeScale": ("", "Write Sampled(scale*times, values)."),
    "shiftTime": ("", "Write Sampled(times + shift, values)."),
    "timeEvents": ("", "Leave it out: every sample that is a corner is an event."),
    "verboseRead": ("", "Leave it out: no file is read."),
    "verboseExtrapolation": (
        "",
        "Leave it out. Write Table(rows, extrapolation='hold' or 'error') for another law beyond"
        " the last row.",
    ),
}


def modelica_advice(name: str, known: Iterable[str]) -> str:
    """Return a sentence that explains what to write instead of the Modelica parameter `name`; empty
    for any other name. `known`: the names of existing parameters.

    >>> modelica_advice("mue_pos", ["body", "mu_pos", "peak"])
    " Did you mean 'mu_pos'? It has this name since version 4.0 of the Modelica Standard Library."
    >>> modelica_advice("v_small", ["body", "mu_pos"])
    ' Leave it out: frictax locates events in time, at any speed.'
    """
    if name not in _NAMES:
        return ""
    instead, says = _NAMES[name]
    return f" Did you mean {instead!r}? {says}" if instead in known else f" {says}"
