"""Read tables (text, workbook, JSON, Parquet, MAT, pandas) and interpret their cells."""
