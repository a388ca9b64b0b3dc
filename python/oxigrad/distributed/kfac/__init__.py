"""K-FAC: layers, Kronecker factors, their placement on workers, and the optimizer around them."""
