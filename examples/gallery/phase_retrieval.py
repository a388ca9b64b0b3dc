"""Phase retrieval: an image from the moduli of its Fourier transform under three masks."""

from oxigrad import xp as np

N = 8
RNG = np.random.default_rng(0)
IMAGE = RNG.uniform(0.0, 1.0, (N, N))
MASKS = np.exp(2j * np.pi * RNG.uniform(size=(3, N, N)))
MODULI = np.abs(np.fft.fft2(MASKS * IMAGE))


def start(seed=0):
    return np.random.default_rng(seed + 1).uniform(0.2, 0.8, (N, N))


def loss(image):
    total = 0.0
    for mask, moduli in zip(MASKS, MODULI):
        spectrum = np.fft.fft2(mask * image)
        total = total + np.mean((np.abs(spectrum) - moduli) ** 2)
    variation = np.sum(np.sqrt(1e-3 + np.diff(image, axis=0) ** 2)) + np.sum(
        np.sqrt(1e-3 + np.diff(image, axis=1) ** 2)
    )
    return total + 1e-3 * variation
