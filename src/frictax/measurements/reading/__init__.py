"""Tables from text files, workbooks, JSON logs, Parquet, MAT and pandas: what their cells mean."""
