"""What an example costs a model."""
