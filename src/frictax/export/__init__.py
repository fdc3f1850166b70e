"""Export of machines to Modelica, URDF, MuJoCo, source code and FMU; also a Modelica reader."""
