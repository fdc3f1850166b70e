"""Public records of measured machines, with source, licence and checksum.

fx.data.path("emps")     # folder of the record "emps" on this computer
fx.data.fetch("emps")    # the same folder, after a download if necessary
"""

from .registry import (
    PublicFile as PublicFile,
    PublicRecord as PublicRecord,
    fetch as fetch,
    path as path,
    records as records,
)
