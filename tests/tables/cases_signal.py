"""Calls of filters of signals: functions of a namespace and signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

X = np.random.default_rng(0).standard_normal((3, 40))
H = np.random.default_rng(1).standard_normal((2, 4))
B, A = scipy.signal.butter(3, 0.3)
SOS = scipy.signal.butter(4, 0.3, output="sos")
FIR = np.array([0.2, -0.4, 0.9, 0.1])

LINEAR: dict[str, Any] = {
    "lfilter": lambda s, x: s.lfilter(B, A, x),
    "lfilter-axis": lambda s, x: s.lfilter(B, A, x, 0),
    "sosfilt": lambda s, x: s.sosfilt(SOS, x),
    "filtfilt": lambda s, x: s.filtfilt(B, A, x),
    "filtfilt-even": lambda s, x: s.filtfilt(B, A, x.T, axis=0, padtype="even", padlen=7),
    "filtfilt-constant": lambda s, x: s.filtfilt(FIR, [1.0], x, padtype="constant"),
    "filtfilt-none": lambda s, x: s.filtfilt(B, A, x, padtype=None),
    "detrend": lambda s, x: s.detrend(x),
    "detrend-broken": lambda s, x: s.detrend(x, bp=[15]),
    "detrend-constant": lambda s, x: s.detrend(x, axis=0, type="constant"),
    **{
        f"savgol_filter-{mode}": lambda s, x, mode=mode: s.savgol_filter(x, 7, 2, mode=mode)
        for mode in ("interp", "mirror", "nearest", "wrap", "constant")
    },
    "savgol_filter-even": lambda s, x: s.savgol_filter(x, 6, 3, deriv=1, delta=0.5),
    "savgol_filter-axis": lambda s, x: s.savgol_filter(x.T, 5, 2, axis=0),
    "upfirdn": lambda s, x: s.upfirdn(FIR, x),
    "upfirdn-up": lambda s, x: s.upfirdn(FIR, x, 3, 2),
    "upfirdn-down": lambda s, x: s.upfirdn(FIR, x, 2, 5, axis=0),
    "upfirdn-short": lambda s, x: s.upfirdn([1.0, 2.0], x, 3, 7),
    **{
        f"resample-{size}-{num}": lambda s, x, size=size, num=num: s.resample(x[:, :size], num, axis=1)
        for size in (20, 21)
        for num in (12, 13, 20, 28, 29)
    },
    "hilbert": lambda s, x: s.hilbert(x).imag,
    "hilbert-odd": lambda s, x: s.hilbert(x, axis=0).imag,
}
