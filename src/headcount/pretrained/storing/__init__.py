"""A changed model as a folder that stock transformers loads."""
