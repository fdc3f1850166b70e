"""Figures, HTML reports, JSON, and saved fits."""

from frictax.handover import lazily

# matplotlib is costly to import: found when first used.
__getattr__, __dir__ = lazily(globals())
