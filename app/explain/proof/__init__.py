"""Is the binding proved: the report of the probe, each rank against its plan, the verdict."""
