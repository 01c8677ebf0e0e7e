"""Nobody but its owner can run anything on the cluster that ``--cluster local`` starts."""

import http.client
import json
import subprocess
import sys

import psutil
import pytest

from neighboragg._run.executor import connect

# Another user of the machine, where the tests may become one; else somebody without the certificates.
STRANGER = """
import asyncio, os, sys
from distributed import comm
from distributed.security import Security

own = Security.temporary()

async def ask(address, security):
    arguments = security.get_connection_args("client") if security else {}
    stream = await comm.connect(address, timeout=1, **arguments)
    await stream.write({"op": "identity", "reply": True})
    print(address, "answers:", (await stream.read())["type"])

async def ask_all(places):
    ways = [(f"tcp://{place}", None) for place in places] + [(f"tls://{place}", own) for place in places]
    failed = await asyncio.gather(*(asyncio.wait_for(ask(*way), 4) for way in ways), return_exceptions=True)
    assert all(isinstance(one, (OSError, TimeoutError, type(None))) for one in failed), failed

asyncio.run(ask_all(["127.0.0.1:9"]))  # nobody is there: imports what another user may not be able to read
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
asyncio.run(ask_all(sys.argv[1:]))
"""


def listening():
    """Addresses on which this process and its children listen."""
    me = psutil.Process()
    processes = [me, *me.children(recursive=True)]
    found = [c for process in processes for c in process.net_connections("inet") if c.status == "LISTEN"]
    return {(c.laddr.ip, c.laddr.port) for c in found}


@pytest.fixture(scope="module")
def local():
    before = listening()
    with connect("local", n_workers=1, memory="1 GB") as client:
        yield client, listening() - before


def test_it_works(local):
    client, _ = local
    assert client.submit(sum, [1, 2, 3]).result(60) == 6


def test_nothing_listens_beyond_this_machine(local):
    _, addresses = local
    assert len(addresses) >= 3  # the scheduler, the worker and its nanny
    assert {ip for ip, _ in addresses} == {"127.0.0.1"}


def test_a_stranger_gets_no_answer(local):
    """Whoever a server of Dask answers can run code there; this one does not even say what it is."""
    _, addresses = local
    places = [f"{ip}:{port}" for ip, port in sorted(addresses)]
    command = [sys.executable, "-c", STRANGER, *places]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_nothing_is_told_to_a_browser(local):
    _, addresses = local
    for ip, port in addresses:
        for path in ("/", "/status", "/info/main/workers.html", "/json/identity.json", "/metrics"):
            page = http.client.HTTPConnection(ip, port, timeout=3)
            try:
                page.request("GET", path)
                assert page.getresponse().status == 404, (port, path)
            except (OSError, http.client.HTTPException):
                pass  # not a server of pages at all
            finally:
                page.close()


def test_the_certificates_are_of_this_run_alone(local):
    client, _ = local
    with connect("local", n_workers=1, memory="1 GB") as other:
        assert client.security.tls_ca_file != other.security.tls_ca_file
    assert "PRIVATE" not in json.dumps(client.scheduler_info(n_workers=-1), default=str)
