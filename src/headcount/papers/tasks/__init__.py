"""Tasks that only the papers have: candidates that answer a query, random labels, and stand-ins for data to come."""
