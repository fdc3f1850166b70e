"""Figures, HTML reports, JSON, and saved fits."""

from frictax.handover import lazily

# Importing matplotlib is slow, so each name of this package is imported at its first use.
__getattr__, __dir__ = lazily(globals())
