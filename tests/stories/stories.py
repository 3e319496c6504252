"""The stories: what may happen to a pool of LLM servers, each one thing at a time."""

from __future__ import annotations

from autoscaler.replay.faults import LateMetrics, PrometheusOutage, Rollout, UnscrapedReplicas, WedgedReplicas
from autoscaler.replay.routers import RouterName
from tests.stories.staging import Story

STORIES = (
    Story(
        "step",
        "Within a few seconds there is nearly three times the load; it stays for 20 minutes.",
        ((0, 3), (10, 3), (10.1, 8), (30, 8), (30.1, 3), (50, 3)),
    ),
    Story(
        "ramp",
        "The load grows fourfold in half an hour, and goes back in another.",
        ((0, 3), (10, 3), (40, 12), (50, 12), (80, 3), (90, 3)),
    ),
    Story(
        "spike",
        "Three times the load for 45 seconds: over before a replica could have started for it.",
        ((0, 3), (10, 3), (10.05, 9), (10.8, 9), (10.85, 3), (30, 3)),
    ),
    Story(
        "recurring-bursts",
        "Every 15 minutes three and a half times the load for three minutes; after the third time no more.",
        (
            *((0, 3), (15, 3), (15.1, 10.5), (18, 10.5), (18.1, 3), (30, 3), (30.1, 10), (33, 10), (33.1, 3)),
            *((45, 3), (45.1, 9), (48, 9), (48.1, 3), (85, 3)),
        ),
        policy={"signals": {}, "recurringBursts": {"withinSeconds": 1800}},
    ),
    Story(
        "expected-bursts",
        "The same load; the policy says how tall bursts are that it expects.",
        (
            *((0, 3), (15, 3), (15.1, 10.5), (18, 10.5), (18.1, 3), (30, 3), (30.1, 10), (33, 10), (33.1, 3)),
            *((45, 3), (45.1, 9), (48, 9), (48.1, 3), (85, 3)),
        ),
        policy={"signals": {}, "recurringBursts": {"withinSeconds": 1800, "expectedAmplification": 3.5}},
    ),
    Story(
        "prometheus-outage",
        "Prometheus is out of reach for ten minutes. The load falls just before and doubles meanwhile.",
        ((0, 7), (10, 7), (12, 3), (16, 3), (18, 6), (45, 6)),
        first_replicas=9,
        faults=(PrometheusOutage(at_seconds=60.0 * 11.5, lasts_seconds=600.0),),
    ),
    Story(
        "slow-cold-start",
        "Replicas take ten minutes to start where the policy says two; the load steps up twice.",
        ((0, 3), (10, 3), (10.1, 6), (40, 6), (40.1, 9), (60, 9), (60.1, 4), (90, 4)),
        cold_start_seconds=600.0,
    ),
    Story(
        "wedged-replica",
        "One replica stands still and keeps its requests, while the load falls to what one replica could do.",
        ((0, 4), (10, 4), (20, 0.8), (60, 0.8)),
        first_replicas=6,
        policy={"minReplicas": 1},
        faults=(WedgedReplicas(at_seconds=600.0),),
    ),
    Story(
        "router-imbalance",
        "The router sends a few replicas most of the requests.",
        ((0, 4), (40, 4)),
        first_replicas=6,
        router=RouterName.IMBALANCED,
    ),
    Story(
        "metrics-lag",
        "All metrics come 60 seconds late, always, under a load that comes and goes.",
        ((0, 3), (15, 7), (30, 3), (45, 7), (60, 3), (75, 3)),
        faults=(LateMetrics(at_seconds=0.0, delay_seconds=60.0),),
    ),
    Story(
        "unknown-replicas",
        "The scrapes of 30 percent of the replicas fail for an hour, in which the load falls to less than half.",
        ((0, 8), (30, 8), (45, 3), (85, 3), (95, 8), (110, 8)),
        first_replicas=10,
        faults=(UnscrapedReplicas(at_seconds=1800.0, share=0.3, lasts_seconds=3600.0),),
    ),
    Story(
        "rollout",
        "Every replica is replaced by a new one under a steady load.",
        ((0, 6), (60, 6)),
        first_replicas=8,
        faults=(Rollout(at_seconds=900.0),),
    ),
)
