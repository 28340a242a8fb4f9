"""What shows a training to a person: TensorBoard, MLflow, W&B, and a trace of some steps.

This file must stay: Python prefers any regular package on PYTHONPATH to a folder without one.
"""
