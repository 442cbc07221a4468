"""The attention layers of a trained model, as plain arrays."""
