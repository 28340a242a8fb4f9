"""The verbs about scripts and masks: their mistakes, and the rules."""
