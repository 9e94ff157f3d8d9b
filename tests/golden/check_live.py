#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_live.py QPSCOPE-NIC CAPTURE-ROWS ASK-WINDOWS QPSCOPE-CORRELATOR TELL-PAIRS: qpscope-nic on a DPDK port, without RDMA: a veth pair in a network namespace, frames of a real
job replayed into one end, qpscope-nic and tcpdump at the other. Needs root."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import check_capture
import independent
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMES = os.path.join(HERE, "frames", "rccl_two_ranks.pcap")
IDLE_SECONDS, IDLE_SHARE_MAX = 4, 0.05
BY_HOST = 3


def make_link():
    quiet = "/proc/sys/net/ipv6/conf/default/disable_ipv6"  # no frames of the kernel's own
    if os.path.exists(quiet):
        with open(quiet, "w") as setting:
            setting.write("1")
    for command in ("ip link add near type veth peer name far", "ip link set near up mtu 4200", "ip link set far up mtu 4200",
                    "ip link set lo up"):
        subprocess.run(command.split(), check=True)


def replay(*arguments, frames=FRAMES, interface="near"):
    """How many frames went out."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "replay.py"), interface, frames, *arguments], check=True,
                          capture_output=True, text=True)
    return int(done.stdout)


def multiply(path, copies):
    """The same frames `copies` times over, each copy with queue pairs and UDP source ports of its own."""
    with open(FRAMES, "rb") as file:
        packets = list(independent.read_pcap(file.read()))
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for at_ns, _, data, original in packets:
            for copy in range(copies):
                changed = bytearray(data)
                changed[35] ^= copy  # Ethernet 14, IPv4 20: UDP source port, low byte
                changed[47] ^= copy + 1  # UDP 8, BTH 5: destination QPN, high byte
                file.write(struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9, len(changed), original) + changed)


class Daemon:
    """qpscope-nic on the far end, recording."""

    def __init__(self, program, port, record, *options):
        self.record, self.log = record, open(record + ".log", "w+")
        self.process = subprocess.Popen([program, "--port", port, "--record", record, *options], stderr=self.log)
        for _ in range(300):
            if "ready" in self.read_log() or self.process.poll() is not None:
                break
            time.sleep(0.1)

    def read_log(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(timeout=30)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(is_so):
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.1)


def count_packets(path):
    with open(path, "rb") as file:
        return sum(1 for _ in independent.read_pcap(file.read()))


def rows_of(program, path):
    done = subprocess.run([program, path], capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def counter(rows, name):
    return max((row["total"] for row in rows if row["row"] == "counter" and row["name"] == name), default=0)


def check_equal(nic, rows_program, ask_windows, folder):
    """Each total, message and window equal to what independent.py makes of a tcpdump of the same port."""
    pcap, record, control = os.path.join(folder, "far.pcap"), os.path.join(folder, "equal.capture"), f"ipc://{folder}/control"
    daemon = Daemon(nic, "net_pcap0,iface=far@10.0.0.1", record, "--link", f"ipc://{folder}/nobody", "--control", control)
    dump = subprocess.Popen(["tcpdump", "-i", "far", "-s", "128", "-B", "16384", "-U", "-w", pcap, "-Z", "root",
                             "--time-stamp-precision=nano"], stderr=subprocess.PIPE, text=True)
    dump.stderr.readline()
    time.sleep(0.5)
    sent = replay()
    wait_until(lambda: count_packets(pcap) >= sent)
    dump.terminate()
    dump.wait()
    subprocess.run([ask_windows, control], check=True)
    wait_until(lambda: any(row["row"] == "trigger_end" for row in rows_of(rows_program, record)))
    code = daemon.stop()
    offsets = check_capture.collections.Counter()
    rows = check_capture.read_rows(rows_program, record)
    findings = list(check_capture.compare_port(1, pcap, rows, offsets))
    messages = sum(offsets.values())
    if code != 0:
        findings.append(f"exit code {code}: {daemon.read_log()}")
    if len(offsets) != 1 or messages < 100:
        findings.append(f"{messages} messages, {len(offsets)} clock relations")
    tap.check("flows, frames, bytes and messages equal to those of a tcpdump", findings[:8])
    findings = ["no answer to the request for windows"]
    if rows[4] is not None:
        findings = list(check_capture.compare_windows(1, pcap, rows, next(iter(offsets))))
    tap.check("each window, asked for, equal to that of a tcpdump", findings[:8])


def check_without_stamps(nic, rows_program, folder, driver, interface):
    """A driver without stamps: the same totals, those aside that rest on pauses."""
    names = [name for name in check_capture.TOTALS if name not in check_capture.OF_TIME]
    record = os.path.join(folder, driver + ".capture")
    daemon = Daemon(nic, f"{driver}0,iface={interface}@10.0.0.1", record)
    subprocess.run(["ip", "link", "set", interface, "up", "mtu", "4200"], check=True)
    replay(interface="near" if interface == "far" else interface)
    time.sleep(0.5)
    daemon.stop()
    flows, totals, _, losses, _ = check_capture.read_rows(rows_program, record)
    wanted = {tuple(independent.text_key(key).values()): total for key, total in independent.analyse(FRAMES)[0].items()}
    findings = [f"lost: {loss}" for loss in losses]
    if {check_capture.key_of(flow) for flow in flows.values()} != set(wanted):
        findings.append(f"{len(flows)} flows instead of {len(wanted)}")
    for number, flow in flows.items():
        key = check_capture.key_of(flow)
        findings += check_capture.compare_totals(key, totals.get(number, {}), wanted.get(key, {}), names)
    tap.check(f"{driver}: the same totals", findings[:8])


def check_queues(nic, rows_program, ask_windows, folder):
    """Two readers of 6 times the connections: each flow's frames in one of both streams, whole, and both answer a request for windows."""
    frames, record, control = os.path.join(folder, "many.pcap"), os.path.join(folder, "queues.capture"), f"ipc://{folder}/queues"
    multiply(frames, 6)
    daemon = Daemon(nic, "net_af_packet0,iface=far", record, "--queues", "2", "--link", f"ipc://{folder}/nobody", "--control", control)
    sent = replay(frames=frames)
    subprocess.run([ask_windows, control], check=True)
    parts = [f"{record}.{queue}" for queue in range(2)]
    wait_until(lambda: all(any(row["row"] == "trigger_end" for row in rows_of(rows_program, part)) for part in parts))
    code = daemon.stop()
    wanted = {tuple(independent.text_key(key).values()): total for key, total in independent.analyse(frames)[0].items()}
    findings, seen, shares = [] if code == 0 else [f"exit code {code}: {daemon.read_log()}"], {}, []
    for part in parts:
        flows, totals, _, losses, windows = check_capture.read_rows(rows_program, part)
        shares.append(sum(totals.get(number, {}).get("data_frames", 0) for number in flows))
        findings += [f"lost: {loss}" for loss in losses] + ([] if windows is not None else ["no answer to the request for windows"])
        for number, flow in flows.items():
            if check_capture.key_of(flow) in seen:
                findings.append(f"{check_capture.key_of(flow)} is in both streams")
            seen[check_capture.key_of(flow)] = totals.get(number, {})
    findings += [f"{key}: {name} is {seen.get(key, {}).get(name)}, independent.py says {total[name]}" for key, total in wanted.items()
                 for name in ("data_frames", "wire_bytes", "payload_bytes", "messages", "acks", "cnps")
                 if seen.get(key, {}).get(name) != total[name]]
    if min(shares) == 0:
        findings.append(f"all of {sent} frames in one queue")
    tap.check(f"two queues, two readers: each flow whole in one stream (data frames {shares[0]} and {shares[1]})", findings[:8])


