from __future__ import annotations

import pytest

from policies.cron_expression import check_cron_expression


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("30 7 * * 1-5", id="working days at half past seven"),
        pytest.param("*/15 0-6,20 1,15 JAN-MAR MON-FRI", id="steps, lists, ranges and names"),
        pytest.param("0-59/5 * 28-31/3 2-12/2 0,7", id="steps within ranges"),
        pytest.param("05 08 09 04 *", id="leading zeros"),
        pytest.param("0  8   * * *", id="several spaces"),
        pytest.param("0 0 29 2 *", id="a leap day"),
        pytest.param("0 0 30 2 1", id="a day that never comes, or any Monday"),
        pytest.param("0 8-8 * * MON-MON", id="ranges of one"),
        pytest.param("0 8 * * MON-TUE", id="a range of names in the order of the week"),
    ],
)
def test_taken(expression: str) -> None:
    assert check_cron_expression(expression) == expression


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("", "five fields", id="nothing"),
        pytest.param("0 8 * *", "five fields", id="four fields"),
        pytest.param("0 0 8 * * *", "five fields", id="a field for seconds"),
        pytest.param("@daily", "five fields", id="a nickname"),
        pytest.param(" 0 8 * * *", "five fields", id="a leading space"),
        pytest.param("0 8 * * *\n", "five fields", id="a trailing line end"),
        pytest.param("0 8 L * *", "five fields", id="the last day, which not every cron knows"),
        pytest.param("5/10 8 * * *", "five fields", id="a step from a single number"),
        pytest.param("*/0 8 * * *", "five fields", id="a step of nothing"),
        pytest.param("0 8 * feb *", "five fields", id="a name in lower case"),
        pytest.param("0 20-8 * * *", "backwards", id="through midnight"),
        pytest.param("0 8 * * SAT-SUN", "backwards", id="a weekend that begins a week"),
        pytest.param("0 8 30 2 *", "never happens", id="the 30th of February"),
        pytest.param("0 8 31 4,6,9,11 *", "never happens", id="the 31st of short months"),
        pytest.param("0 8 31 2-4/2 *", "never happens", id="the 31st of short months, in a roundabout way"),
    ],
)
def test_refused(expression: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_cron_expression(expression)
