"""Bodies, connections, drives and their assembly into a hybrid system."""

from frictax.handover import lazily

# A machine of a user's own, an axis or a linkage, is seldom one of these: found when first used.
__getattr__, __dir__ = lazily(globals())
