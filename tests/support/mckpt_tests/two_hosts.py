"""Jobs on two hosts of which the second is this machine under another name (another_host)."""

import os
import socket
import subprocess

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "another_host")
ON_TWO_HOSTS = {**os.environ, "OMPI_MCA_plm_rsh_agent": AGENT, "PRTE_MCA_plm_ssh_agent": AGENT}  # the environment of mpirun


def on_two_hosts_each(ranks):
    """Options of mpirun: the first ranks on this host, as many on the other."""
    return ["--host", f"{socket.gethostname()}:{ranks},elsewhere:{ranks}", "--map-by", "slot"]


def why_not_two_hosts(mpirun):
    """The requirements for this machine to be two hosts: leave to name itself, an address that the other
    reaches, or mpirun."""
    if not subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split():
        return "it has no address but the loopback"
    names = subprocess.run(
        [mpirun, "-n", "4", *on_two_hosts_each(2), "hostname"],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=ON_TWO_HOSTS,
    )
    if sorted(names.stdout.split()) != sorted([socket.gethostname(), "elsewhere"] * 2):
        return f"mpirun starts no ranks under another name: {(names.stderr or names.stdout).strip()[-200:]}"
    return ""
