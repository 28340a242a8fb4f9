"""What `--cpu-bind` and `--gpu-bind` say: read into cores and GPUs of each task, and judged."""