def known_pairs():
    """(address, queue pair, remote address, remote queue pair) of each connection in the frames whose other direction independent.py finds."""
    seen, pairs = set(), []
    for key, other in independent.analyse_all(FRAMES)[0].pairs.items():
        if key in seen or key == other:
            continue
        seen |= {key, other}
        there, back = independent.text_key(key), independent.text_key(other)
        pairs.append((there["source"], back["destination_qpn"], there["destination"], there["destination_qpn"]))
    return pairs


def check_told(nic, rows_program, correlator, tell_pairs, folder):
    """A host side tells a correlator of queue pairs, the correlator tells qpscope-nic: it pairs their flows by that, all of them, and
    one that is told wrongly with nobody."""
    control, record, intake = f"ipc://{folder}/told", os.path.join(folder, "told.capture"), f"ipc://{folder}/intake"
    pairs = known_pairs()
    words = [str(word) for pair in pairs for word in pair]
    analysis = subprocess.Popen([correlator, "--intake", intake, "--clock", f"ipc://{folder}/clock", "--store", f"{folder}/told.db",
                                 "--control", control], stderr=subprocess.DEVNULL)
    host = subprocess.Popen([tell_pairs, intake, *words, "10.9.9.9", "77", "10.9.9.8", "78"])
    daemon = Daemon(nic, "net_pcap0,iface=far@10.0.0.1", record, "--link", intake, "--control", control)
    wait_until(lambda: counter(rows_of(rows_program, record), "connections_told_total") == len(pairs) + 1)
    replay()
    time.sleep(0.5)
    code = daemon.stop()
    for process in (host, analysis):
        process.terminate()
        process.wait(timeout=30)
    flows, totals, _, _, _ = check_capture.read_rows(rows_program, record)
    findings = [] if code == 0 else [f"exit code {code}: {daemon.read_log()}"]
    by_key = {check_capture.key_of(flow): number for number, flow in flows.items()}
    for address, qpn, remote_address, remote_qpn in pairs:
        there, back = by_key.get((address, remote_address, remote_qpn, "")), by_key.get((remote_address, address, qpn, ""))
        if there is None or back is None:
            findings.append(f"{address} {qpn} -> {remote_address} {remote_qpn}: a direction was not seen")
        elif (totals[there]["pair"], totals[there]["source_qpn"], totals[there]["paired_by"]) != (back, qpn, BY_HOST):
            findings.append(f"{address} {qpn} -> {remote_address} {remote_qpn}: {totals[there]}")
    if len(pairs) < 2:
        findings.append(f"only {len(pairs)} pairs in {FRAMES}")
    tap.check("what a host side tells of queue pairs comes to qpscope-nic over the correlator, and pairs their flows", findings[:8])


