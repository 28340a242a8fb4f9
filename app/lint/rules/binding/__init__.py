"""Rules about which GPUs and which cores each rank gets."""
