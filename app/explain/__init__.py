"""Descriptions of a run: its state, proof, failure and waiting reason. Pure."""
