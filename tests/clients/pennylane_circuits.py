"""PennyLane: circuits on `default.qubit`, gradients by backpropagation and by parameter shifts, and an optimizer."""

import pennylane as qml
from pennylane import numpy as np


def results():
    device = qml.device("default.qubit", wires=3)
    weights = np.array([[0.1, 0.4, -0.3], [0.7, -0.2, 0.5]], requires_grad=True)

    def circuit(weights):
        for layer in weights:
            for wire, angle in enumerate(layer):
                qml.RY(angle, wires=wire)
            qml.CNOT(wires=[0, 1])
            qml.CNOT(wires=[1, 2])
        return qml.expval(qml.PauliZ(2))

    for method in ("backprop", "parameter-shift", "adjoint"):
        node = qml.QNode(circuit, device, diff_method=method)
        yield f"value, {method}", [float(node(weights))]
        yield f"gradient, {method}", [float(each) for each in qml.grad(node)(weights).ravel()]
    node = qml.QNode(circuit, device, diff_method="backprop")
    optimizer = qml.GradientDescentOptimizer(0.3)
    for _ in range(20):
        weights, cost = optimizer.step_and_cost(node, weights)
    yield "descent", [float(cost)]
