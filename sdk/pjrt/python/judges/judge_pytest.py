# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: writes each test's result to a journal as soon as it is known, and draws a sample of the tests.

COLLET_JUDGE_JOURNAL names the journal: a line of JSON for each test, and at the end of a whole run {"done": true}. Tests
that the journal has already are left out, so a run that was interrupted goes on. COLLET_JUDGE_SAMPLE is "N SEED": one test
of N is kept, which ones depends on the seed and the test's name alone.
"""
import json
import os
import pathlib
import time

import pytest

import judge_journal


class Journal:
    """The part of the plugin in the process that controls the workers: writes the journal."""

    def __init__(self, path, timeout):
        self.timeout = timeout  # seconds that a test may take; a worker ends itself when they are over
        self.started = {}  # when the tests that have not ended were begun
        self.judged = sorted(judge_journal.read(path)[0])
        self.out = judge_journal.append_to(path)
        self.wrote = False  # whether a test has ended
        self.open = {}  # what is known of tests that have not been torn down yet

    def write(self, **entry):
        self.out.write(json.dumps(entry) + "\n")
        self.out.flush()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        # Every worker has to collect the same tests, also one that replaces another, whatever the journal has by then.
        node.workerinput["judged"] = self.judged

    def pytest_runtest_logstart(self, nodeid):
        self.started[nodeid] = time.monotonic()

    def pytest_runtest_logreport(self, report):
        state, message, seconds = self.open.get(report.nodeid, ("passed", "", 0))
        if report.failed:
            state, message = "failed", first_line(report)
            took = time.monotonic() - self.started.get(report.nodeid, time.monotonic())
            if report.when == "???" and self.timeout and took >= self.timeout:
                message = f"it did not end in {self.timeout:g} seconds"
        elif report.skipped and state == "passed":
            state, message = "skipped", first_line(report)
        self.open[report.nodeid] = state, message, seconds + report.duration
        # The report of a worker's death has the phase "???", and no other follows it.
        if report.when in ("teardown", "???"):
            self.wrote = True
            self.write(test=report.nodeid, state=state, message=message, seconds=round(seconds + report.duration, 3))
            del self.open[report.nodeid]
            self.started.pop(report.nodeid, None)

    def pytest_sessionfinish(self, exitstatus):
        # 0: all passed, 1: some failed, 5: no test was left to run. After another status the run is not at its end, nor is
        # it if nothing but errors of the collection was reported.
        if exitstatus == 5 or (exitstatus in (0, 1) and (self.wrote or self.judged)):
            self.write(done=True)


def first_line(report):
    """Returns the line of a failure that names the exception, or the reason of a skip."""
    crash = getattr(report.longrepr, "reprcrash", None)
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
    lines = (crash.message if crash else reason).splitlines()
    return next((line.strip() for line in lines if line.strip()), "")[:300]


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.judge_journal = Journal(pathlib.Path(os.environ["COLLET_JUDGE_JOURNAL"]), config.getoption("timeout", None))
        config.pluginmanager.register(config.judge_journal)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    every, seed = os.environ.get("COLLET_JUDGE_SAMPLE", "1 0").split()
    judged = set(config.workerinput["judged"] if hasattr(config, "workerinput") else config.judge_journal.judged)
    items[:] = [item for item in items if judge_journal.is_drawn(item.nodeid, int(every), seed) and item.nodeid not in judged]
