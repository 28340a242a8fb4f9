"""Descriptions of a run: its facts, proof, failure and waiting reason. Pure."""
