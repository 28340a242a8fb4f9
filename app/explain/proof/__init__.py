"""The proof of the binding: the probe's report, each rank against its plan, the verdict."""
