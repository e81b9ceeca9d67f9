"""Writes scipy.json beside itself: reference values of SciPy.

    pip install scipy==1.17.1 && python golden.py
"""
import json
import pathlib

import numpy as np
import scipy
import scipy.stats as st
from scipy.optimize import brentq, minimize_scalar

rng = np.random.default_rng(20261130)


def sample(n, shift, digits):
    return np.round(rng.lognormal(shift, 0.8, n), digits).tolist()


ranks = []
for m, n, shift, digits in [(12, 15, 0.0, 3), (40, 30, 0.5, 3), (50, 60, 0.2, 0), (200, 150, -0.3, 2), (8, 9, 3.0, 3)]:
    x, y = sample(m, shift, digits), sample(n, 0, digits)
    u = st.mannwhitneyu(x, y, method="asymptotic", alternative="two-sided")
    row = dict(
        x=x, y=y, u=u.statistic, p=u.pvalue,
        greater=st.mannwhitneyu(x, y, method="asymptotic", alternative="greater").pvalue,
        less=st.mannwhitneyu(x, y, method="asymptotic", alternative="less").pvalue,
    )
    if len(set(x) | set(y)) == m + n:
        k = st.ks_2samp(x, y, method="exact")
        row["ks"] = [float(k.statistic), float(k.pvalue)]
    if min(x) <= max(y) and min(y) <= max(x):
        b = st.brunnermunzel(x, y, distribution="t", alternative="two-sided")
        row["brunner_p"] = float(b.pvalue)
    ranks.append(row)

limit = []
for m, n, d in [(5000, 4000, 0.03), (3000, 3000, 0.02), (10000, 2000, 0.05)]:
    limit.append(dict(m=m, n=n, d=d, p=float(st.kstwo.sf(d, round(m * n / (m + n))))))



def score(x1, n1, x2, n2, d):
    """Miettinen and Nurminen's score, by maximising the likelihood.

    statsmodels 0.15.0 has count0 where nobs0 belongs in its cubic equation, so
    it is no reference here.
    """
    def likelihood(p):
        return -(x1 * np.log(p + d) + (n1 - x1) * np.log(1 - p - d) + x2 * np.log(p) + (n2 - x2) * np.log(1 - p))

    at = dict(bounds=(max(0, -d) + 1e-12, min(1, 1 - d) - 1e-12), method="bounded", options=dict(xatol=1e-12))
    p2 = minimize_scalar(likelihood, **at).x
    v = (p2 + d) * (1 - p2 - d) / n1 + p2 * (1 - p2) / n2
    return (x1 / n1 - x2 / n2 - d) / np.sqrt(v * (n1 + n2) / (n1 + n2 - 1))


proportions = []
for a, n, b, m in [(30, 300, 10, 290), (40, 80, 20, 90), (60, 1000, 90, 1000), (20, 60, 31, 64), (95, 100, 99, 100), (2, 300, 9, 290)]:
    z = st.norm.ppf(0.975)
    lo = brentq(lambda d: score(a, n, b, m, d) - z, -0.9, a / n - b / m, xtol=1e-12)
    hi = brentq(lambda d: score(a, n, b, m, d) + z, a / n - b / m, 0.9, xtol=1e-12)
    proportions.append(dict(a=a, n=n, b=b, m=m, interval=[float(lo), float(hi)]))

flips = []
for n, shift in [(7, 0.4), (10, 0.2)]:
    d = np.round(rng.normal(shift, 1, n), 2).tolist()
    p = {a: float(st.permutation_test((d,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative=a).pvalue) for a in ("greater", "less")}
    flips.append(dict(d=d, **p))

bca = []
x = np.round(rng.lognormal(0, 1, 60), 4).tolist()
r = st.bootstrap((x,), np.mean, confidence_level=0.9, method="BCa", n_resamples=200_000, random_state=1)
bca.append(dict(x=x, statistic="mean", interval=[float(r.confidence_interval.low), float(r.confidence_interval.high)]))

path = pathlib.Path(__file__).with_name("scipy.json")
path.write_text(json.dumps(dict(
    versions=dict(scipy=scipy.__version__, numpy=np.__version__),
    ranks=ranks, ks_limit=limit, proportions=proportions, flips=flips, bca=bca,
), indent=1) + "\n")
