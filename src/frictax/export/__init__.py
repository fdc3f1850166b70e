"""Results in the form that other tools read."""
