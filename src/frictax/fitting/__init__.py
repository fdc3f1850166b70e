"""Fit laws to sweeps and machines to motion records.

    sweep = fx.Sweep.from_csv("sweep.csv", velocity="omega", force="torque")
    found = fx.fit(fx.Stribeck, sweep)
    print(found)

Read the code in this order: `problem` (predictions and the cost), `search` (the optimiser), `fit`,
`result` (estimates and identifiability).
"""

from .fit import Data as Data, fit as fit
from .fit_many import fit_many as fit_many
from .options import Bounds as Bounds, FitOptions as FitOptions, Law as Law, Own as Own
from .problem.inverse_dynamics import InverseDynamics as InverseDynamics
from .problem.losses import AbstractLoss as AbstractLoss, Huber as Huber, Squares as Squares
from .problem.objectives import AbstractObjective as AbstractObjective
from .problem.priors import AbstractPrior as AbstractPrior, Normal as Normal, Smooth as Smooth
from .problem.setup import Instrument as Instrument
from .problem.simulations import ClosedLoop as ClosedLoop, FreeRun as FreeRun, Windows as Windows
from .problem.steady import SteadyFriction as SteadyFriction
from .result.estimates import Band as Band, Estimate as Estimate, Replicates as Replicates
from .result.fit_result import FitResult as FitResult
from .result.identifiability import Identifiability as Identifiability, Knowledge as Knowledge
from .search.methods import (
    AbstractMethod as AbstractMethod,
    LevenbergMarquardt as LevenbergMarquardt,
    Optax as Optax,
)
from .steady_model import starting_bristle as starting_bristle, starting_law as starting_law
from .weighted_residuals import weighted_residuals as weighted_residuals

Found = FoundMachine = FitResult  # names of `FitResult` until version 0.2
