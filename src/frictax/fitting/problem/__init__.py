"""The problem of a fit: compare data with a model as one vector of weighted residuals."""
