"""What a training costs at other sizes: measured in its lineage, predicted, recommended."""
