"""A machine's schematic, from what its parts say of themselves to lines on a page.

`network` finds who is joined to whom, `order` gives each a row and a column, `symbols`, `drives`
and `heat` hold the pictures, `bodies` puts on a body what acts on it alone, `sheet` and `lines` put
all on the page.
"""
