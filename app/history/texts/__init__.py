"""The texts of runs, kept once by their hash and compressed."""
