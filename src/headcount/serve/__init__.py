"""The live page: results folders in a browser, as they fill. Reads what runs write, and never trains or writes."""
