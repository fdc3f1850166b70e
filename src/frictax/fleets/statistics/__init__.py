"""What the table of a fleet tells: the population, drift, verdicts."""
