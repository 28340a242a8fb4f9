"""The files of a run that come back: listed, hashed, sent, and put in their place."""
