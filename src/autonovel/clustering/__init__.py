"""Clustering on any device, with labelled points held where they belong; how many classes there are."""

from autonovel.clustering.kmeans import Clusters, class_means, kmeans

__all__ = ["Clusters", "class_means", "kmeans"]
