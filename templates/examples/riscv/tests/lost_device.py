#!/usr/bin/env python3
"""lost_device.py COLLET BACKEND

Kills the device process in the middle of a run: the run fails and says why. Then kills the host instead: the device process
goes as well."""
import os
import signal
import subprocess
import sys
import time

LIMIT = 30  # time limit in seconds of each wait


def wait_for(what, condition):
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {LIMIT} s")
        time.sleep(0.02)
    return found


def device_of(host):
    for task in os.listdir(f"/proc/{host}/task"):
        with open(f"/proc/{host}/task/{task}/children", encoding="ascii") as file:
            for child in file.read().split():
                return int(child)
    return None


def cpu_ticks(process):
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11])


def start(collet, backend):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "endless.hlo")
    host = subprocess.Popen([collet, "run", program, "--backend", backend, "--no-fallback", "--inputs", "random:1"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    device = wait_for("the device process", lambda: device_of(host.pid))
    # half a second of CPU time: the loop runs, not only the start of the process
    wait_for("the loop on the device", lambda: cpu_ticks(device) > 50)
    return host, device


def main():
    collet, backend = sys.argv[1:]
    for number in (signal.SIGKILL, signal.SIGSEGV):
        host, device = start(collet, backend)
        os.kill(device, number)
        message = host.communicate(timeout=LIMIT)[1]
        if host.returncode != 4 or "UNAVAILABLE" not in message or "the device process is gone" not in message:
            sys.exit(f"{number.name}: exit code {host.returncode}: {message}")
        if os.path.exists(f"/proc/{device}"):
            sys.exit("the device process was not reaped")
    host, device = start(collet, backend)
    host.kill()
    host.communicate(timeout=LIMIT)
    wait_for("the end of the device process", lambda: not os.path.exists(f"/proc/{device}"))


if __name__ == "__main__":
    main()
