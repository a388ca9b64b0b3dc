"""Distances between observations, named as in `scipy.spatial.distance`: `oxigrad.xp.spatial.distance`.

Every distance that is a root (euclidean, seuclidean, mahalanobis, minkowski, jensenshannon) has a zero derivative where
it is zero. Its second derivative there is NaN; the square of the distance has the correct one. The derivative of
``abs`` is zero at zero. Equal largest differences share the derivative, as in `xp.max`. Metrics that count equal
elements, such as "hamming" and "jaccard", have no derivative, and are refused.

>>> import numpy as np
>>> import oxigrad as ox
>>> points = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
>>> pdist(points)
array([5., 0., 5.])
>>> ox.grad(lambda x: ops.sum(pdist(x)))(points)
array([[-0.6, -0.8],
       [ 1.2,  1.6],
       [-0.6, -0.8]])
"""

from oxigrad.ops.protocols.namespaces import gathered as _gathered
from oxigrad.xp._scipy.spatial import distance as _distance

__dir__, __getattr__ = _gathered(__name__, _distance)
