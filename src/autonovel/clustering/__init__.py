"""Clustering on any device, with labelled points held where they belong; how many classes there are."""

from autonovel.clustering.kmeans import Clusters, kmeans

__all__ = ["Clusters", "kmeans"]
