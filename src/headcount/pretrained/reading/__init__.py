"""Reading what an inspection of a trained model found. No torch."""
