"""Which term a model lacks."""
