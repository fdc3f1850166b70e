"""Public records of measured machines: what there is, where it is at home, and how to get it.

fx.data.path("emps")     # the folder, where it is here
fx.data.fetch("emps")    # gets it from its home first
"""

from frictax.data.registry import PublicFile as PublicFile
from frictax.data.registry import PublicRecord as PublicRecord
from frictax.data.registry import fetch as fetch
from frictax.data.registry import path as path
from frictax.data.registry import records as records
