"""Export of a machine as source code in C, JavaScript or structured text."""
