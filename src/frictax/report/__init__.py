"""Results as figures, as one HTML file and as JSON."""

from frictax.handover import lazily

# matplotlib is costly to import: found when first used.
__getattr__, __dir__ = lazily(globals())
