"""Asks Prometheus many questions at once, in bounded time and memory, and returns an answer or a failure for each."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

import requests
import urllib3
from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect

from autoscaler.clock import Clock
from autoscaler.prometheus.answer import (
    FailureKind,
    PrometheusFailure,
    Vector,
    bad_body,
    excerpt,
    read_answer,
    read_rejection,
)
from autoscaler.prometheus.bounded_session import (
    AnswerTooLargeError,
    BoundedSession,
    DeadlineExceededError,
    ReadAnswer,
    broken_off,
)
from autoscaler.prometheus.credentials import CredentialsUnreadableError, Fingerprint, authentication, fingerprint
from autoscaler.prometheus.range_answer import RangeQuestion, RangeVector, read_range
from autoscaler.prometheus.settings import PrometheusSettings

logger = logging.getLogger(__name__)

Answer: TypeAlias = Vector | PrometheusFailure
RangeAnswer: TypeAlias = RangeVector | PrometheusFailure

_Parameters: TypeAlias = dict[str, str]
_Timeout: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Question:
    """An instant query and a short name for messages."""

    name: str
    promql: str


@dataclass(frozen=True, slots=True)
class QueryCounts:
    """What became of all questions so far. `asked` is the sum of the others, except `partial` (part of `answered`)."""

    asked: int = 0
    answered: int = 0
    partial: int = 0
    unreachable: int = 0
    timed_out: int = 0
    rejected: int = 0
    bad_answers: int = 0
    too_large: int = 0


class QuerySource(Protocol):
    """Whoever answers instant queries."""

    def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """One answer or failure a question, in the same order; returns in bounded time and never raises."""
        ...


class RangeSource(Protocol):
    """Whoever answers range queries."""

    def ask_range(self, question: RangeQuestion) -> RangeAnswer:
        """The series or a failure; returns in bounded time and never raises."""
        ...


class PrometheusSource:
    """prometheus-api-client with what it lacks: deadlines, bounds, POST bodies, warnings and one family of failures.

    When a whole round failed for want of any answer, the next begins with one question alone and sends the others
    only if that is answered: a dead Prometheus costs one request a tick.
    """

    def __init__(self, settings: PrometheusSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._authentication = authentication(settings)
        self._lock = threading.Lock()
        self._decoding = threading.Lock()
        self._counts = QueryCounts()
        self._probe_first = False
        self._is_away = False
        self._tls_files = (settings.ca_file, settings.client_certificate_file, settings.client_key_file)
        self._tls_files_seen: Fingerprint = fingerprint(self._tls_files)
        self._session, self._connection = self._connect()
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="prometheus")

    @property
    def url(self) -> str:
        """The address that is asked."""
        return self._settings.url

    def counts(self) -> QueryCounts:
        """What became of all questions so far."""
        return self._counts

    def close(self) -> None:
        """Ends the threads once their running requests have ended, and drops the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.close()

    def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """One answer or failure a question, in the same order, within `round_seconds`; never raises."""
        deadline = self._clock.monotonic_seconds() + self._settings.round_seconds
        session, connection = self._current_connection()
        answers: list[Answer] = []
        if self._probe_first and len(questions) > 1:
            answers = self._round(questions[:1], session, connection, deadline)
            first = answers[0]
            if isinstance(first, PrometheusFailure) and first.is_of_transport:
                return [first] * len(questions)
        answers += self._round(questions[len(answers) :], session, connection, deadline)
        self._probe_first = bool(answers) and all(
            isinstance(answer, PrometheusFailure) and answer.is_of_transport for answer in answers
        )
        self._tell_if_away(answers)
        return answers

    def _tell_if_away(self, answers: Sequence[Answer]) -> None:
        """Logs when it goes and when it comes back: a pool whose count has another reason says nothing of it."""
        if not answers:
            return
        failures = [each for each in answers if isinstance(each, PrometheusFailure) and not each.is_of_the_query]
        is_away = len(failures) == len(answers)
        if is_away and not self._is_away:
            logger.warning("Prometheus does not answer", extra={"problem": failures[0].message})
        elif self._is_away and not is_away:
            logger.info("Prometheus answers again", extra={"url": self.url})
        self._is_away = is_away

    def ask_range(self, question: RangeQuestion) -> RangeAnswer:
        """The series or a failure, within `round_seconds`, asked in the calling thread; never raises."""
        deadline = self._clock.monotonic_seconds() + self._settings.round_seconds
        session, connection = self._current_connection()
        asked = self._asked(question)

        def send(parameters: _Parameters, timeout: _Timeout) -> None:
            begin, end = (
                datetime.fromtimestamp(at, UTC) for at in (question.starts_at_seconds, question.ends_at_seconds)
            )
            step = f"{question.step_seconds}s"
            connection.custom_query_range(question.promql, begin, end, step, params=parameters, timeout=timeout)

        sent = self._send(asked, session, deadline, send)
        document = sent if isinstance(sent, PrometheusFailure) else _document_of(sent, asked)
        answer = document if isinstance(document, PrometheusFailure) else read_range(document, question, asked)
        self._count([answer])
        return answer

    def _round(
        self, questions: Sequence[Question], session: BoundedSession, connection: PrometheusConnect, deadline: float
    ) -> list[Answer]:
        futures: list[Future[Answer]] = [
            self._threads.submit(self._ask_one, question, session, connection, deadline) for question in questions
        ]
        wait(futures, timeout=max(0.0, deadline - self._clock.monotonic_seconds()))
        answers: list[Answer] = []
        for question, future in zip(questions, futures, strict=True):
            if future.done():
                answers.append(future.result())
            else:
                # A running request ends by its own read timeout; it only occupies its thread until then.
                future.cancel()
                answers.append(self._late(self._asked(question)))
        self._count(answers)
        return answers

    def _late(self, asked: str) -> PrometheusFailure:
        seconds = self._settings.round_seconds
        return PrometheusFailure(FailureKind.TIMEOUT, f"{asked}: no answer within {seconds:g} s")

    def _asked(self, question: Question | RangeQuestion) -> str:
        return f"query {question.name} at {self._settings.url}"

    def _ask_one(
        self, question: Question, session: BoundedSession, connection: PrometheusConnect, deadline: float
    ) -> Answer:
        asked = self._asked(question)

        def send(parameters: _Parameters, timeout: _Timeout) -> None:
            connection.custom_query(question.promql, params=parameters, timeout=timeout)

        sent = self._send(asked, session, deadline, send)
        if isinstance(sent, PrometheusFailure):
            return sent
        # One after the other: a decoded answer takes several times the memory of its text, for a moment.
        with self._decoding:
            document = _document_of(sent, asked)
            return document if isinstance(document, PrometheusFailure) else read_answer(document, asked)

    def _send(
        self,
        asked: str,
        session: BoundedSession,
        deadline: float,
        send: Callable[[_Parameters, _Timeout], None],
    ) -> ReadAnswer | PrometheusFailure:
        """What came, whatever it is, or why nothing did."""
        remaining = deadline - self._clock.monotonic_seconds()
        if remaining <= 0:
            return self._late(asked)
        session.begin(deadline)
        read_seconds = min(self._settings.read_timeout_seconds, remaining)
        timeout = (min(self._settings.connect_timeout_seconds, remaining), read_seconds)
        # The server gives up when we do, instead of computing on for nobody.
        parameters = {"timeout": f"{max(1, round(read_seconds * 1000))}ms", **self._settings.query_parameters}
        try:
            send(parameters, timeout)
        except (PrometheusApiClientException, ValueError, KeyError, TypeError) as error:
            # Raised by the client for an answer it does not like. Without one the request could not be made; the
            # error's text may hold a header, so only its kind is told.
            answer = session.take_answer()
            if answer is None:
                return PrometheusFailure(FailureKind.UNREACHABLE, f"{asked}: not sent: {type(error).__name__}")
            return answer
        except AnswerTooLargeError as error:
            return PrometheusFailure(FailureKind.TOO_LARGE, f"{asked}: the answer has {error}; narrow the query")
        except CredentialsUnreadableError as error:
            return PrometheusFailure(FailureKind.REJECTED, f"{asked}: not sent: {error}")
        except (DeadlineExceededError, requests.Timeout) as error:
            return PrometheusFailure(FailureKind.TIMEOUT, f"{asked}: {_short(error)}")
        except urllib3.exceptions.HTTPError as error:
            kind = FailureKind.UNREACHABLE if broken_off(error) else FailureKind.TIMEOUT
            return PrometheusFailure(kind, f"{asked}: the answer broke off: {_short(error)}")
        except (requests.RequestException, OSError) as error:
            return PrometheusFailure(FailureKind.UNREACHABLE, f"{asked}: {_short(error)}")
        answer = session.take_answer()
        if answer is None:
            raise AssertionError("PrometheusConnect returned without having sent a request")
        return answer

    def _current_connection(self) -> tuple[BoundedSession, PrometheusConnect]:
        """The connection, made anew when a certificate or key file has changed: open ones would go on with the old."""
        now = fingerprint(self._tls_files)
        if now != self._tls_files_seen:
            self._session.close()
            self._session, self._connection = self._connect()
            self._tls_files_seen = now
        return self._session, self._connection

    def _connect(self) -> tuple[BoundedSession, PrometheusConnect]:
        settings = self._settings
        session = BoundedSession(self._clock, settings.maximum_answer_bytes)
        session.verify = str(settings.ca_file) if settings.ca_file is not None else not settings.insecure_skip_verify
        certificate, key = settings.client_certificate_file, settings.client_key_file
        if certificate is not None:
            session.cert = (str(certificate), str(key)) if key is not None else str(certificate)
        if settings.proxy_url is not None:
            session.proxies = {"http": settings.proxy_url, "https": settings.proxy_url}
        if settings.insecure_skip_verify:
            # Said once in the settings; once more a request is noise.
            warnings.filterwarnings("ignore", category=urllib3.exceptions.InsecureRequestWarning)
        # One more try where a connection or a proxy failed, at once; none where an answer is slow, and no Retry-After
        # (it would hold up the tick).
        retry = urllib3.Retry(
            total=1,
            read=False,
            status=1,
            status_forcelist=(502, 503, 504),
            allowed_methods=None,
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        connection = PrometheusConnect(
            url=settings.url,
            headers=dict(settings.headers),
            retry=retry,
            auth=self._authentication,
            session=session,
            method="POST",
        )
        return session, connection

    def _count(self, answers: Sequence[Answer | RangeAnswer]) -> None:
        kinds = [answer.kind for answer in answers if isinstance(answer, PrometheusFailure)]
        vectors = [answer for answer in answers if isinstance(answer, Vector | RangeVector)]
        with self._lock:
            before = self._counts
            self._counts = QueryCounts(
                asked=before.asked + len(answers),
                answered=before.answered + len(vectors),
                partial=before.partial + sum(vector.is_partial for vector in vectors),
                unreachable=before.unreachable + kinds.count(FailureKind.UNREACHABLE),
                timed_out=before.timed_out + kinds.count(FailureKind.TIMEOUT),
                rejected=before.rejected + kinds.count(FailureKind.REJECTED),
                bad_answers=before.bad_answers + kinds.count(FailureKind.BAD_ANSWER),
                too_large=before.too_large + kinds.count(FailureKind.TOO_LARGE),
            )


def _document_of(answer: ReadAnswer, asked: str) -> Any:
    """The decoded document of a 200 answer, or the failure."""
    try:
        document = answer.document()
    except ValueError:
        document = None
        if answer.status_code == 200:
            return bad_body(answer.content, asked)
    if answer.status_code != 200:
        location = answer.headers.get("Location")
        return read_rejection(answer.status_code, document, answer.content, location, asked)
    return document


def _short(error: BaseException) -> str:
    """The innermost cause: requests and urllib3 wrap it three times."""
    while error.__cause__ is not None or (error.args and isinstance(error.args[0], BaseException)):
        inner = error.__cause__ if error.__cause__ is not None else error.args[0]
        reason = getattr(inner, "reason", None)
        error = reason if isinstance(reason, BaseException) else inner
    return f"{type(error).__name__}: {excerpt(str(error))}"
