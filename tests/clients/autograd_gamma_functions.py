"""autograd-gamma: derivatives of incomplete functions by their parameters."""

import numpy as np
from autograd import elementwise_grad
from autograd_gamma import betainc, betaincln, gammainc, gammaincc, gammaincln

X = np.linspace(0.3, 3.0, 7)


def results():
    for function in (gammainc, gammaincc, gammaincln):
        yield f"{function.__name__} by a", elementwise_grad(lambda a, f=function: f(a, 1.5))(X).tolist()
        yield f"{function.__name__} by x", elementwise_grad(lambda x, f=function: f(1.5, x))(X).tolist()
    for function in (betainc, betaincln):
        yield f"{function.__name__} by a", elementwise_grad(lambda a, f=function: f(a, 2.0, 0.4))(X).tolist()
        yield f"{function.__name__} by x", elementwise_grad(lambda x, f=function: f(1.5, 2.0, x))(X / 4.0).tolist()
