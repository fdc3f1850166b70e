"""A parameter of the Modelica Standard Library that frictax does not have is answered by what
frictax has.
"""

import inspect
from pathlib import Path

import pytest

import frictax as fx
from frictax.parameters.modelica_names import modelica_advice
from frictax.problems.problem import read

# The parameters of each element, in the versions 3.2.3 and 4.1.0 of the library; those that
# frictax has under the same name and those that it does not.
_FRICTION = "useSupport useHeatPort smoothness peak stateSelect"
_PRESSED = f"{_FRICTION} mue_pos mu_pos mue0 mu0 cgeo fn_max"
_START = "stateSelect s_start v_start phi_start w_start a_start initType a"
_SIGNAL = "offset startTime"
ELEMENTS = {
    "SupportFriction": f"{_FRICTION} v_small f_pos",
    "BearingFriction": f"{_FRICTION} w_small tau_pos",
    "Brake": f"{_PRESSED} v_small w_small",
    "Clutch": f"{_PRESSED} w_small phi_nominal phi_rel_start w_rel_start",
    "OneWayClutch": f"{_PRESSED} w_small phi_nominal startForward stuck peak2",
    "MassWithStopAndFriction": (
        f"{_START} m L smin smax F_prop F_Coulomb F_Stribeck fexp v_small useHeatPort peak"
    ),
    "Mass": f"{_START} m L",
    "Inertia": f"{_START} J",
    "Fixed": "s0 phi0",
    "Spring": "c s_rel0",
    "Damper": "d stateSelect s_nominal useHeatPort s_rel_start v_rel_start",
    "SpringDamper": "c d s_rel0 stateSelect s_nominal useHeatPort",
    "RotationalSpring": "c phi_rel0",
    "RotationalDamper": "d stateSelect phi_nominal useHeatPort",
    "RotationalSpringDamper": "c d phi_rel0 stateSelect phi_nominal useHeatPort",
    "ElastoGap": "c d s_rel0 n stateSelect s_nominal useHeatPort",
    "ElastoBacklash": "c d phi_rel0 b stateSelect phi_nominal useHeatPort",
    "IdealGear": "ratio useSupport i",
    "LossyGear": "ratio lossTable smoothness useSupport useHeatPort ideal",
    "Force": "useSupport f_constant stepForce offsetForce",
    "Torque": "useSupport tau_constant stepTorque offsetTorque",
    "Position": "useSupport exact f_crit s_ref phi_ref v_fixed w_fixed",
    "QuadraticSpeedDependentForce": "useSupport f_nominal v_nominal ForceDirection",
    "QuadraticSpeedDependentTorque": "useSupport tau_nominal w_nominal TorqueDirection",
    "HeatCapacitor": "C T_start der_T",
    "ThermalConductor": "G",
    "Sine": f"amplitude f freqHz phase continuous {_SIGNAL}",
    "Step": f"height {_SIGNAL}",
    "Ramp": f"height duration {_SIGNAL}",
    "Pulse": f"amplitude width period nperiod {_SIGNAL}",
    "Trapezoid": f"amplitude rising width falling period nperiod {_SIGNAL}",
    "Sampled": (
        "table tableOnFile tableName fileName columns smoothness timeScale shiftTime timeEvents"
        " verboseRead"
    ),
}


@pytest.mark.parametrize("element", ELEMENTS)
def test_each_parameter_of_the_library_is_one_of_frictax_or_is_answered(element: str) -> None:
    kind = getattr(fx, element)
    known = list(inspect.signature(kind).parameters)
    for name in ELEMENTS[element].split():
        if name in known:
            continue
        with pytest.raises(TypeError, match=f"`{element}` has no parameter '{name}'") as refused:
            kind(**{name: 1.0})
        assert (says := modelica_advice(name, known)), name
        assert says in str(refused.value)
        assert f"It has: {', '.join(known)}." in str(refused.value)


def test_a_renamed_parameter_is_named_in_paths_and_problem_files(tmp_path: Path) -> None:
    machine = fx.Mechanism(mass=fx.Mass(m=1.0), brake=fx.Brake("mass"))
    with pytest.raises(KeyError, match="Did you mean 'mu_pos'"):
        fx.parameters.get(machine, "brake.mue_pos")
    with pytest.raises(KeyError, match="locates events in time"):
        fx.parameters.select(machine, "brake.v_small")
    file = tmp_path / "problem.toml"
    file.write_text(
        'title = "A brake"\n[machine]\nmass = { kind = "Mass", m = 1.0 }\n'
        'brake = { kind = "Brake", body = "mass", mue_pos = [[0, 0.5]] }\n'
        '[fit]\nfree = ["mass.m"]\n[records.run]\nfile = "run.csv"\ntime = "t"\n'
        'outputs = { "mass.v" = "v" }\n'
    )
    (tmp_path / "run.csv").write_text("t,v\n0,0\n1,1\n2,2\n")
    with pytest.raises(ValueError, match="mue_pos.*Did you mean 'mu_pos'"):
        read(file)


def test_a_slip_in_a_name_is_answered_by_the_nearest() -> None:
    with pytest.raises(TypeError, match="no parameter 'F_coulomb'. Did you mean 'F_Coulomb'"):
        fx.Coulomb(F_coulomb=5.0)  # type: ignore[call-arg]
