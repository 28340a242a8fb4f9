"""The verbs about any script, and about masks: what is wrong, and by which rule."""
