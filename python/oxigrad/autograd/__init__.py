"""HIPS autograd's names with autograd's meaning, for programs and libraries that are written with it.

``import oxigrad.autograd as autograd`` in one file, or `install` for a whole process:

>>> from oxigrad import autograd
>>> import oxigrad.autograd.numpy as anp
>>> autograd.grad(lambda x: anp.sum(anp.tanh(x) ** 2))(anp.array([0.0, 0.5])).round(6)
array([0.      , 0.726862])
"""

from oxigrad.autograd import numpy
from oxigrad.autograd.builtins import dict, isinstance, list, tuple, type
from oxigrad.autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from oxigrad.autograd.modules import install
from oxigrad.autograd.primitives import primitive

__all__ = [
    "checkpoint",
    "deriv",
    "dict",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "install",
    "isinstance",
    "jacobian",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_vjp",
    "multigrad_dict",
    "numpy",
    "primitive",
    "tensor_jacobian_product",
    "tuple",
    "type",
    "value_and_grad",
    "vector_jacobian_product",
]
