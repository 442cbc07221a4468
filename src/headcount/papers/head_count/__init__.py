"""Yu et al. (arXiv 2510.06662) on synthetic tasks: error by heads, length and width."""
