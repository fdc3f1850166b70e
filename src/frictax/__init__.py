"""Machines with dry friction: simulated exactly, differentiated through stick and slip, identified with error bars."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frictax import data as data
    from frictax import parameters as parameters
    from frictax.analysis import HAC as HAC
    from frictax.analysis import BlockBootstrap as BlockBootstrap
    from frictax.analysis import Clustered as Clustered
    from frictax.analysis import ComparedLaw as ComparedLaw
    from frictax.analysis import ComparedStructure as ComparedStructure
    from frictax.analysis import Comparison as Comparison
    from frictax.analysis import Finding as Finding
    from frictax.analysis import Jackknife as Jackknife
    from frictax.analysis import Outlook as Outlook
    from frictax.analysis import Posterior as Posterior
    from frictax.analysis import Profile as Profile
    from frictax.analysis import ProfilePair as ProfilePair
    from frictax.analysis import ResidualStudy as ResidualStudy
    from frictax.analysis import Structure as Structure
    from frictax.analysis import StructureComparison as StructureComparison
    from frictax.analysis import Uncertainty as Uncertainty
    from frictax.analysis import White as White
    from frictax.analysis import compare as compare
    from frictax.analysis import default_structures as default_structures
    from frictax.analysis import outlook as outlook
    from frictax.contacts import AbstractContact as AbstractContact
    from frictax.contacts import BearingFriction as BearingFriction
    from frictax.contacts import Brake as Brake
    from frictax.contacts import Clutch as Clutch
    from frictax.contacts import MassWithStopAndFriction as MassWithStopAndFriction
    from frictax.contacts import Mode as Mode
    from frictax.contacts import MotionDependent as MotionDependent
    from frictax.contacts import OneWayClutch as OneWayClutch
    from frictax.contacts import SupportFriction as SupportFriction
    from frictax.contacts import clutch_geometry as clutch_geometry
    from frictax.engine import Adaptive as Adaptive
    from frictax.engine import OnSamples as OnSamples
    from frictax.engine import Result as Result
    from frictax.engine import walk as walk
    from frictax.fitting import Band as Band
    from frictax.fitting import ClosedLoop as ClosedLoop
    from frictax.fitting import Estimate as Estimate
    from frictax.fitting import FitResult as FitResult
    from frictax.fitting import Found as Found
    from frictax.fitting import FoundMachine as FoundMachine
    from frictax.fitting import FreeRun as FreeRun
    from frictax.fitting import Huber as Huber
    from frictax.fitting import Identifiability as Identifiability
    from frictax.fitting import Instrument as Instrument
    from frictax.fitting import InverseDynamics as InverseDynamics
    from frictax.fitting import Knowledge as Knowledge
    from frictax.fitting import LevenbergMarquardt as LevenbergMarquardt
    from frictax.fitting import Normal as Normal
    from frictax.fitting import Optax as Optax
    from frictax.fitting import Replicates as Replicates
    from frictax.fitting import Smooth as Smooth
    from frictax.fitting import Squares as Squares
    from frictax.fitting import SteadyFriction as SteadyFriction
    from frictax.fitting import Windows as Windows
    from frictax.fitting import fit as fit
    from frictax.fitting import fit_many as fit_many
    from frictax.fitting import starting_law as starting_law
    from frictax.fitting import weighted_residuals as weighted_residuals
    from frictax.laws import AbstractLaw as AbstractLaw
    from frictax.laws import Coulomb as Coulomb
    from frictax.laws import Stribeck as Stribeck
    from frictax.laws import Table as Table
    from frictax.laws import TemperatureDependent as TemperatureDependent
    from frictax.linearization import Linearization as Linearization
    from frictax.linearization import linearize as linearize
    from frictax.measurements import Column as Column
    from frictax.measurements import Record as Record
    from frictax.measurements import Sweep as Sweep
    from frictax.mechanism import AbstractAxis as AbstractAxis
    from frictax.mechanism import AbstractHybridSystem as AbstractHybridSystem
    from frictax.mechanism import AbstractLinkage as AbstractLinkage
    from frictax.mechanism import Damper as Damper
    from frictax.mechanism import Driven as Driven
    from frictax.mechanism import ElastoBacklash as ElastoBacklash
    from frictax.mechanism import ElastoGap as ElastoGap
    from frictax.mechanism import Fixed as Fixed
    from frictax.mechanism import Force as Force
    from frictax.mechanism import HeatCapacitor as HeatCapacitor
    from frictax.mechanism import IdealGear as IdealGear
    from frictax.mechanism import IdealPlanetary as IdealPlanetary
    from frictax.mechanism import Inertia as Inertia
    from frictax.mechanism import LinearPositionDependentForce as LinearPositionDependentForce
    from frictax.mechanism import LossyGear as LossyGear
    from frictax.mechanism import Mass as Mass
    from frictax.mechanism import Mechanism as Mechanism
    from frictax.mechanism import Position as Position
    from frictax.mechanism import PositionController as PositionController
    from frictax.mechanism import RotationalDamper as RotationalDamper
    from frictax.mechanism import RotationalSpring as RotationalSpring
    from frictax.mechanism import RotationalSpringDamper as RotationalSpringDamper
    from frictax.mechanism import Spring as Spring
    from frictax.mechanism import SpringDamper as SpringDamper
    from frictax.mechanism import ThermalConductor as ThermalConductor
    from frictax.mechanism import Torque as Torque
    from frictax.parameters import from_unconstrained as from_unconstrained
    from frictax.parameters import to_unconstrained as to_unconstrained
    from frictax.signals import AbstractSignal as AbstractSignal
    from frictax.signals import Constant as Constant
    from frictax.signals import Function as Function
    from frictax.signals import Pulse as Pulse
    from frictax.signals import Ramp as Ramp
    from frictax.signals import Sampled as Sampled
    from frictax.signals import Sine as Sine
    from frictax.signals import Step as Step
    from frictax.signals import Trapezoid as Trapezoid
    from frictax.simulation import SimulationError as SimulationError
    from frictax.simulation import simulate as simulate
    from frictax.trajectory import Trajectory as Trajectory
    from frictax.xla import fast_loops as fast_loops

# Where each name lives. A name is imported when it is first used, so that `import frictax` costs next to nothing.
_ROOMS = {
    "frictax.parameters": (
        "from_unconstrained",
        "to_unconstrained",
    ),
    "frictax.laws": (
        "AbstractLaw",
        "Coulomb",
        "Stribeck",
        "Table",
        "TemperatureDependent",
    ),
    "frictax.signals": (
        "AbstractSignal",
        "Constant",
        "Function",
        "Pulse",
        "Ramp",
        "Sampled",
        "Sine",
        "Step",
        "Trapezoid",
    ),
    "frictax.contacts": (
        "AbstractContact",
        "BearingFriction",
        "Brake",
        "Clutch",
        "MassWithStopAndFriction",
        "Mode",
        "MotionDependent",
        "OneWayClutch",
        "SupportFriction",
        "clutch_geometry",
    ),
    "frictax.linearization": (
        "Linearization",
        "linearize",
    ),
    "frictax.mechanism": (
        "AbstractAxis",
        "AbstractHybridSystem",
        "AbstractLinkage",
        "Damper",
        "Driven",
        "ElastoBacklash",
        "ElastoGap",
        "Fixed",
        "Force",
        "HeatCapacitor",
        "IdealGear",
        "IdealPlanetary",
        "Inertia",
        "LinearPositionDependentForce",
        "LossyGear",
        "Mass",
        "Mechanism",
        "Position",
        "PositionController",
        "RotationalDamper",
        "RotationalSpring",
        "RotationalSpringDamper",
        "Spring",
        "SpringDamper",
        "ThermalConductor",
        "Torque",
    ),
    "frictax.engine": (
        "Adaptive",
        "OnSamples",
        "Result",
        "walk",
    ),
    "frictax.xla": ("fast_loops",),
    "frictax.trajectory": ("Trajectory",),
    "frictax.simulation": (
        "SimulationError",
        "simulate",
    ),
    "frictax.measurements": (
        "Column",
        "Record",
        "Sweep",
    ),
    "frictax.fitting": (
        "Band",
        "ClosedLoop",
        "Estimate",
        "FitResult",
        "Found",
        "FoundMachine",
        "FreeRun",
        "Huber",
        "Identifiability",
        "Instrument",
        "InverseDynamics",
        "Knowledge",
        "LevenbergMarquardt",
        "Normal",
        "Optax",
        "Replicates",
        "Smooth",
        "Squares",
        "SteadyFriction",
        "Windows",
        "fit",
        "fit_many",
        "starting_law",
        "weighted_residuals",
    ),
    "frictax.analysis": (
        "BlockBootstrap",
        "Clustered",
        "ComparedLaw",
        "ComparedStructure",
        "Comparison",
        "Finding",
        "HAC",
        "Jackknife",
        "Outlook",
        "Posterior",
        "Profile",
        "ProfilePair",
        "ResidualStudy",
        "Structure",
        "StructureComparison",
        "Uncertainty",
        "White",
        "compare",
        "default_structures",
        "outlook",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        value = getattr(importlib.import_module(_ROOM_OF[name]), name)
    elif name in ("data", "parameters"):
        value = importlib.import_module(f"frictax.{name}")
    else:
        raise AttributeError(f"module 'frictax' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM_OF, "data", "parameters"})
