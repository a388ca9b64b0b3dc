"""Update rules as CUDA kernels, which are printed from the rules that run on the host and give its bits."""
