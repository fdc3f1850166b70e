"""Statistics of a fleet's table: population, drift and verdicts."""
