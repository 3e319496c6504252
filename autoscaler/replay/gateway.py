"""Which replica gets a request that arrives at a simulated pool, and which requests have to wait for one?"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from autoscaler.replay.outcomes import RequestOutcomes
from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.replica_set import SimulatedPod
from autoscaler.replay.routers import Router
from autoscaler.replay.serving_replica import Request, ServingReplica

# How old the gateway's view of finished requests may be: the answers pass through it. With a view as old as a beat of
# the pool the next requests would all go to the few replicas that had the least then, the more of them the larger the
# fleet.
VIEW_SECONDS = 0.05


class Gateway:
    """Hands requests to ready replicas in order of arrival. Those that come while there is none wait in `queue`."""

    def __init__(
        self, requests: Iterator[Request], router: Router, profile: ReplicaProfile, outcomes: RequestOutcomes
    ) -> None:
        self.queue: deque[Request] = deque()
        self._requests = requests
        self._next_request = next(requests, None)
        self._next_view = -math.inf
        self._router = router
        self._overhead_seconds = profile.request_overhead_seconds
        self._longest_tokens = profile.longest_request_tokens
        self._outcomes = outcomes

    def route_until(self, ready: Sequence[SimulatedPod], until_seconds: float) -> None:
        """Routes the requests that reach the gateway up to `until_seconds`; the ready pods stay the same meanwhile."""
        request, overhead, longest = self._next_request, self._overhead_seconds, self._longest_tokens
        if request is None or request.arrived_at + overhead > until_seconds:
            return
        requests, outcomes, choose = self._requests, self._outcomes, self._router.choose
        replicas = [pod.serving for pod in ready]
        loads = [replica.requests_in_flight for replica in replicas]
        while request is not None and (at_seconds := request.arrived_at + overhead) <= until_seconds:
            outcomes.arrived += 1
            if request.input_tokens + request.output_tokens > longest:
                outcomes.rejected += 1
            elif not ready:
                self.queue.append(request)
            else:
                if at_seconds >= self._next_view:
                    self._next_view = at_seconds + VIEW_SECONDS
                    self._look(replicas, loads, at_seconds)
                place = choose(ready, loads)
                replica = replicas[place]
                if replica.quiet_until_seconds < at_seconds:
                    finished = replica.advance(at_seconds, leaves_last_run=True)
                    if finished:
                        outcomes.add_finished(finished)
                        loads[place] -= len(finished)
                replica.add(request, at_seconds)
                loads[place] += 1
            request = next(requests, None)
        self._next_request = request

    def empty_queue(self, ready: Sequence[SimulatedPod], now_seconds: float) -> None:
        """Hands everything that waits to the ready pods, of which there is at least one."""
        loads = [pod.requests_in_flight for pod in ready]
        while self.queue:
            place = self._router.choose(ready, loads)
            replica = ready[place].serving
            self._outcomes.add_finished(replica.advance(now_seconds, leaves_last_run=True))
            replica.add(self.queue.popleft(), now_seconds)
            loads[place] = replica.requests_in_flight

    def _look(self, replicas: Sequence[ServingReplica], loads: list[int], at_seconds: float) -> None:
        """Sees which requests have finished."""
        all_finished: list[Request] = []
        for place, replica in enumerate(replicas):
            if replica.quiet_until_seconds < at_seconds:
                finished = replica.advance(at_seconds, leaves_last_run=True)
                if finished:
                    loads[place] -= len(finished)
                    all_finished += finished
        self._outcomes.add_finished(all_finished)
