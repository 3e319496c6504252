"""What has been measured of a pool's replicas, at which load? A few means by load, however long it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from policies.capacity.step_time import StepLoad

# Windows of about the same load are one mean: up to a seventh as much again. What more load adds to a step is read off
# the distance between such means; wider ones make two of a load that doubles, and every law goes through two.
CLASS_WIDTH = 1.15
LARGEST_WEIGHT = 12.0  # a class tells of its last dozen windows
HALF_LIFE_WINDOWS = 90.0  # of classes that are visited no more: an hour and a half of such traffic
# A window with less than 0.7 of a class's load makes it fade a tenth as much: a night must not forget the day, and what
# the busiest minutes showed is nearest to what is asked for.
QUIET_SHARE, QUIET_FADING = 0.7, 0.1
MAXIMUM_CLASSES = 14


@dataclass(frozen=True, slots=True)
class LoadSample:
    """The mean replica over windows of about the same load. `weight` 1 is one new window.

    `step_seconds` is the mean time per output token; rates are per second.
    """

    weight: float
    step_seconds: float
    generated_tokens_per_second: float
    prompts_per_second: float
    context_tokens: float  # of one running sequence
    prompt_tokens: float  # computed, of one prompt
    cached_tokens: float

    @property
    def load(self) -> StepLoad:
        """The mean step. Sequences that decode are tokens a second x seconds a token (Little's law)."""
        return StepLoad(
            decoding=self.generated_tokens_per_second * self.step_seconds,
            context_tokens=self.context_tokens,
            prompts=self.prompts_per_second * self.step_seconds,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
        )

    def slower(self, times: float, largest_weight: float) -> LoadSample:
        """The same steps of a replica that takes so many times as long for each, with no more weight than that."""
        return replace(
            self,
            weight=min(self.weight, largest_weight),
            step_seconds=self.step_seconds * times,
            generated_tokens_per_second=self.generated_tokens_per_second / times,
            prompts_per_second=self.prompts_per_second / times,
        )


def with_sample(samples: tuple[LoadSample, ...], new: LoadSample) -> tuple[LoadSample, ...]:
    """The samples with one more window, by load: older ones weigh a little less; of more than 14 those of the least
    load go, as the others tell more of what a replica can do.
    """
    place = _load_class(new)
    kept, merged = [], new
    for sample in samples:
        is_quiet = new.generated_tokens_per_second < QUIET_SHARE * sample.generated_tokens_per_second
        fading = 0.5 ** ((QUIET_FADING if is_quiet else 1.0) / HALF_LIFE_WINDOWS)
        faded = replace(sample, weight=sample.weight * fading)
        if _load_class(sample) == place:
            merged = _merge(faded, new)
        else:
            kept.append(faded)
    kept.append(merged)
    return tuple(sorted(kept, key=lambda sample: sample.generated_tokens_per_second)[-MAXIMUM_CLASSES:])


def total_weight(samples: tuple[LoadSample, ...]) -> float:
    """The windows that the samples stand for."""
    return sum(sample.weight for sample in samples)


def context_share(samples: tuple[LoadSample, ...]) -> float:
    """What a running sequence holds on average, as a share of its request's prompt and answer: of all windows, by the
    requests that began in them. 1 where none began. Of one minute it says little: a dozen sequences that run, whose
    lengths differ by as much as their mean, are a quarter off.
    """
    held = tokens = 0.0
    for sample in samples:
        requests = sample.weight * sample.prompts_per_second
        held += requests * sample.context_tokens
        tokens += requests * (sample.prompt_tokens + sample.cached_tokens)
        tokens += sample.weight * sample.generated_tokens_per_second
    return held / tokens if held > 0.0 else 1.0


def _load_class(sample: LoadSample) -> int:
    return round(math.log(sample.generated_tokens_per_second) / math.log(CLASS_WIDTH))


def _merge(old: LoadSample, new: LoadSample) -> LoadSample:
    weight = min(old.weight, LARGEST_WEIGHT - new.weight)
    share = new.weight / (weight + new.weight)
    mixed = {
        name: getattr(old, name) + share * (getattr(new, name) - getattr(old, name))
        for name in (
            "step_seconds",
            "generated_tokens_per_second",
            "prompts_per_second",
            "context_tokens",
            "prompt_tokens",
            "cached_tokens",
        )
    }
    return LoadSample(weight=weight + new.weight, **mixed)
