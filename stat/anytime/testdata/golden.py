"""Writes golden.json beside itself: reference values at 50 digits by mpmath.

    pip install mpmath==1.4.1 && python golden.py
"""
import json
import pathlib

import mpmath as mp

mp.mp.dps = 50


def mixture(s, n, p, horizon, alpha):
    """M+(s, n; p), the one-sided beta-binomial mixture, by its definition."""
    s, n, p, horizon, alpha = map(mp.mpf, map(str, (s, n, p, horizon, alpha)))
    v, l = p * (1 - p), 2 * mp.log(1 / (2 * alpha))
    r = max(v * horizon / (l + mp.log(1 + l)) - v, v / 1000)
    a, b = r / (1 - p), r / p

    def upper(a, b):  # B(a, b) I_{1-p}(b, a)
        return mp.betainc(b, a, 0, 1 - p)

    return mp.log(upper(a + s, b + n - s)) - mp.log(upper(a, b)) - s * mp.log(p) - (n - s) * mp.log(1 - p)


def normal(z, n, horizon, alpha):
    """The one-sided normal mixture: integral of exp(l s - l^2 n / 2) over a half-normal l."""
    z, n, horizon, alpha = map(mp.mpf, map(str, (z, n, horizon, alpha)))
    rho = mp.sqrt((-2 * mp.log(alpha) + mp.log(1 - 2 * mp.log(alpha))) / horizon)
    # The normal distribution function is written out; the integral is its square completed.
    k = n * rho**2
    return mp.log(2) - mp.log(k + 1) / 2 + k * z**2 / (2 * (k + 1)) + mp.log(mp.ncdf(z * mp.sqrt(k / (k + 1))))


def dirichlet(counts, shares):
    k = 10000
    n = sum(counts)
    out = mp.loggamma(k) - mp.loggamma(k + n)
    for c, t in zip(counts, shares):
        t = mp.mpf(str(t))
        out += mp.loggamma(k * t + c) - mp.loggamma(k * t) - c * mp.log(t)
    return out


out = {
    "mixture": [
        dict(s=s, n=n, p=p, horizon=h, alpha=a, log=float(mixture(s, n, p, h, a)))
        for s, n, p, h, a in [
            (0, 0, 0.5, 1000, 0.05), (0, 10, 0.5, 1000, 0.05), (10, 10, 0.5, 1000, 0.05), (60, 100, 0.5, 1000, 0.05),
            (950, 1000, 0.95, 1000, 0.05), (980, 1000, 0.95, 1000, 0.05), (900, 1000, 0.95, 1000, 0.05), (12.5, 1000, 0.01, 1000, 0.05),
            (30.25, 1000, 0.01, 5000, 0.01), (0, 1000, 0.01, 1000, 0.05), (19000, 20000, 0.99, 1000, 0.05), (5, 100000, 0.01, 1000, 0.05),
            (5000, 100000, 0.01, 1000, 0.05), (99999, 100000, 0.95, 300, 0.05), (50000, 100000, 0.95, 300, 0.05), (3, 50, 1e-6, 1000, 0.05),
            (1, 3, 0.2, 2, 0.05),
        ]
    ],
    "normal": [
        dict(z=z, n=n, horizon=1000, log=float(normal(z, n, 1000, 0.05)))
        for z, n in [(0, 1), (0, 1000), (2, 500), (3, 1000), (-1, 1000), (-50, 2000), (40, 2000)]
    ],
    "mismatch": [
        dict(counts=c, shares=s, log=float(dirichlet(c, s)))
        for c, s in [
            ([0, 0], [0.5, 0.5]), ([500, 500], [0.5, 0.5]), ([560, 440], [0.5, 0.5]), ([2200, 17800], [0.1, 0.9]),
            ([1200, 8800], [0.1, 0.9]), ([300, 300, 400], [0.3, 0.3, 0.4]), ([300, 200, 500], [0.3, 0.3, 0.4]),
        ]
    ],
}
path = pathlib.Path(__file__).with_name("golden.json")
path.write_text(json.dumps(dict(mpmath=mp.__version__, **out), indent=1) + "\n")
