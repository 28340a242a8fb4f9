"""The tour: the program on a recorded history, without a cluster."""
