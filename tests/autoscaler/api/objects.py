"""One table of good and bad objects: the Python types and a real API server must judge every row alike."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

SCALER: Document = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "InferenceScaler",
    "metadata": {"name": "llama-70b", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm-llama-70b"},
        "engine": "vllm",
        "minReplicas": 2,
        "maxReplicas": 16,
    },
}
POOL: Document = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "h100-interactive"},
    "spec": {"nodePools": {"onDemand": "h100-od", "spot": "h100-spot"}},
}
ABSENT = object()
"""As a value: the field is left out."""


@dataclass(frozen=True, slots=True)
class ObjectCase:
    """An object; `field` None: it is accepted. Else both name this field, and the Python types say `says` as well."""

    sentence: str
    document: Document
    field: str | None = None
    says: str = ""


def scaler(sentence: str, changes: Document, field: str | None = None, says: str = "") -> ObjectCase:
    """An InferenceScaler with changes by dotted path below spec; "/" before a path means from the document's root."""
    return ObjectCase(sentence, changed(SCALER, changes), field, says)


def pool(sentence: str, changes: Document, field: str | None = None, says: str = "") -> ObjectCase:
    """An AcceleratorPool, in the same way."""
    return ObjectCase(sentence, changed(POOL, changes), field, says)


def two_targets(spot: str = "vllm-spot") -> Document:
    """Two targets of one pool."""
    return {
        kind: {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}
        for kind, name in {"onDemand": "vllm-od", "spot": spot}.items()
    }


def changed(document: Document, changes: Document) -> Document:
    """A copy of the document with some paths set, or removed where the value is ABSENT."""
    result = copy.deepcopy(document)
    for path, value in changes.items():
        *parents, last = path.removeprefix("/").split(".") if path.startswith("/") else ["spec", *path.split(".")]
        node = result
        for parent in parents:
            node = node.setdefault(parent, {})
        if value is ABSENT:
            del node[last]
        else:
            node[last] = value
    return result


def schedule(**changes: Any) -> list[Document]:
    """One schedule window on working days with some fields changed, or removed where None is given."""
    window = {"name": "day", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "minReplicas": 4} | changes
    return [{name: value for name, value in window.items() if value is not None}]


