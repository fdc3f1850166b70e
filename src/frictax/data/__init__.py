"""Public records of measured machines: what there is, where it is at home, and how to get it.

fx.data.path("emps")     # the folder, where it is here
fx.data.fetch("emps")    # gets it from its home first
"""

from .registry import (
    PublicFile as PublicFile,
    PublicRecord as PublicRecord,
    fetch as fetch,
    path as path,
    records as records,
)
