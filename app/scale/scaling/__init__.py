"""Time and cost of a training at other sizes: measured, predicted, recommended."""