def check_promiscuous(nic, folder):
    """Only when asked for, and only while the program runs."""
    for driver in ("net_pcap", "net_af_packet"):
        findings = []
        for options, wanted in (((), 0), (("--promiscuous",), 1)):
            daemon = Daemon(nic, f"{driver}0,iface=far", os.path.join(folder, "promiscuous.capture"), *options)
            during = promiscuity()
            daemon.stop()
            if (during, promiscuity()) != (wanted, 0):
                findings.append(f"{options}: {during} while it runs, {promiscuity()} afterwards")
        tap.check(f"{driver}: promiscuous only when asked", findings)


def promiscuity():
    words = subprocess.run(["ip", "-details", "link", "show", "far"], check=True, capture_output=True, text=True).stdout.split()
    return int(words[words.index("promiscuity") + 1])


def check_dry_run(nic):
    """The rules of a port that can be asked: none by itself, and those for a quarter of the flows."""
    def ask(*options):
        done = subprocess.run([nic, "--port", "net_pcap0,iface=far", "--dry-run", *options], capture_output=True, text=True)
        return done.returncode, done.stdout
    taken = [f"flow create 0 group 0 priority 0 ingress pattern eth / {ip} / udp dst is 4791 src spec 0 src mask 0x0003 / end actions "
             "rss / end" for ip in ("ipv4", "ipv6")]
    findings = [] if ask() == (0, "port far: steering off, no rules: all that comes to the port is read\n") else [ask()]
    findings += [] if ask("--flows-part", "4") == (0, "\n".join(["port far: steering take", *taken, ""])) else [ask("--flows-part", "4")]
    tap.check("--dry-run prints the rules", findings)


