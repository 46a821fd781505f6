"""The address of a channel is a secret: of it nothing but its service is ever said."""

from __future__ import annotations

import pytest

from mimikit.errors import BadInput
from mimikit.notifications.secrecy import checked_url, redacted, service_of

URL = "mailto://ann:p%40ss%20word@example.org:587/?to=bob@example.net&smtp=mail.example.org"


@pytest.mark.fault(58)
def test_no_part_of_an_address_is_left_in_a_complaint() -> None:
    said = redacted(f"no login at {URL}: p@ss word, ANN, bob@example.net, /EXAMPLE.ORG", URL)
    for part in ("ann", "p%40ss", "p@ss word", "bob", "example", "587", "mail"):
        assert part not in said.casefold()
    assert said.startswith("no login at")


def test_a_complaint_is_one_short_line() -> None:
    assert redacted("a\nb\u202e c" + "x" * 500, "ntfy://topic") == ("a b c" + "x" * 500)[:200]


@pytest.mark.parametrize(
    "given", ["", "odd-words", "http//x", "ntfy://a\nb", "ntfy://" + "x" * 3000]
)
def test_what_is_no_address_is_refused_without_being_repeated(given: str) -> None:
    with pytest.raises(BadInput, match="expected the address of a channel") as caught:
        checked_url(given)
    assert not given or given not in str(caught.value)


def test_a_service_is_the_first_word_of_its_address() -> None:
    assert checked_url(f" {URL}\n") == URL
    assert (service_of(URL), service_of("NTFY://x"), service_of("x")) == ("mailto", "ntfy", "")
