"""gmm: the log likelihood of a Gaussian mixture with full covariances, with a Wishart prior, and its gradient.

With weights ``alpha``, means ``mu`` and lower triangular factors ``Q`` of the inverse covariances, whose diagonals are exponentials, it is::

    sum_i log sum_k exp(alpha_k + sum(log diag(Q_k)) - |Q_k (x_i - mu_k)|^2 / 2) - n log sum_k exp(alpha_k)
        + gamma^2 / 2 sum_k |Q_k|^2 - m sum_k sum(log diag(Q_k))

up to a constant (ADBench, section 4.1: "GMM"), which has no derivative. The function is that of the row "mixture" of `rows.gradients`.
"""

from gradbench.contest import gradient_row, size
from measure import Goal
from rows.gradients import mixture

ROWS = [
    gradient_row(
        f"gradbench gmm d{d} K{k} n1000",
        lambda d=d, k=k: mixture(size(d, 3), size(k, 4), size(1000, 10)),
        (Goal(goal, "torch"),),
        samples=9,
    )
    for d, k, goal in ((20, 50, 1.5), (64, 100, 1.3))
]
