"""The first steps: the demo on this machine, or a site, a key, a check and a first job."""
