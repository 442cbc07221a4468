"""Published results on heads from other papers than the two that the project is about."""
