"""The five Parquet datasets: what a row is, how rows are written, read back and counted."""
