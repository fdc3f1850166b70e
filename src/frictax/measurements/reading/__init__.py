"""Tables from text files, workbooks, JSON logs, Parquet, MAT and pandas, and what their cells mean."""
