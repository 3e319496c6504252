"""Which step-time law does this pool follow? The nearest known ones, their three parts scaled to the pool's samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from policies.capacity.known_laws import KNOWN_LAWS
from policies.capacity.samples import LoadSample
from policies.capacity.step_time import StepLoad, StepTimeLaw

# How far one window is off from the law, relative: a minute's noise.
WINDOW_ERROR = 0.025
# How far a pool's three parts are off from those of the nearest law, once its speed is taken out.
PART_SPREAD = 0.6

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A known law and by what each of its parts is to be multiplied; `covariance` is of these factors.

    `misfit` is that to the samples and of the factors among each other, in squares of what is ordinary.
    """

    law: StepTimeLaw
    factors: Vector
    covariance: tuple[Vector, Vector, Vector]
    misfit: float
    window_error: float = WINDOW_ERROR  # of one window to any law
    likelihood: float = 1.0  # against the best law's

    def parts(self, load: StepLoad) -> Vector:
        """The mean step's time in its three parts."""
        (one, two, three), (fixed, contexts, prompts) = self.factors, self.law.terms(load)
        return (one * fixed, two * contexts, three * prompts)

    def seconds(self, load: StepLoad) -> float:
        """The mean step's time."""
        return sum(self.parts(load))

    def relative_error(self, load: StepLoad) -> float:
        """The standard deviation of `seconds`, as a share of it."""
        terms, seconds = self.law.terms(load), self.seconds(load)
        variance = sum(terms[i] * self.covariance[i][j] * terms[j] for i in range(3) for j in range(3))
        return math.sqrt(max(0.0, variance)) / seconds


def fit(samples: Sequence[LoadSample], laws: Sequence[StepTimeLaw] = KNOWN_LAWS) -> tuple[FittedLaw, ...]:
    """Each law as it fits the samples (at least one) best, the likeliest first.

    Its speed is the factor that brings it through the samples at all; then least squares of relative errors over three
    factors, each held to that speed by a prior of 60 %. Several laws go through the same few samples and part beyond
    them; so all are kept, by the likelihood of what is left over. Where even the likeliest is further off than a
    minute's noise explains, all windows are taken for as much noisier (Birge's ratio), which leaves more doubt.
    """
    moments = [_moments(law, samples) for law in laws]
    fitted = _fit_all(moments, WINDOW_ERROR)
    looseness = fitted[0].misfit / len(samples)
    if looseness > 1.0:
        fitted = _fit_all(moments, WINDOW_ERROR * math.sqrt(looseness))
    least = fitted[0].misfit
    return tuple(replace(each, likelihood=math.exp(0.5 * (least - each.misfit))) for each in fitted)


def foretold(laws: Sequence[FittedLaw], load: StepLoad) -> tuple[float, float]:
    """The mean step's time in one new window, by laws of at least one, and its deviation as a share of it."""
    total = sum(law.likelihood for law in laws)
    each = [(law.likelihood / total, law.seconds(load), law.relative_error(load)) for law in laws]
    mean = sum(share * seconds for share, seconds, _ in each)
    variance = sum(share * (error**2 + (seconds / mean - 1.0) ** 2) for share, seconds, error in each)
    return mean, math.sqrt(variance + laws[0].window_error ** 2)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Sums over samples, by weight, of a law's parts of a step as shares of the measured time: with the right factors
    they add up to 1. `speed` is the factor that all three would need alike.
    """

    law: StepTimeLaw
    speed: float
    weight: float
    parts: Vector
    products: tuple[Vector, Vector, Vector]


def _moments(law: StepTimeLaw, samples: Sequence[LoadSample]) -> _Moments:
    total = logarithms = a = b = c = aa = ab = ac = bb = bc = cc = 0.0
    for sample in samples:
        fixed, contexts, prompts = law.terms(sample.load)
        weight, seconds = sample.weight, sample.step_seconds
        x, y, z = fixed / seconds, contexts / seconds, prompts / seconds
        total += weight
        logarithms += weight * math.log(x + y + z)
        wx, wy, wz = weight * x, weight * y, weight * z
        a, b, c = a + wx, b + wy, c + wz
        aa, ab, ac = aa + wx * x, ab + wx * y, ac + wx * z
        bb, bc, cc = bb + wy * y, bc + wy * z, cc + wz * z
    return _Moments(law, math.exp(-logarithms / total), total, (a, b, c), ((aa, ab, ac), (ab, bb, bc), (ac, bc, cc)))


def _fit_all(moments: Sequence[_Moments], window_error: float) -> list[FittedLaw]:
    return sorted((_fit_to(each, window_error) for each in moments), key=lambda each: each.misfit)


def _fit_to(moments: _Moments, window_error: float) -> FittedLaw:
    speed, parts, products = moments.speed, moments.parts, moments.products
    error, spread = window_error**-2, (PART_SPREAD * speed) ** -2
    matrix = [[error * products[i][j] + (spread if i == j else 0.0) for j in range(3)] for i in range(3)]
    right = [error * part + spread * speed for part in parts]
    covariance = _inverse(matrix)
    one, two, three = (max(0.05 * speed, sum(row[j] * right[j] for j in range(3))) for row in covariance)
    factors = (one, two, three)
    squares = sum(factors[i] * products[i][j] * factors[j] for i in range(3) for j in range(3))
    residuals = moments.weight - 2.0 * sum(f * part for f, part in zip(factors, parts, strict=True)) + squares
    misfit = error * residuals + sum(spread * (factor - speed) ** 2 for factor in factors) + math.log(speed) ** 2
    return FittedLaw(moments.law, factors, covariance, misfit, window_error)


def _inverse(m: Sequence[Sequence[float]]) -> tuple[Vector, Vector, Vector]:
    """Of a symmetric, positive definite 3 x 3 matrix."""
    (a, b, c), (_, d, e), (_, _, f) = m
    aa, bb, cc = d * f - e * e, c * e - b * f, b * e - c * d
    dd, ee, ff = a * f - c * c, b * c - a * e, a * d - b * b
    scale = 1.0 / (a * aa + b * bb + c * cc)
    return (
        (aa * scale, bb * scale, cc * scale),
        (bb * scale, dd * scale, ee * scale),
        (cc * scale, ee * scale, ff * scale),
    )
