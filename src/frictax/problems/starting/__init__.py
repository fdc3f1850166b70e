"""Write a problem file for a file of measured data, or copy a bundled example."""

from .deciding import (
    Options as Options,
    draft_of as draft_of,
    with_clock as with_clock,
    with_columns as with_columns,
    with_machine as with_machine,
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
from .roles import ROLES as ROLES, Chosen as Chosen
from .writing import (
    EXAMPLES as EXAMPLES,
    copy_example as copy_example,
    write_problem as write_problem,
)
