"""Predict the accuracy of a fit before it is made, and propose motions that improve it."""
