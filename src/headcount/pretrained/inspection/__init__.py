"""Everything that is measured of a trained model, kept as it is measured."""
