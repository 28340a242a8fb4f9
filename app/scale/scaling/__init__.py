"""Time and cost of a training run at other sizes: measured, predicted, recommended."""
