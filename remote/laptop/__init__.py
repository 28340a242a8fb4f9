"""The embedded site `laptop`: the same job script run by plain processes."""
