"""Fixtures for tests that run on any number of ranks: every rank runs the same tests in the same order."""

from __future__ import annotations

import faulthandler

import hypothesis
import pytest

import tasuki

# All ranks must draw the same examples, and a slow machine is no failure.
hypothesis.settings.register_profile("ranks", derandomize=True, deadline=None, max_examples=25, database=None)
hypothesis.settings.load_profile("ranks")
faulthandler.enable()


@pytest.fixture(scope="session")
def context():
    context = tasuki.Context()
    context.deadline = 30
    return context


def pytest_sessionfinish(session, exitstatus):
    """A rank whose tests failed must not wait for others at the end."""
    if exitstatus not in (0, 5) and tasuki._core._any_with_others():
        tasuki._core._fail_all("its tests failed")
