"""Figures, HTML reports, JSON, and saved fits."""

from frictax.handover import lazily

# Importing matplotlib is slow, so these names are imported at their first use.
__getattr__, __dir__ = lazily(globals())
