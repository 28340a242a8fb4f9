"""Diagnosis of failed and hung runs: known causes, the first failed rank, the lagging rank."""
