"""Yu et al. (arXiv 2510.06662) on real data: CIFAR-10 and MS MARCO."""
