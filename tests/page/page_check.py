#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of qpscope report in a real browser: mouse, keys, and what is then to be read. Numbers follow from tests/cli/fixture.sql.

Skipped, with the reason, where there is no Chromium or the build has no page.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

import browser  # noqa: E402
from harness import FIXTURE, HERE, SCHEMA, STORE, equal, main, make_store, rows, run, test  # noqa: E402

PAGE = os.path.join(HERE, "page.html")
chromium = None  # the browser, once there is one


def skip(reason):
    print(f"1..1\nok 1 - the page in a browser # SKIP {reason}")
    sys.exit(0)


def title():
    return chromium.value("document.getElementById('step-title').textContent")


def tip():
    chromium.drawn()
    return chromium.value("document.getElementById('tip').style.display === 'block' ? document.getElementById('tip').textContent : ''")


def show(selector):
    """Brings an element into sight and says where its middle is."""
    box = chromium.value(f"(() => {{ const element = document.querySelector({selector!r}); element.scrollIntoView({{block: 'center'}}); "
                         "const box = element.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()")
    return box[0] + box[2] / 2, box[1] + box[3] / 2


def cells(table, column):
    return chromium.value(f"[...document.querySelectorAll('#{table} tbody tr')].map((row) => row.cells[{column}].textContent)")


def click_step(step):
    show("#steps .u-over")
    x, y = chromium.value(f"(() => {{ const box = stepsPlot.over.getBoundingClientRect(); return [box.left + stepsPlot.valToPos({step}, 'x'), "
                          "box.top + box.height / 2]; })()")
    chromium.click(x + (2 if step == 0 else -2 if step == 2 else 0), y)


@test
def it_opens_at_the_worst_step_without_an_error():
    chromium.open(PAGE)
    equal(title(), "Step 1")
    said = chromium.value("document.getElementById('said').textContent")
    assert "gpu late: rank 2, 51.2 ms ±25.0 us, in operation 0 of the step" in said, said
    equal(chromium.value("document.getElementById('about').textContent").split(" · ")[:3], ["fixture.db", "4 ranks", "3 steps"])
    equal(chromium.problems, [])


@test
def a_click_on_a_slow_step_shows_the_right_rank():
    click_step(0)
    equal(title(), "Step 0")
    click_step(1)
    equal(title(), "Step 1")
    verdict = rows("SELECT * FROM verdict")[0]
    show("#timeline canvas")
    place = chromium.value(f"timelinePlace({verdict['rank']}, {verdict['operation']})")
    equal(place["label"], "rank 2, comm 1")
    # Its bar is drawn there, in the colour of its kind.
    chromium.drawn()
    pixel = chromium.value("(() => { const box = view.canvas.getBoundingClientRect(); const scale = window.devicePixelRatio; "
                           f"return [...view.canvas.getContext('2d').getImageData(({place['x']} - box.left) * scale, ({place['y']} - box.top) * scale, 1, 1).data]; }})()")
    wanted = chromium.value("(() => { const number = parseInt(kindColour('AllReduce').slice(1), 16); return [number >> 16, (number >> 8) & 255, number & 255]; })()")
    equal(pixel[:3], wanted)


@test
def the_tooltip_has_the_numbers_of_the_store():
    show("#timeline canvas")
    row = rows("SELECT * FROM rank_operation WHERE operation = 5 AND rank = 2")[0]
    start = rows("SELECT start_ns FROM step WHERE id = 1")[0]["start_ns"]
    place = chromium.value("timelinePlace(2, 5)")
    chromium.mouse("mouseMoved", place["x"], place["y"])
    shown = tip().splitlines()

    def after(key):
        return f"{(row[key] - start) / 1e6:.3f} ms"

    equal(shown[0], "rank 2, communicator 1: AllReduce, operation 0 of the step")
    for line in (f"enqueued {after('enqueued_ns')}", f"host ready {after('host_ready_ns')}", f"GPU ready {after('gpu_ready_ns')}",
                 "late by 51.2 ms ±25.0 us, seen by gpu", f"data from {after('first_data_ns')} to {after('last_data_ns')}",
                 f"end {after('end_ns')}", "sent 1.00 MiB of 1.00 MiB expected", "complete"):
        assert line in shown, (line, shown)
    equal(after("gpu_ready_ns"), "63.300 ms")


@test
def a_flows_rate_is_that_of_its_windows():
    click_step(0)
    show("#timeline canvas")
    # 40960 bytes in the 8 us from 12 ms of the step on.
    chromium.value("setView(12e6 - 10e3, 12e6 + 50e3)")
    chromium.drawn()
    x, y = chromium.value("(() => { const lane = view.lanes.find((one) => one.kind === 'flow' && one.flow.lqpn === 18); view.box.scrollTop = lane.top; "
                          "const box = view.canvas.getBoundingClientRect(); return [box.left + xOf(12e6 + 4e3), "
                          "box.top + AXIS_HEIGHT + lane.top - view.box.scrollTop + lane.height / 2]; })()")
    chromium.mouse("mouseMoved", x, y)
    shown = tip()
    assert f"{40960 * 8 / 8e-6 / 1e9:.1f} Gbit/s (windows)" in shown, shown
    assert "flow from rank 1 to rank 2" in shown and "rxe1/1 QP 0x000012, at 12.004 ms" in shown, shown


