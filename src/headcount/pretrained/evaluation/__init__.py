"""A model run on its examples, its layers changed and put back."""
