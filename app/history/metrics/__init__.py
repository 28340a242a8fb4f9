"""The numbers of a training, as the history keeps them."""