@test
def a_cell_of_the_heat_map_chooses_step_and_rank():
    click_step(1)
    show("#heat canvas")
    x, y = chromium.value("(() => { const box = heat.canvas.getBoundingClientRect(); return [box.left + columnOf(0.5), "
                          "box.top + HEAT_TOP + 3.5 * heat.row]; })()")
    chromium.mouse("mouseMoved", x, y)
    chromium.click(x, y)
    equal(title(), "Step 0")
    equal(chromium.value("chosen.rank"), 3)
    click_step(1)
    chromium.value("choose({step: 1, rank: 2})")
    x, y = chromium.value("(() => { heat.canvas.scrollIntoView({block: 'center'}); const box = heat.canvas.getBoundingClientRect(); "
                          "return [box.left + columnOf(1.5), box.top + HEAT_TOP + 2.5 * heat.row]; })()")
    chromium.mouse("mouseMoved", x, y)
    equal(tip().splitlines()[0], "rank 2: late by 51.2 ms")


@test
def keys_and_mouse_zoom_and_move():
    chromium.value("setView(...view.full)")
    x, y = show("#timeline canvas")
    whole = chromium.value("view.to - view.from")
    chromium.value("view.canvas.focus({preventScroll: true})")
    chromium.key("+")
    equal(round(chromium.value("view.to - view.from") / whole, 6), 0.6)
    before = chromium.value("view.from")
    chromium.key("ArrowRight")
    equal(round((chromium.value("view.from") - before) / whole, 6), round(0.2 * 0.6, 6))
    chromium.key("0")
    equal(chromium.value("view.to - view.from"), whole)
    chromium.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
    chromium.wait(f"view.to - view.from < {whole} * 0.5")
    before = chromium.value("view.from")
    chromium.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
    chromium.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
    chromium.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
    moved = chromium.value("(view.from - " + str(before) + ") * (view.width - LABEL_WIDTH) / (view.to - view.from)")
    equal(round(moved), 100)


@test
def the_search_finds_ranks_and_queue_pairs():
    for words, condition in (("rank 2", "rank = 2 OR peer_rank = 2"), ("0x000012", "qpn = 18 OR remote_qpn = 18"), ("rxe1", "device = 'rxe1'")):
        show("#search")
        chromium.value(f"(() => {{ const input = document.getElementById('search'); input.value = {words!r}; input.dispatchEvent(new Event('input')); }})()")
        expected = rows(f"SELECT qpn FROM queue_pair WHERE {condition}")
        equal(sorted(cells("queue-pairs", 1)), sorted(f"0x{row['qpn']:06x}" for row in expected))
    chromium.value("(() => { const input = document.getElementById('search'); input.value = 'rank 2'; input.dispatchEvent(new Event('input')); })()")
    equal(chromium.value("[...new Set(view.lanes.filter((lane) => lane.kind === 'operations').map((lane) => lane.label))]"),
          ["rank 2, comm 1", "rank 2, comm 3"])
    chromium.value("(() => { const input = document.getElementById('search'); input.value = ''; input.dispatchEvent(new Event('input')); })()")


@test
def the_table_of_queue_pairs_sorts():
    for clicks in (1, 2):
        x, y = show("#queue-pairs th:nth-child(9) button")
        chromium.click(x, y)
        shown = [cell for cell in cells("queue-pairs", 8) if cell != "-"]
        equal(shown, sorted(["1.00 MiB", "2.00 MiB", "3.00 MiB", "4.00 MiB", "384 B"], reverse=clicks == 2,
                            key=lambda cell: float(cell.split()[0]) * {"B": 1, "MiB": 1 << 20}[cell.split()[1]]))


@test
def it_is_dark_or_light():
    ground = "getComputedStyle(document.body).backgroundColor"
    before = chromium.value(ground)
    chromium.click(*show("#theme"))
    chromium.drawn()
    assert chromium.value(ground) != before
    equal({before, chromium.value(ground)}, {"rgb(255, 255, 255)", "rgb(20, 23, 27)"})


@test
def a_store_without_steps_is_shown():
    path = os.path.join(HERE, "empty.html")
    run("report", "-o", path, store=make_store("empty.db", SCHEMA))
    chromium.open(path)
    assert "no steps yet" in chromium.value("document.getElementById('said').textContent")


@test
def nothing_went_wrong_in_all_that():
    equal(chromium.problems, [])


def start():
    global chromium
    program = browser.find()
    if program is None:
        skip("chromium is not installed: the page was not tried in a browser")
    if "built without the page" in run("report", "-o", "-", code=None).stderr:
        skip("this build has no page: npm is missing, or could not fetch uPlot")
    make_store("fixture.db", SCHEMA, FIXTURE)
    run("report", "-o", PAGE)
    os.remove(STORE)
    chromium = browser.Browser(program)
    try:
        main()
    finally:
        chromium.close()


start()
