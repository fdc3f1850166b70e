"""What a fit is asked: data set against a model, as one vector of weighted residuals."""
