#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench_page.py QPSCOPE CORRELATOR STORE JOURNAL: how a large job's page feels in headless Chromium, as a report and live. Prints one JSON object.

JOURNAL is the capture file that STORE was made from. A large job (README.md of tests/simulation says what the options mean):

    build/tests/simulation/simulate --shape data -n 64 -g 1 --steps 1000 --bytes 128KiB -c 1 --waits --tree --one-file \\
        --fault gpu --fault-rank 37 --fault-first 400 --fault-last 430 --fault-delay 3ms job
    build/cli/qpscope replay job/all.capture --memory 4GiB --store job.db
    tests/bench/page/bench_page.py build/cli/qpscope build/correlator/qpscope-correlator job.db job/all.capture

Load: from the navigation until a frame was drawn behind all scripts. A frame: from one animation frame to the next while the time line is zoomed
in or out or the pointer moves over the heat map in each of them, so what the browser's own painting takes is in it (headless: without a GPU).
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "page"))
import browser  # noqa: E402

FRAMES = 90
READY_S = 900

DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"

FRAME_TIMES = """(async () => {
  const times = [];
  let before = await new Promise((done) => requestAnimationFrame(done));
  for (let n = 0; n < %d; n++) {
    %s;
    const now = await new Promise((done) => requestAnimationFrame(done));
    times.push(now - before);
    before = now;
  }
  return times;
})()"""

ZOOM = "zoom(n %% 20 < 10 ? 0.8 : 1.25)".replace("%%", "%")
HOVER = """(() => { const box = heat.canvas.getBoundingClientRect(); heat.canvas.dispatchEvent(new MouseEvent('mousemove',
  { clientX: box.left + HEAT_LEFT + ((n * 37) % 1000) / 1000 * heat.width, clientY: box.top + HEAT_TOP + ((n * 13) % ranks.length) * heat.row + 1 })); drawHeat(); })()"""


def milliseconds(values):
    values = sorted(values)
    return {"median_ms": round(values[len(values) // 2], 1), "slowest_twentieth_ms": round(values[int(len(values) * 0.95)], 1)}


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def look(chromium):
    """Of a page that was opened."""
    chosen = chromium.value("""(async () => { const times = []; for (const step of steps.filter((one) => data.live || detailById.has(one.step)).slice(0, 12)) {
        const begun = performance.now(); choose({ step: step.step });
        while (!view.detail || view.detail.step !== step.step) { await new Promise((done) => setTimeout(done, 2)); }
        times.push((await %s) - begun); } return times; })()""" % DRAWN)
    return {"choose_a_step": milliseconds(chosen), "zoom_a_frame": milliseconds(chromium.value(FRAME_TIMES % (FRAMES, ZOOM))),
            "heat_map_a_frame": milliseconds(chromium.value(FRAME_TIMES % (FRAMES, HOVER))),
            "table_filter": milliseconds(chromium.value("""(async () => { const times = []; for (const words of ['rank 1', 'rank 12', '0x0000', 'sender', '']) {
                const begun = performance.now(); tables.queuePairs.filter(words); times.push((await %s) - begun); } return times; })()""" % DRAWN)),
            "memory_bytes": chromium.value("performance.memory.usedJSHeapSize")}


def report(qpscope, store, folder):
    page = os.path.join(folder, "page.html")
    before = cpu_of_children()
    subprocess.run([qpscope, "report", "--store", store, "-o", page], check=True, stdout=subprocess.DEVNULL)
    result = {"made_in_cpu_s": round(cpu_of_children() - before, 2), "file_bytes": os.path.getsize(page)}
    chromium = browser.Browser(browser.find())
    chromium.open(page)
    result["load_ms"] = round(chromium.value(DRAWN))
    result.update(ranks=chromium.value("ranks.length"), steps=chromium.value("steps.length"), queue_pairs=chromium.value("data.queue_pairs.queue_pairs.length"),
                  detailed_steps=chromium.value("data.details.length"))
    result.update(look(chromium))
    chromium.close()
    return result


def get(url):
    begun = time.monotonic()
    with urllib.request.urlopen(url, timeout=READY_S) as answer:
        size = len(answer.read())
    return {"ms": round((time.monotonic() - begun) * 1000), "bytes": size}


def live(correlator, journal, folder):
    copy = os.path.join(folder, "journal")
    shutil.copy(journal, copy)
    links = [f"--{name}=ipc://{folder}/{name}" for name in ("intake", "clock")]
    with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        process = subprocess.Popen([correlator, *links, "--store", os.path.join(folder, "live.db"), "--journal", copy, "--memory", "4GiB", "--store-size", "0",
                                    "--http", "127.0.0.1:19421"], stderr=log)
        try:
            url = "http://127.0.0.1:19421"
            until = time.monotonic() + READY_S
            steps = 0
            while steps == 0 and time.monotonic() < until:
                time.sleep(1)
                try:
                    with urllib.request.urlopen(url + "/api/v1/overview", timeout=READY_S) as answer:
                        steps = len(json.load(answer)["steps"]["steps"])
                except OSError:
                    pass
            result = {"steps": steps, "page": get(url + "/"), "overview_made_before": get(url + "/api/v1/overview"), "a_step": get(url + "/api/v1/steps/500")}
            chromium = browser.Browser(browser.find())
            chromium.ask("Page.navigate", url=url)
            chromium.wait("document.readyState === 'complete' && location.protocol === 'http:' && typeof view !== 'undefined' && view.detail !== null")
            result["load_ms"] = round(chromium.value(DRAWN))
            result["refresh_ms"] = chromium.value("(async () => { const fresh = await (await fetch('api/v1/overview')).json(); const begun = performance.now(); fresh.details = keptDetails(fresh); "
                                                  "refresh(fresh); return Math.round((await %s) - begun); })()" % DRAWN)
            result.update(look(chromium))
            chromium.close()
            return result
        finally:
            process.terminate()
            process.wait(60)


def main():
    qpscope, correlator, store, journal = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="qpscope-bench-page-")
    try:
        print(json.dumps({"report": report(qpscope, store, folder), "live": live(correlator, journal, folder)}, indent=2))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
