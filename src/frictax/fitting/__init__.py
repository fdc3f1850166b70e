"""The inverse problem: which friction explains a measurement, how well is it known, and what cannot be known.

    sweep = fx.Sweep.from_csv("sweep.csv", velocity="omega", force="torque")
    found = fx.fit(fx.Stribeck, sweep)
    print(found)

Read in this order: `sweep` (the measurement), `steady` (what is predicted of it), `losses` and `methods` (what is made
small, and how), `fit`, `found` (the answer), `identifiability` (what the data cannot tell), `compare`. For records: `record`,
`objectives`, `record_fit`, `found_machine` (the answer), `uncertainty` and `profiles` (how well it is known).
"""

from frictax.fitting.clusters import Clustered as Clustered
from frictax.fitting.compare import ComparedLaw as ComparedLaw
from frictax.fitting.compare import Comparison as Comparison
from frictax.fitting.compare import compare as compare
from frictax.fitting.default_structures import default_structures as default_structures
from frictax.fitting.fit import fit as fit
from frictax.fitting.fit import fit_many as fit_many
from frictax.fitting.found import Band as Band
from frictax.fitting.found import Estimate as Estimate
from frictax.fitting.found import Found as Found
from frictax.fitting.found import Replicates as Replicates
from frictax.fitting.found_machine import FoundMachine as FoundMachine
from frictax.fitting.free_runs import FreeRunScore as FreeRunScore
from frictax.fitting.identifiability import Identifiability as Identifiability
from frictax.fitting.identifiability import Knowledge as Knowledge
from frictax.fitting.instruments import Instrument as Instrument
from frictax.fitting.inverse_dynamics import InverseDynamics as InverseDynamics
from frictax.fitting.losses import Huber as Huber
from frictax.fitting.losses import Squares as Squares
from frictax.fitting.methods import LevenbergMarquardt as LevenbergMarquardt
from frictax.fitting.methods import Optax as Optax
from frictax.fitting.objectives import AbstractObjective as AbstractObjective
from frictax.fitting.objectives import ClosedLoop as ClosedLoop
from frictax.fitting.objectives import FreeRun as FreeRun
from frictax.fitting.objectives import Windows as Windows
from frictax.fitting.outlook import Outlook as Outlook
from frictax.fitting.outlook import outlook as outlook
from frictax.fitting.posterior import Posterior as Posterior
from frictax.fitting.priors import Normal as Normal
from frictax.fitting.priors import Smooth as Smooth
from frictax.fitting.profiles import Profile as Profile
from frictax.fitting.profiles import ProfilePair as ProfilePair
from frictax.fitting.record import Record as Record
from frictax.fitting.record_reading import Column as Column
from frictax.fitting.residual_finding import Finding as Finding
from frictax.fitting.residual_study import ResidualStudy as ResidualStudy
from frictax.fitting.starting import starting_law as starting_law
from frictax.fitting.steady import SteadyFriction as SteadyFriction
from frictax.fitting.structures import ComparedStructure as ComparedStructure
from frictax.fitting.structures import Structure as Structure
from frictax.fitting.structures import StructureComparison as StructureComparison
from frictax.fitting.sweep import Sweep as Sweep
from frictax.fitting.uncertainty import HAC as HAC
from frictax.fitting.uncertainty import BlockBootstrap as BlockBootstrap
from frictax.fitting.uncertainty import Jackknife as Jackknife
from frictax.fitting.uncertainty import Uncertainty as Uncertainty
from frictax.fitting.uncertainty import White as White
