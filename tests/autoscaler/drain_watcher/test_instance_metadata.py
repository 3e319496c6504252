"""What the metadata service says, and what it means."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autoscaler.drain_watcher.instance_metadata import InstanceMetadata, MetadataUnavailable, NoNotice, Notice
from tests.fakes.instance_metadata import ACTION, FakeInstanceMetadata

NOTICE = '{"action": "terminate", "time": "2017-09-18T08:22:00Z"}'


@pytest.fixture
def service() -> Iterator[FakeInstanceMetadata]:
    with FakeInstanceMetadata() as started:
        yield started


def test_nothing_there_is_no_notice(service: FakeInstanceMetadata) -> None:
    assert InstanceMetadata(service.url).notice() == NoNotice()


@pytest.mark.parametrize(
    ("page", "notice"),
    [
        pytest.param(NOTICE, Notice("terminate", "2017-09-18T08:22:00Z"), id="the instance is to end"),
        pytest.param(NOTICE.replace("terminate", "stop"), Notice("stop", "2017-09-18T08:22:00Z"), id="it is to stop"),
        pytest.param("{", Notice("not readable", "not known"), id="broken"),
        pytest.param("[]", Notice("not readable", "not known"), id="of another shape"),
        pytest.param('{"action": "terminate"}', Notice("not readable", "not known"), id="without a time"),
    ],
)
def test_what_is_there_is_a_notice(service: FakeInstanceMetadata, page: str, notice: Notice) -> None:
    service.pages[ACTION] = page

    assert InstanceMetadata(service.url).notice() == notice


def test_one_token_serves_until_it_has_ended(service: FakeInstanceMetadata) -> None:
    metadata = InstanceMetadata(service.url)
    metadata.notice()
    metadata.notice()
    assert service.tokens == 1

    service.expire_token()
    service.pages[ACTION] = NOTICE
    assert metadata.notice() == Notice("terminate", "2017-09-18T08:22:00Z")


def test_a_recommendation_to_rebalance_is_no_notice(service: FakeInstanceMetadata) -> None:
    service.pages["/latest/meta-data/events/recommendations/rebalance"] = '{"noticeTime": "2020-10-26T08:22:00Z"}'

    assert InstanceMetadata(service.url).notice() == NoNotice()


def test_without_a_token_nobody_knows(service: FakeInstanceMetadata) -> None:
    service.refuses_tokens = True

    answer = InstanceMetadata(service.url).notice()

    assert isinstance(answer, MetadataUnavailable)
    assert "403" in answer.message


def test_a_service_that_is_not_there_is_not_the_same_as_no_notice() -> None:
    with FakeInstanceMetadata() as gone:
        url = gone.url

    answer = InstanceMetadata(url).notice()

    assert isinstance(answer, MetadataUnavailable)
    assert "hop limit" in answer.message
