"""Write a machine as a functional mock-up unit (FMU), for tools that import FMI 2.0 or 3.0."""