ACCEPTED = [
    scaler("the least that can be said is accepted", {"minReplicas": ABSENT}),
    scaler("null for a field that has a default is the default", {"mode": None, "behavior": None, "schedules": None}),
    scaler("null for a vote is no vote", {"signals.kvCache": None}),
    scaler("a vote without fields is a vote with defaults", {"signals.kvCache": {}, "signals.tokensInFlight": {}}),
    scaler("null for the tokens of a replica means half of its KV cache", {"signals.tokensInFlight.perReplica": None}),
    scaler("a fraction may stand where a number is wanted", {"signals.waitingRequests.perReplica": 0.5}),
    scaler("a behavior may name one field of one direction", {"behavior.scaleDown.stabilizationWindowSeconds": 600}),
    scaler("a direction may be disabled", {"behavior.scaleDown.selectPolicy": "Disabled"}),
    scaler(
        "zero replicas with a gateway that wakes the pool",
        {"minReplicas": 0, "signals.pendingRequests": {"query": "sum(pending)", "perReplica": 8}},
    ),
    scaler("zero replicas with a schedule that wakes the pool", {"minReplicas": 0, "schedules": schedule()}),
    scaler(
        "a schedule with names, lists and steps",
        {"schedules": schedule(start="*/15 0-6,20 1,15 JAN-MAR MON-FRI", end="30 7 * 1-12/2 0,7")},
    ),
    scaler("a schedule on the 29th of February", {"schedules": schedule(start="0 0 29 2 *")}),
    scaler("a schedule on the 31st of a long month among short ones", {"schedules": schedule(start="0 0 31 4,5 *")}),
    scaler("a schedule on the 30th of February or any Monday", {"schedules": schedule(start="0 0 30 2 1")}),
    scaler("a schedule in a time zone", {"schedules": schedule(timezone="America/Argentina/Buenos_Aires")}),
    scaler(
        "days of the calendar",
        {
            "schedules": schedule(
                start=None, end=None, dates=["2026-12-24/2026-12-27", "2028-02-29"], minReplicas=None, maxReplicas=4
            )
        },
    ),
    scaler(
        "a window that leaves days out and is not prepared for",
        {"schedules": schedule(exceptDates=["2026-12-25"], readyBy=False)},
    ),
    scaler("a forecast with nothing said about it", {"forecast": {}}),
    scaler("a forecast by costs", {"forecast": {"mode": "Active", "missIdleCostRatio": 9, "historyDays": 21}}),
    scaler("a schedule that only lowers the maximum", {"schedules": schedule(minReplicas=None, maxReplicas=8)}),
    scaler("a fallback that only says how many", {"missingData.fallback.replicas": 8}),
    scaler(
        "the user's own PromQL with an engine of which nothing is known",
        {"engine": "custom", "signals.custom": [{"name": "queue", "query": "sum(queue)", "perReplica": 10}]},
    ),
    scaler(
        "a target of any kind",
        {"scaleTargetRef": {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "a.b-c"}},
    ),
    scaler(
        "a pool of accelerators and how many a replica takes",
        {"acceleratorPoolRef": {"name": "h100"}, "acceleratorsPerReplica": 8},
    ),
    scaler("null for the accelerators of a replica", {"acceleratorsPerReplica": None, "acceleratorPoolRef": None}),
    scaler("whole nodes are to become empty", {"scaleDownVictims": "WholeNodes"}),
    scaler("who goes ends its requests first", {"scaleDownVictims": "WholeNodes", "scaleDownDrainSeconds": 120}),
    scaler("nobody ends requests first", {"scaleDownDrainSeconds": None}),
    scaler("who loads is left alone", {"protectLoadingReplicas": True}),
    scaler(
        "two targets, on demand and spot",
        {"scaleTargetRef": ABSENT, "acceleratorPoolRef": {"name": "h100"}, "capacityTypes": two_targets()},
    ),
    pool("a pool with both capacity types", {}),
    pool(
        "a pool with a ceiling in dollars",
        {"ceilings": {"dollarsPerHour": "3000"}, "nodeDollarsPerHour": {"onDemand": "55.04", "spot": "20.5"}},
    ),
    pool(
        "a pool that holds a node ready",
        {
            "prewarm": {
                "method": "PlaceholderPods",
                "placeholderRef": {"namespace": "inference", "name": "warm"},
                "spareNodes": 1,
            }
        },
    ),
    pool("a pool whose nodes come with its replicas", {"prewarm": {"method": "Replicas"}}),
    pool("a pool whose nodes Karpenter keeps ready", {"prewarm": {"method": "CapacityBuffer", "spareNodes": 2}}),
    pool("a pool for whose nodes a buffer is made, spare ones by its class", {"prewarm": {"method": "CapacityBuffer"}}),
    pool(
        "a spot cap that leaves one spot node",
        {"nodeShape": {"accelerators": 8}, "split": {"spotCapPercent": 30}, "ceilings": {"accelerators": 32}},
    ),
    pool(
        "a managed pool whose budgets are closed while it grows",
        {"mode": "Manage", "manageDisruption": True, "nodeShape": {"accelerators": 8}},
    ),
    pool("a pool for people who wait", {"latencyClass": "Interactive"}),
    pool("a pool for work that nobody waits for", {"latencyClass": "Batch"}),
    pool("a pool without spot nodes", {"nodePools.spot": ABSENT}),
    pool("a pool with null for spot nodes", {"nodePools.spot": None, "mode": "Observe"}),
    pool("a managed pool that says what a node brings", {"mode": "Manage", "nodeShape": {"accelerators": 8}}),
    pool(
        "a managed pool with everything said",
        {
            "mode": "Manage",
            "nodeShape": {"accelerators": 8, "cpu": 192, "memory": "2048Gi", "ephemeralStorage": "1Ti"},
            "slackNodes": 0,
            "split": {"spotCapPercent": 30},
            "ceilings": {"accelerators": 64},
        },
    ),
]
REFUSED = [
    scaler("a spec is needed", {"/spec": ABSENT}, "spec", "missing"),
    scaler("a spec is an object", {"/spec": "vllm"}, "spec", "object"),
    scaler("an unknown top-level field", {"/specs": {}}, "specs", "did you mean spec?"),
    scaler("a misspelt field", {"maxReplica": 3}, "spec.maxReplica", "did you mean maxReplicas?"),
    scaler("a field in Python's spelling", {"min_replicas": 3}, "spec.min_replicas", "did you mean minReplicas?"),
    scaler("a misspelt field deep inside", {"behavior.scaleUp.policies": [
        {"type": "Pods", "value": 4, "periodSecond": 15, "periodSeconds": 15}]},
        "spec.behavior.scaleUp.policies[0].periodSecond", "did you mean periodSeconds?"),
    scaler("the maximum is needed", {"maxReplicas": ABSENT}, "spec.maxReplicas", "missing"),
    scaler("null for a field that is needed", {"maxReplicas": None}, "spec.maxReplicas", "missing"),
    scaler("a target is needed", {"scaleTargetRef": ABSENT}, "scaleTargetRef", "or capacityTypes"),
    scaler("one target and two", {"capacityTypes": two_targets(), "acceleratorPoolRef": {"name": "h100"}},
           "scaleTargetRef", "or capacityTypes"),
    scaler("two targets and nobody who says how they share", {"scaleTargetRef": ABSENT, "capacityTypes": two_targets()},
           "capacityTypes", "needs acceleratorPoolRef"),
    scaler("victims of a kind that chooses them itself", {"scaleDownVictims": "WholeNodes",
           "scaleTargetRef.kind": "StatefulSet"}, "scaleDownVictims", "highest numbers"),
    scaler("victims that end their requests first, of nobody's choice", {"scaleDownDrainSeconds": 120},
           "scaleDownDrainSeconds", "needs scaleDownVictims WholeNodes"),
    scaler("victims that end their requests first, where an HPA writes the count", {"scaleDownVictims": "WholeNodes",
           "scaleDownDrainSeconds": 120, "mode": "ExternalMetric"}, "scaleDownDrainSeconds", "nobody else writes"),
    scaler("a drain too short for routers to hear of it", {"scaleDownVictims": "WholeNodes",
           "scaleDownDrainSeconds": 9}, "spec.scaleDownDrainSeconds", "10"),
    scaler("two targets that are one", {"scaleTargetRef": ABSENT, "acceleratorPoolRef": {"name": "h100"},
           "capacityTypes": two_targets(spot="vllm-od")}, "spec.capacityTypes", "two targets"),
    scaler("two targets for an autoscaler that has one", {"scaleTargetRef": ABSENT, "mode": "ExternalMetric",
           "acceleratorPoolRef": {"name": "h100"}, "capacityTypes": two_targets()}, "capacityTypes", "one target"),
    scaler("an engine is needed", {"engine": ABSENT}, "spec.engine", "missing"),
    scaler("a number in quotes is no number", {"maxReplicas": "16"}, "spec.maxReplicas", "whole number"),
    scaler("true is no number", {"maxReplicas": True}, "spec.maxReplicas", "whole number"),
    scaler("half a replica", {"minReplicas": 2.5}, "spec.minReplicas", "whole number"),
    scaler("fewer than no replicas", {"minReplicas": -1}, "spec.minReplicas", "at least 0"),
    scaler("more replicas than anybody has", {"maxReplicas": 100_001}, "spec.maxReplicas", "at most 100000"),
    scaler("a number beyond 64 bits", {"maxReplicas": 10**20}, "spec.maxReplicas", "it must be"),
    scaler("the minimum above the maximum", {"minReplicas": 17}, "minReplicas", "17 is above maxReplicas 16"),
    scaler("zero replicas and nothing to wake the pool", {"minReplicas": 0}, "minReplicas", "signals.pendingRequests"),
    scaler("an unknown mode", {"mode": "Sacle"}, "spec.mode", "'Scale'"),
    scaler("an unknown engine", {"engine": "vLLM"}, "spec.engine", "'vllm'"),
    scaler("a target without a name", {"scaleTargetRef.name": ""}, "spec.scaleTargetRef.name", "at least 1"),
    scaler("a target's kind in lower case", {"scaleTargetRef.kind": "deployment"}, "spec.scaleTargetRef.kind"),
    scaler("a target's apiVersion without a version", {"scaleTargetRef.apiVersion": "apps"},
           "spec.scaleTargetRef.apiVersion", "such as apps/v1"),
    scaler("a target's name with a path in it", {"scaleTargetRef.name": "a/../b"}, "spec.scaleTargetRef.name"),
    scaler("signals as a list", {"signals": []}, "spec.signals", "object"),
    scaler("schedules as an object", {"schedules": {"day": {}}}, "spec.schedules", "a list"),
    scaler("a vote that lacks its number", {"signals.tokenRate": {}},
           "spec.signals.tokenRate.perReplicaPerSecond", "missing"),
    scaler("no request may wait", {"signals.waitingRequests.perReplica": 0},
           "spec.signals.waitingRequests.perReplica", "more than 0"),
    scaler("headroom for the whole cache", {"signals.kvCache.headroomPercent": 100},
           "spec.signals.kvCache.headroomPercent", "at most 95"),
    scaler("an empty query", {"signals.pendingRequests": {"query": "", "perReplica": 1}},
           "spec.signals.pendingRequests.query", "at least 1"),
    scaler("a vote's name with capitals", {"signals.custom": [{"name": "Queue", "query": "q", "perReplica": 1}]},
           "spec.signals.custom[0].name", "lower case"),
    scaler("two votes of one name", {"signals.custom": [
        {"name": "queue", "query": "a", "perReplica": 1}, {"name": "queue", "query": "b", "perReplica": 1}]},
        "signals", "more than once"),
    scaler("a vote with two targets", {"signals.custom": [
        {"name": "queue", "query": "a", "perReplica": 1, "perPool": 1}]},
        "spec.signals.custom[0]", "perReplica or perPool"),
    scaler("a vote without a target", {"signals.custom": [{"name": "queue", "query": "a"}]},
        "spec.signals.custom[0]", "perReplica or perPool"),
    scaler("nine votes of one's own", {"signals.custom": [
        {"name": f"v{index}", "query": "a", "perReplica": 1} for index in range(9)]},
        "spec.signals.custom", "at most 8 items"),
    scaler("null among the votes", {"signals.custom": [None]}, "spec.signals.custom[0]", "object"),
    scaler("an engine's signal where the engine is custom", {"engine": "custom", "signals.kvCache": {}},
           "signals", "instead of kvCache"),
    scaler("a policy without a type", {"behavior.scaleUp.policies": [{"value": 4, "periodSeconds": 15}]},
           "spec.behavior.scaleUp.policies[0].type", "missing"),
    scaler("a policy that allows nothing", {"behavior.scaleUp.policies": [
        {"type": "Pods", "value": 0, "periodSeconds": 15}]}, "spec.behavior.scaleUp.policies[0].value", "more than 0"),
    scaler("a policy over too long a time", {"behavior.scaleUp.policies": [
        {"type": "Pods", "value": 1, "periodSeconds": 1801}]},
        "spec.behavior.scaleUp.policies[0].periodSeconds", "at most 1800"),
    scaler("no policy at all", {"behavior.scaleDown.policies": []}, "spec.behavior.scaleDown.policies", "at least 1"),
    scaler("a window of more than an hour", {"behavior.scaleDown.stabilizationWindowSeconds": 3601},
           "spec.behavior.scaleDown.stabilizationWindowSeconds", "at most 3600"),
    scaler("a tolerance below nothing", {"behavior.scaleUp.tolerance": -0.1},
           "spec.behavior.scaleUp.tolerance", "at least 0"),
    scaler("a fallback above the maximum", {"missingData.fallback.replicas": 17},
           "missingData.fallback.replicas", "17 is above maxReplicas 16"),
    scaler("a fallback of an unknown behavior", {"missingData.fallback": {"replicas": 4, "behavior": "Lower"}},
           "spec.missingData.fallback.behavior", "'CurrentIfHigher'"),
    scaler("a cold start of no time", {"coldStart.priorSeconds": 0}, "spec.coldStart.priorSeconds", "at least 1"),
    scaler("a schedule that never opens", {"schedules": schedule(start=None, end=None)}, "schedules[0]", "or dates"),
    scaler("a start without an end", {"schedules": schedule(end=None)}, "schedules[0]", "go together"),
    scaler("a day that no month has", {"schedules": schedule(dates=["2026-02-30"])}, "dates", "2026-02-30"),
    scaler("days the wrong way round", {"schedules": schedule(exceptDates=["2026-12-27/2026-12-24"])},
           "xceptDates", "earlier date first"),
    scaler("a date in another form", {"schedules": schedule(dates=["24.12.2026"])}, "dates[0]", ""),
    scaler("a schedule that changes nothing", {"schedules": schedule(minReplicas=None)},
           "schedules[0]", "minReplicas, maxReplicas or both"),
    scaler("a schedule with its bounds crossed", {"schedules": schedule(minReplicas=9, maxReplicas=8)},
           "schedules[0]", "above its maxReplicas 8"),
    scaler("a schedule that ends as it starts", {"schedules": schedule(end="0 8 * * 1-5")},
           "schedules[0]", "same moments"),
    scaler("a schedule above the maximum", {"schedules": schedule(minReplicas=17)}, "schedule", "above the policy's"),
    scaler("a schedule below the minimum", {"schedules": schedule(minReplicas=None, maxReplicas=1)},
           "schedule", "below the policy's"),
    scaler("two schedules of one name", {"schedules": schedule() + schedule()}, "schedules", "more than once"),
    scaler("a schedule with four fields", {"schedules": schedule(start="0 8 * * ")},
           "spec.schedules[0].start", "minute hour day-of-month month day-of-week"),
    scaler("a schedule in words", {"schedules": schedule(start="every morning at 8")},
           "spec.schedules[0].start", "no cron expression"),
    scaler("a schedule at minute 60", {"schedules": schedule(start="60 8 * * *")},
           "spec.schedules[0].start", "no cron expression"),
    scaler("a schedule at hour 24", {"schedules": schedule(end="0 24 * * *")},
           "spec.schedules[0].end", "no cron expression"),
    scaler("a schedule from Friday back to Monday", {"schedules": schedule(start="0 8 * * 5-1")},
           "spec.schedules[0].start", "backwards"),
    scaler("a schedule from March back to January", {"schedules": schedule(start="0 8 * MAR-JAN *")},
           "spec.schedules[0].start", "backwards"),
    scaler("a schedule on the 30th of February", {"schedules": schedule(start="0 8 30 2 *")},
           "spec.schedules[0].start", "never happens"),
    scaler("a schedule on the 31st of short months", {"schedules": schedule(end="0 8 31 APR,6,9,11 *")},
           "spec.schedules[0].end", "never happens"),
    scaler("a time zone that does not exist", {"schedules": schedule(timezone="Europe/Atlantis")},
           "schedules[0]", "no IANA time zone"),
    scaler("the time zone of the machine", {"schedules": schedule(timezone="Local")},
           "spec.schedules[0].timezone", "America/New_York"),
    scaler("a time zone as an offset", {"schedules": schedule(timezone="+05:00")}, "spec.schedules[0].timezone"),
    scaler("a replica of no accelerators", {"acceleratorsPerReplica": 0}, "spec.acceleratorsPerReplica", "at least 1"),
    scaler("a pool without a name", {"acceleratorPoolRef": {}}, "spec.acceleratorPoolRef.name", "missing"),
    scaler("a field of a later version", {"warmBuffer": {"replicas": 2}}, "spec.warmBuffer", "not a known field"),
    scaler("a quantile and costs that say another one", {"forecast": {"quantilePercent": 90, "missIdleCostRatio": 9}},
           "spec.forecast", "not both"),
    scaler("a quantile that no forecast has", {"forecast": {"quantilePercent": 99}},
           "spec.forecast.quantilePercent", "at most 95"),
    pool("a pool needs its on-demand nodes", {"nodePools.onDemand": ABSENT}, "spec.nodePools.onDemand", "missing"),
    pool("a pool with one NodePool twice", {"nodePools.spot": "h100-od"}, "spec.nodePools", "same NodePool"),
    pool("a pool of a class that we do not know", {"latencyClass": "Realtime"}, "spec.latencyClass", "'Batch'"),
    pool("a pool whose disruption is managed and nothing else", {"manageDisruption": True},
         "spec", "manageDisruption needs mode Manage"),
    pool("a pool that is to be owned", {"mode": "Own"}, "spec.mode", "'Observe'"),
    pool("a managed pool without the shape of a node", {"mode": "Manage"}, "spec", "mode Manage needs nodeShape"),
    pool("a node that brings no accelerators", {"nodeShape": {"accelerators": 0}},
         "spec.nodeShape.accelerators", "at least 1"),
    pool("a node whose memory is a word", {"nodeShape": {"accelerators": 8, "memory": "lots"}},
         "spec.nodeShape.memory", "lots"),
    pool("a split of one NodePool", {"nodePools.spot": None, "split": {"onDemandFloorPercent": 20}},
         "spec", "split needs nodePools.spot"),
    pool("a split said twice", {"split": {"onDemandFloorPercent": 20, "spotCapPercent": 30}},
         "spec.split", "one of onDemandFloorPercent and spotCapPercent"),
    pool("a ceiling below one node", {"nodeShape": {"accelerators": 8}, "ceilings": {"accelerators": 7}},
         "spec", "hold one node"),
    pool("a spot cap that leaves no spot node", {"nodeShape": {"accelerators": 8}, "split": {"spotCapPercent": 30},
         "ceilings": {"accelerators": 31}}, "spec", "30 % on spot of 3 nodes is 0.9, and nodes are whole"),
    pool("a floor that leaves no spot node", {"nodeShape": {"accelerators": 8}, "split": {"onDemandFloorPercent": 90},
         "ceilings": {"accelerators": 64}}, "spec", "spot is possible from 10 nodes on (10 % of 10 is 1)"),
    pool("a floor that leaves nothing to spot", {"split": {"onDemandFloorPercent": 100}},
         "spec.split.onDemandFloorPercent", "at most 99"),
    pool("placeholders that nobody names", {"prewarm": {"method": "PlaceholderPods"}},
         "spec.prewarm", "placeholderRef goes with"),
    pool("spare nodes that nothing holds", {"prewarm": {"spareNodes": 1}}, "spec.prewarm", "needs method"),
    pool("a method that there is not", {"prewarm": {"method": "Balloons"}}, "spec.prewarm.method", "'Replicas'"),
    pool("placeholders beside a buffer", {"prewarm": {"method": "CapacityBuffer",
         "placeholderRef": {"namespace": "inference", "name": "warm"}}}, "spec.prewarm", "placeholderRef goes with"),
    pool("a ceiling of nothing", {"ceilings": {}}, "spec.ceilings", "accelerators, dollarsPerHour or both"),
    pool("a ceiling in dollars without prices", {"ceilings": {"dollarsPerHour": "3000"}},
         "spec", "needs nodeDollarsPerHour"),
    pool("a ceiling that pays for no node", {"nodePools.spot": ABSENT, "ceilings": {"dollarsPerHour": "50"},
         "nodeDollarsPerHour": {"onDemand": "55.04"}}, "spec", "does not pay for one node"),
    pool("a price for what there is not", {"nodePools.spot": ABSENT,
         "nodeDollarsPerHour": {"onDemand": "55.04", "spot": "20"}}, "spec", "go together"),
    pool("a node that costs nothing", {"nodePools.spot": ABSENT, "nodeDollarsPerHour": {"onDemand": "0.0"}},
         "spec.nodeDollarsPerHour", "more than 0 dollars"),
    pool("dollars in words", {"ceilings": {"dollarsPerHour": "3k"}}, "spec.ceilings.dollarsPerHour", "3k"),
    pool("a NodePool's name longer than a label may be", {"nodePools.spot": "a" * 64},
         "spec.nodePools.spot", "at most 63"),
    pool("a pool with a word we do not know", {"slack": 1}, "spec.slack", "not a known field"),
]  # fmt: skip
CASES = [*ACCEPTED, *REFUSED]
