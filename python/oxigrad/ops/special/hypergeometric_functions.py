"""Rows of the hypergeometric functions, and of Wright's omega function."""

from oxigrad.ops.special.rows import NO_FORM, A, B, Row, f

ROWS: dict[str, Row] = {
    "hyp0f1": (
        "v z",
        "Confluent hypergeometric limit function.",
        NO_FORM.format("parameter v"),
        lambda v, z: f.hyp0f1(v + 1.0, z) / v,
    ),
    "hyp1f1": ("a b x", "Kummer's function M.", A, B, lambda a, b, x: a / b * f.hyp1f1(a + 1.0, b + 1.0, x)),
    "hyperu": ("a b x", "Tricomi's function U.", A, B, lambda a, b, x: -a * f.hyperu(a + 1.0, b + 1.0, x)),
    "hyp2f1": (
        "a b c z",
        "Gauss' hypergeometric function.",
        A,
        B,
        NO_FORM.format("parameter c"),
        lambda a, b, c, z: a * b / c * f.hyp2f1(a + 1.0, b + 1.0, c + 1.0, z),
    ),
    "wrightomega": ("z", "Wright's omega function: the solution of ``y + log(y) = z``.", lambda y: y / (1.0 + y)),
}
