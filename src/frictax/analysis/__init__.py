"""What a fit is worth: `errors` (how well its numbers are known), `derived` (what follows from
them), `residuals` (what it leaves), `selection` (which law, which parts), `planning` (what a record
could tell), `replay` (runs beside the record).
"""

from .derived.derived import Derived as Derived
from .errors.accounts import White as White
from .errors.clusters import Clustered as Clustered
from .errors.guarded import Guarded as Guarded
from .errors.hac_covariance import HAC as HAC
from .errors.memory.autoregression import Autoregression as Autoregression
from .errors.posterior import Posterior as Posterior
from .errors.profiles import Profile as Profile, ProfilePair as ProfilePair
from .errors.resampling import BlockBootstrap as BlockBootstrap, Jackknife as Jackknife
from .errors.uncertainty import (
    Uncertainty as Uncertainty,
)
from .missing.table import Missing as Missing, MissingTerm as MissingTerm
from .planning.expected import Outlook as Outlook
from .planning.outlook import outlook as outlook
from .replay.free_run import FreeRunScore as FreeRunScore
from .replay.validation import (
    LeftOut as LeftOut,
    Transfer as Transfer,
    Validation as Validation,
)
from .residuals.finding import Finding as Finding
from .residuals.study import ResidualStudy as ResidualStudy
from .selection.candidates import default_structures as default_structures
from .selection.compare import (
    ComparedLaw as ComparedLaw,
    Comparison as Comparison,
    compare as compare,
)
from .selection.structure import (
    ComparedStructure as ComparedStructure,
    Structure as Structure,
    StructureComparison as StructureComparison,
)
