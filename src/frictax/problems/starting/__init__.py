"""The beginning of a problem: from a measured file, or an example, to a problem file."""

from .deciding import (
    Options as Options,
    draft_of as draft_of,
    of_machine as of_machine,
    with_columns as with_columns,
    with_signs as with_signs,
)
from .draft import (
    CONSTANTS as CONSTANTS,
    MACHINES as MACHINES,
    Draft as Draft,
    Missing as Missing,
    first_draft as first_draft,
    with_article as with_article,
)
from .examples import EXAMPLES as EXAMPLES, copy_example as copy_example
from .roles import ROLES as ROLES, Chosen as Chosen
from .writing import write_problem as write_problem
