"""Parts of a machine (bodies, springs, gears, drives), and their equations as a hybrid system."""

from frictax.handover import lazily

# The names of this package are imported at first use. Most users do not need the base classes for
# machines of their own (axis, linkage).
__getattr__, __dir__ = lazily(globals())
