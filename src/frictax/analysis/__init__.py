"""What a fit is worth: `errors` (how well its numbers are known), `residuals` (what it leaves),
`selection` (which law, which parts), `planning` (what a record could tell), `replay` (runs beside
the record).
"""

from frictax.analysis.errors.accounts import White as White
from frictax.analysis.errors.clusters import Clustered as Clustered
from frictax.analysis.errors.posterior import Posterior as Posterior
from frictax.analysis.errors.profiles import Profile as Profile, ProfilePair as ProfilePair
from frictax.analysis.errors.uncertainty import (
    HAC as HAC,
    BlockBootstrap as BlockBootstrap,
    Jackknife as Jackknife,
    Uncertainty as Uncertainty,
)
from frictax.analysis.planning.outlook import Outlook as Outlook, outlook as outlook
from frictax.analysis.replay.free_run import FreeRunScore as FreeRunScore
from frictax.analysis.residuals.finding import Finding as Finding
from frictax.analysis.residuals.study import ResidualStudy as ResidualStudy
from frictax.analysis.selection.candidates import default_structures as default_structures
from frictax.analysis.selection.compare import (
    ComparedLaw as ComparedLaw,
    Comparison as Comparison,
    compare as compare,
)
from frictax.analysis.selection.structure import (
    ComparedStructure as ComparedStructure,
    Structure as Structure,
    StructureComparison as StructureComparison,
)
