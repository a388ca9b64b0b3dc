"""Calls of special functions, with arguments inside their domains."""

from __future__ import annotations

from typing import Any

import numpy as np

X = np.array([-1.3, 0.4, 2.2])
P = np.array([0.3, 0.9, 2.4])
Q = np.array([1.7, 0.6, 1.1])
F = np.array([0.15, 0.5, 0.85])
N = np.array([0, 1, 3])
# Within the series near zero or one, and beyond.
SMALL = np.array([-0.3, 0.0, 0.01, 0.7])

# The arguments of each function; those that are integers are constants.
CASES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("erf erfc erfcx erfi dawsn ndtr expit log_expit exp2 exp10 expm1 exprel cosm1".split(), (X,)),
    **dict.fromkeys("cbrt log1p gamma gammaln loggamma psi rgamma entr expi exp1 i0 i1 j0 j1 y0 y1".split(), (P,)),
    **dict.fromkeys("k0 k1 k0e k1e ber bei ker kei berp beip kerp keip wrightomega".split(), (P,)),
    **dict.fromkeys("sindg cosdg tandg cotdg i0e i1e fresnel airy".split(), (X,)),
    **dict.fromkeys("erfinv erfcinv logit ndtri ellipk ellipe ellipkm1".split(), (F,)),
    **dict.fromkeys("beta betaln xlogy xlog1py rel_entr kl_div poch agm powm1".split(), (P, Q)),
    **dict.fromkeys("iv jv yv jve yve ive kv kve kn struve modstruve expn yn".split(), (2, P)),
    **{f"{name}-real": (np.array([0.5, 1.3, 2.6]), P) for name in "iv jv yv ive kv kve struve".split()},
    **{name: (X, np.array([0.4, -0.7, 0.0])) for name in "boxcox1p inv_boxcox1p".split()},
    "log_ndtr": (np.array([-30.0, -1.0, 4.0]),),
    "ndtri_exp": (np.array([-40.0, -1.5, -0.1]),),
    "owens_t": (X, P),
    "voigt_profile": (X, P, Q),
    "sici": (np.array([0.1, 0.7, 3.0]),),
    "shichi": (np.array([0.1, 0.7, 3.0]),),
    "spence": (np.array([0.2, 0.99, 1.0, 1.02, 3.0]),),
    "expn-orders": (N, P),
    "zeta": (np.array([3.0, 1.4, 2.1]), P),
    "zetac": (np.array([-2.3, 0.4, 3.0]),),
    "binom": (np.array([5.5, 3.2, 4.1]), Q),
    "gammainc": (2.5, P),
    "gammaincc": (2.5, P),
    "gammaincinv": (2.5, F),
    "gammainccinv": (2.5, F),
    "betainc": (2.5, 0.7, F),
    "betaincc": (2.5, 0.7, F),
    "betaincinv": (2.5, 0.7, F),
    "betainccinv": (2.5, 0.7, F),
    "ellipk-zero": (SMALL,),
    "ellipe-zero": (SMALL,),
    "ellipkm1-one": (np.array([0.01, 0.3, 0.95, 1.0, 1.2]),),
    "ellipkinc": (X[:, None], SMALL * 0.5),
    "ellipeinc": (X[:, None], SMALL * 0.5),
    "hyp0f1": (1.5, X),
    "hyp1f1": (1.5, 2.5, X),
    "hyperu": (1.5, 2.5, P),
    "hyp2f1": (1.5, 2.5, 0.7, F),
    "bdtr": (np.array([1.0, 2.0, 3.0]), 5, F),
    "bdtrc": (np.array([1.0, 2.0, 3.0]), 5, F),
    "bdtri": (np.array([1.0, 2.0, 3.0]), 5, F),
    "nbdtr": (2, 5, F),
    "nbdtrc": (2, 5, F),
    "chdtr": (3.5, P),
    "chdtrc": (3.5, P),
    "chdtri": (3.5, F),
    "gdtr": (Q, 2.5, P),
    "gdtrc": (Q, 2.5, P),
    "pdtr": (N, P),
    "pdtrc": (N, P),
    "pdtri": (2, F),
    "stdtr": (3.5, X),
    "stdtrit": (3.5, F),
    "fdtr": (3.5, 2.5, P),
    "fdtrc": (3.5, 2.5, P),
    "fdtri": (3.5, 2.5, F),
    **{f"eval_{name}": (N, F) for name in "legendre chebyt chebyu hermite hermitenorm laguerre".split()},
    "eval_jacobi": (N, 0.5, 1.5, F),
    "eval_gegenbauer": (N, 0.5, F),
    "eval_genlaguerre": (N, 0.5, F),
    "huber": (1.0, np.array([-2.0, -0.3, 0.9, 1.4])),
    "huber-delta": (np.array([0.5, 1.0, 2.0]), X),
    "pseudo_huber": (P, X),
    "boxcox": (P, np.array([0.4, -0.7, 0.0])),
    "inv_boxcox": (P, np.array([0.2, -0.1, 0.0])),
    "boxcox1p": (P, np.array([0.4, -0.7, 0.0])),
    "inv_boxcox1p": (P, np.array([0.2, -0.1, 0.0])),
    "radian": (X, P, Q),
}
# Parameters given as numbers that have no derivative: those with one are differentiated as well.
SHAPES = {"gammainc": 0, "gammaincc": 0, "gammaincinv": 0, "gammainccinv": 0, "chdtr": 0, "chdtrc": 0, "chdtri": 0}


def of_smooth(name: str, function: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function of those of its arguments that are arrays of floats, and these."""
    args = CASES[name]
    is_order = name.endswith("-real")
    places = [
        at
        for at, arg in enumerate(args)
        if isinstance(arg, np.ndarray) and arg.dtype == np.float64 and not (is_order and at == 0)
    ]
    places = [at for at in places if not (name.startswith("bdtr") and at == 0) and not (name[:4] == "gdtr" and at == 1)]

    def of(*values: Any) -> Any:
        whole = list(args)
        for at, value in zip(places, values, strict=True):
            whole[at] = value
        return function(*whole)

    return of, tuple(args[at] for at in places)
