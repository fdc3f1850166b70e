"""The inverse problem: which friction explains a measurement.

    sweep = fx.Sweep.from_csv("sweep.csv", velocity="omega", force="torque")
    found = fx.fit(fx.Stribeck, sweep)
    print(found)

Read in this order: `problem` (what is predicted of the data, and what is minimised), `search`
(how), `fit`, `result` (the answer, and what the data cannot tell).
"""

from frictax.fitting.fit import fit as fit
from frictax.fitting.fit_many import fit_many as fit_many
from frictax.fitting.problem.initial_guess import starting_law as starting_law
from frictax.fitting.problem.inverse_dynamics import InverseDynamics as InverseDynamics
from frictax.fitting.problem.losses import Huber as Huber, Squares as Squares
from frictax.fitting.problem.objectives import (
    AbstractObjective as AbstractObjective,
    ClosedLoop as ClosedLoop,
    FreeRun as FreeRun,
    Windows as Windows,
)
from frictax.fitting.problem.priors import Normal as Normal, Smooth as Smooth
from frictax.fitting.problem.sensors import Instrument as Instrument
from frictax.fitting.problem.steady import SteadyFriction as SteadyFriction
from frictax.fitting.result.estimates import (
    Band as Band,
    Estimate as Estimate,
    Replicates as Replicates,
)
from frictax.fitting.result.fit_result import FitResult as FitResult
from frictax.fitting.result.identifiability import (
    Identifiability as Identifiability,
    Knowledge as Knowledge,
)
from frictax.fitting.search.methods import LevenbergMarquardt as LevenbergMarquardt, Optax as Optax
from frictax.fitting.weighted_residuals import weighted_residuals as weighted_residuals

Found = FoundMachine = FitResult  # their names until version 0.2
