"""How well the numbers of a fit are known."""
