"""The public names and the subpackages that define them, for type checkers and the lazy import."""

from frictax import data as data, parameters as parameters, report as report
from frictax.analysis import (
    HAC as HAC,
    Autoregression as Autoregression,
    BlockBootstrap as BlockBootstrap,
    Clustered as Clustered,
    ComparedLaw as ComparedLaw,
    ComparedStructure as ComparedStructure,
    Comparison as Comparison,
    Derived as Derived,
    Finding as Finding,
    Guarded as Guarded,
    Jackknife as Jackknife,
    Missing as Missing,
    MissingTerm as MissingTerm,
    Outlook as Outlook,
    Posterior as Posterior,
    Profile as Profile,
    ProfilePair as ProfilePair,
    ResidualStudy as ResidualStudy,
    Structure as Structure,
    StructureComparison as StructureComparison,
    Uncertainty as Uncertainty,
    White as White,
    compare as compare,
    default_structures as default_structures,
    outlook as outlook,
)
from frictax.bristles import (
    AbstractBristle as AbstractBristle,
    Dahl as Dahl,
    ElastoPlastic as ElastoPlastic,
    LuGre as LuGre,
    MaxwellSlip as MaxwellSlip,
)
from frictax.contacts import (
    AbstractContact as AbstractContact,
    BearingFriction as BearingFriction,
    Brake as Brake,
    Clutch as Clutch,
    MassWithStopAndFriction as MassWithStopAndFriction,
    Mode as Mode,
    MotionDependent as MotionDependent,
    OneWayClutch as OneWayClutch,
    SupportFriction as SupportFriction,
    clutch_geometry as clutch_geometry,
)
from frictax.cycles import (
    Branch as Branch,
    CycleError as CycleError,
    CycleEvent as CycleEvent,
    CycleNumbers as CycleNumbers,
    LimitCycle as LimitCycle,
    continued as continued,
    limit_cycle as limit_cycle,
)
from frictax.engine import (
    Adaptive as Adaptive,
    OnSamples as OnSamples,
    Result as Result,
    walk as walk,
)
from frictax.excitation import (
    AbstractShape as AbstractShape,
    Chirp as Chirp,
    CubicSpline as CubicSpline,
    Design as Design,
    FourierSeries as FourierSeries,
    Limits as Limits,
    Margins as Margins,
    Multisine as Multisine,
    Ramps as Ramps,
    Staircase as Staircase,
    design as design,
    information as information,
)
from frictax.export.code.feedforward import to_feedforward as to_feedforward
from frictax.export.code.texts import (
    to_c as to_c,
    to_javascript as to_javascript,
    to_structured_text as to_structured_text,
)
from frictax.export.fmu.package import to_fmu as to_fmu
from frictax.export.modelica_reading import from_modelica as from_modelica
from frictax.fitting import (
    Band as Band,
    ClosedLoop as ClosedLoop,
    Estimate as Estimate,
    FitResult as FitResult,
    Found as Found,
    FoundMachine as FoundMachine,
    FreeRun as FreeRun,
    Huber as Huber,
    Identifiability as Identifiability,
    Instrument as Instrument,
    InverseDynamics as InverseDynamics,
    Knowledge as Knowledge,
    LevenbergMarquardt as LevenbergMarquardt,
    Normal as Normal,
    Optax as Optax,
    Replicates as Replicates,
    Smooth as Smooth,
    Squares as Squares,
    SteadyFriction as SteadyFriction,
    Windows as Windows,
    fit as fit,
    fit_many as fit_many,
    starting_bristle as starting_bristle,
    starting_law as starting_law,
    weighted_residuals as weighted_residuals,
)
from frictax.fleets import (
    Drift as Drift,
    Fleet as Fleet,
    Population as Population,
    Verdicts as Verdicts,
    drift as drift,
    fleet as fleet,
    population as population,
    verdicts as verdicts,
)
from frictax.fleets.page.report import write_fleet_report as write_fleet_report
from frictax.laws import (
    AbstractLaw as AbstractLaw,
    Coulomb as Coulomb,
    Stribeck as Stribeck,
    Table as Table,
    TemperatureDependent as TemperatureDependent,
)
from frictax.linearization import Linearization as Linearization, linearize as linearize
from frictax.measurements import Column as Column, Record as Record, Sweep as Sweep
from frictax.mechanism import (
    AbstractAxis as AbstractAxis,
    AbstractHybridSystem as AbstractHybridSystem,
    AbstractLinkage as AbstractLinkage,
    Damper as Damper,
    Driven as Driven,
    ElastoBacklash as ElastoBacklash,
    ElastoGap as ElastoGap,
    Fixed as Fixed,
    Force as Force,
    HeatCapacitor as HeatCapacitor,
    IdealGear as IdealGear,
    IdealPlanetary as IdealPlanetary,
    Inertia as Inertia,
    LinearPositionDependentForce as LinearPositionDependentForce,
    LossyGear as LossyGear,
    Mass as Mass,
    Mechanism as Mechanism,
    PeriodicPositionDependentForce as PeriodicPositionDependentForce,
    Position as Position,
    PositionController as PositionController,
    QuadraticSpeedDependentForce as QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque as QuadraticSpeedDependentTorque,
    RotationalDamper as RotationalDamper,
    RotationalSpring as RotationalSpring,
    RotationalSpringDamper as RotationalSpringDamper,
    Spring as Spring,
    SpringDamper as SpringDamper,
    ThermalConductor as ThermalConductor,
    Torque as Torque,
)
from frictax.notice import Notice as Notice
from frictax.observers import Filtered as Filtered, kalman_filter as kalman_filter
from frictax.parameters import (
    from_unconstrained as from_unconstrained,
    to_unconstrained as to_unconstrained,
)
from frictax.progress import ProgressLine as ProgressLine
from frictax.report.saving import load_fit as load_fit, load_posterior as load_posterior
from frictax.signals import (
    AbstractSignal as AbstractSignal,
    Constant as Constant,
    Function as Function,
    Pulse as Pulse,
    Ramp as Ramp,
    Sampled as Sampled,
    Sine as Sine,
    Step as Step,
    Trapezoid as Trapezoid,
)
from frictax.simulation import SimulationError as SimulationError, simulate as simulate
from frictax.trajectory import Trajectory as Trajectory
from frictax.xla import fast_loops as fast_loops

__version__: str