def check_loss(nic, rows_program, folder, driver, repeat):
    """Stopped while more comes than the kernel's ring holds: what was sent is what was seen and what is reported lost."""
    record = os.path.join(folder, driver + ".capture")
    daemon = Daemon(nic, f"{driver}0,iface=far", record)
    daemon.process.send_signal(signal.SIGSTOP)
    sent = replay("--repeat", str(repeat), "--speed", "1000000")
    daemon.process.send_signal(signal.SIGCONT)
    time.sleep(1)
    daemon.stop()
    rows = rows_of(rows_program, record)
    seen = counter(rows, "frames_roce_total") + counter(rows, "frames_not_roce_total")
    lost = sum(row["lost"] for row in rows if row["row"] == "loss")
    findings = [] if lost > 0 and counter(rows, "frames_port_dropped_total") == lost else [f"{lost} reported as lost"]
    if not sent <= seen + lost <= sent + 8:  # the interface itself may send a few frames of its own (neighbour discovery)
        findings.append(f"{sent} sent, {seen} seen, {lost} lost")
    tap.check(f"{driver}: frames that the kernel dropped are reported", findings)


def check_killed(nic, rows_program, folder):
    """kill -9 in the middle: what was recorded can be read, and the next one starts as if nothing had been."""
    findings = []
    for attempt in range(3):
        record = os.path.join(folder, f"killed{attempt}.capture")
        daemon = Daemon(nic, "net_pcap0,iface=far", record)
        replay("--speed", "2")
        time.sleep(0.1 * attempt)
        if attempt == 2:
            wait_until(lambda: any(row["row"] == "message" for row in rows_of(rows_program, record)))
        daemon.stop(signal.SIGKILL)
        rows = rows_of(rows_program, record)
        if attempt == 2 and not any(row["row"] == "message" for row in rows):
            findings.append("nothing recorded before the kill can be read")
        if "ready" not in daemon.read_log():
            findings.append(f"did not start again: {daemon.read_log()}")
    tap.check("kill -9, and again", findings)


def check_idle(nic, folder):
    daemon = Daemon(nic, "net_pcap0,iface=far", os.path.join(folder, "idle.capture"))
    time.sleep(0.5)
    before = daemon.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    share = (daemon.cpu_seconds() - before) / IDLE_SECONDS
    daemon.stop()
    tap.check(f"asleep when idle ({share * 100:.1f} % of a processor)", [] if share < IDLE_SHARE_MAX else [f"{share:.3f}"])


def check_refusals(nic, folder):
    for port, text, *options in (
            ("net_pcap0,iface=nosuch", "nosuch"), ("nosuch0", "nosuch0"), ("net_pcap0,iface=far@1.2.3", "1.2.3"),
            ("net_pcap0,iface=far", "--queues 1", "--queues", "2"), ("net_pcap0,iface=far", "--steering off", "--steering", "take"),
            ("net_pcap0,iface=far", "e-switch", "--steering", "mirror")):
        done = subprocess.run([nic, "--port", port, "--record", os.path.join(folder, "x"), *options], capture_output=True, text=True)
        good = done.returncode == 1 and any(line.startswith("qpscope-nic: error:") for line in done.stderr.splitlines())
        tap.check(" ".join(["--port", port, *options]), [] if good and text in done.stderr else [f"{done.returncode}: {done.stderr}"])


def main():
    nic, rows_program, ask_windows, correlator, tell_pairs = map(os.path.abspath, sys.argv[1:6])
    if "QPSCOPE_TEST_NAMESPACE" not in os.environ:
        if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
            tap.skip("live", "needs root and network namespaces")
            return tap.finish()
        os.environ["QPSCOPE_TEST_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    make_link()
    folder = tempfile.mkdtemp(prefix="qpscope-live-")
    try:
        check_equal(nic, rows_program, ask_windows, folder)
        check_without_stamps(nic, rows_program, folder, "net_af_packet", "far")
        if subprocess.run("ip tuntap add dev made mode tap".split(), capture_output=True).returncode == 0:
            subprocess.run("ip tuntap del dev made mode tap".split(), check=True)
            check_without_stamps(nic, rows_program, folder, "net_tap", "made")
        else:
            tap.skip("net_tap", "needs the right to make tap devices")
        check_loss(nic, rows_program, folder, "net_pcap", 60)
        check_loss(nic, rows_program, folder, "net_af_packet", 8)
        check_queues(nic, rows_program, ask_windows, folder)
        check_told(nic, rows_program, correlator, tell_pairs, folder)
        check_promiscuous(nic, folder)
        check_dry_run(nic)
        check_killed(nic, rows_program, folder)
        check_idle(nic, folder)
        check_refusals(nic, folder)
    finally:
        shutil.rmtree(folder)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
