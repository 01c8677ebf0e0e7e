"""Work in parts that can be resumed, in this process or on a Dask cluster."""
