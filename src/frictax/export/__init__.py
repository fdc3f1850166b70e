"""Export to Modelica, MuJoCo and URDF, and parameters read from Modelica."""
