"""The search for the parameters with the least cost."""
