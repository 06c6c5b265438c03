"""User names by number."""

from __future__ import annotations

from exporter.attribution.users import UserNames


def test_a_name_is_asked_for_once_and_kept() -> None:
    asked: list[int] = []

    def lookup(uid: int) -> str:
        asked.append(uid)
        if len(asked) > 1:
            raise KeyError(uid)  # the directory service went away
        return "ada"

    user = UserNames(lookup)
    assert [user(5), user(5), user(5)] == ["ada"] * 3
    assert asked == [5]


def test_a_missing_user_is_a_number_until_there_is_a_name() -> None:
    names: dict[int, str] = {}
    user = UserNames(names.__getitem__)
    assert user(5) == "5"
    names[5] = "ada"
    assert user(5) == "ada"


def test_numbers_that_no_account_can_have() -> None:
    assert UserNames()(2**70) == str(2**70)


def test_it_does_not_grow() -> None:
    asked: list[int] = []

    def lookup(uid: int) -> str:
        asked.append(uid)
        return f"user{uid}"

    user = UserNames(lookup, most=2)
    assert [user(uid) for uid in (1, 2, 3)] == ["user1", "user2", "user3"]
    assert user(3) == "user3"
    assert asked == [1, 2, 3]
    assert user(1) == "user1"  # forgotten, and asked for again
    assert asked == [1, 2, 3, 1]
