"""The examples that a trained model is judged on."""
