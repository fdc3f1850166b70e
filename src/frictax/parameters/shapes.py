"""Types of arrays that many functions take."""

from jaxtyping import Array, Float, Int

Number = Float[Array, ""]
Integer = Int[Array, ""]
Values = Float[Array, "..."]
# Of a hybrid system.
State = Float[Array, " n"]
Modes = Int[Array, " m"]
