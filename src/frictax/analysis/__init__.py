"""Judge a fit: standard errors, residuals, missing terms and choice of models.

- `errors`: standard errors and intervals; `derived`: quantities derived from parameters.
- `residuals`: patterns in residuals; `missing`: score tests for missing terms.
- `selection`: comparison of laws or structures; `planning`: expected accuracy before a fit.
- `replay`: simulations of the fitted machine, compared with records.
"""

from .derived.derived import Derived as Derived
from .errors.autoregression import Autoregression as Autoregression
from .errors.clusters import Clustered as Clustered
from .errors.guarded import Guarded as Guarded
from .errors.linearization import HAC as HAC, White as White
from .errors.posterior import Posterior as Posterior
from .errors.profiles import Profile as Profile, ProfilePair as ProfilePair
from .errors.resampling import BlockBootstrap as BlockBootstrap, Jackknife as Jackknife
from .errors.uncertainty import Uncertainty as Uncertainty
from .missing.table import Missing as Missing, MissingTerm as MissingTerm
from .planning.outlook import Outlook as Outlook, outlook as outlook
from .replay.free_run import FreeRunScore as FreeRunScore
from .replay.validation import LeftOut as LeftOut, Transfer as Transfer, Validation as Validation
from .residuals.regression import Finding as Finding
from .residuals.study import ResidualStudy as ResidualStudy
from .selection.compare import (
    ComparedLaw as ComparedLaw,
    Comparison as Comparison,
    compare as compare,
)
from .selection.structure import (
    ComparedStructure as ComparedStructure,
    Structure as Structure,
    StructureComparison as StructureComparison,
    default_structures as default_structures,
)
