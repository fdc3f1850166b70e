"""Standard errors and intervals of the parameters of a fit."""
