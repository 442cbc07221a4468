"""What a trained model is judged on."""
