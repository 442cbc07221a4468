"""The verb of the live page, and the page that `measure --live` starts."""
