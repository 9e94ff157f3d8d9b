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
    assert "gpu late: rank 2 (node-a, pid 1002), 51.2 ms ±25.0 us, in operation 0 of the step" in said, said
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
    row = rows("SELECT late_ns, cost_ns FROM rank_step WHERE step = 1 AND rank = 2")[0]
    equal((row["late_ns"] // 100_000, row["cost_ns"] // 100_000), (512, 511))
    equal(tip().splitlines()[0], "rank 2: late by 51.2 ms, cost the step 51.1 ms")


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
        x, y = show("#queue-pairs th:nth-child(11) button")
        chromium.click(x, y)
        shown = [cell for cell in cells("queue-pairs", 10) if cell != "-"]
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
def the_first_thing_said_is_who_how_much_and_why():
    verdict = rows("SELECT class, rank, size_ns FROM verdict")[0]
    card = chromium.value("document.querySelector('.card').innerText")
    for words in (f"Rank {verdict['rank']}: {verdict['class']}", f"{verdict['size_ns'] / 1e6:.1f} ms", "In 1 of 3 steps: step 1; still so in the last step of training.", "its GPU had no data yet"):
        assert words in card, (words, card)
    equal(chromium.value("[...document.querySelectorAll('.cost')].map((line) => [line.children[0].textContent, line.children[2].textContent.split(',')[0]])"),
          [["rank 2", f"{rows('SELECT sum(cost_ns) AS cost FROM rank_step')[0]['cost'] / 1e6:.1f} ms"]])


@test
def the_critical_path_is_a_lane_and_a_table():
    click_step(1)
    parts = rows("SELECT part, rank, operation, to_ns - from_ns AS length_ns, from_ns - start_ns AS after_ns FROM critical_path JOIN step ON step.id = step WHERE step = 1 ORDER BY place")
    show("#timeline canvas")
    chromium.value("(() => { setView(...view.full); view.box.scrollTop = 0; })()")
    chromium.drawn()
    for part, words in ((parts[0], "rank 2 (node-a, pid 1002), on its way to AllReduce (operation 0)"), (parts[1], "AllReduce (operation 0) under way, last at rank 3")):
        x, y = chromium.value("(() => { const lane = view.lanes.find((one) => one.kind === 'path'); const box = view.canvas.getBoundingClientRect(); "
                              f"return [box.left + xOf({part['after_ns'] + part['length_ns'] / 2}), box.top + AXIS_HEIGHT + lane.top + lane.height / 2]; }})()")
        chromium.mouse("mouseMoved", x, y)
        shown = tip().splitlines()
        equal(shown[0], f"the step waited for {words}")
        assert shown[1].startswith(f"for {part['length_ns'] / 1e6:.1f} ms, "), shown
    equal(chromium.value("[...document.querySelectorAll('#path tbody tr')].length"), len(parts))


@test
def the_heat_map_shows_cost_too():
    x, y = show("#heat-choice input[value=cost]")
    chromium.click(x, y)
    most = rows("SELECT max(cost_ns) AS cost FROM rank_step")[0]["cost"]
    equal(chromium.value("[heat.shows, heat.worst]"), ["cost", most])
    chromium.click(*show("#heat-choice input[value=late]"))
    equal(chromium.value("heat.shows"), "late")


@test
def a_step_that_is_no_training_is_no_fault():
    path = os.path.join(HERE, "kinds.html")
    run("report", "-o", path, store=make_store("kinds.db", SCHEMA, FIXTURE, after="UPDATE step SET kind = 'checkpoint' WHERE id = 2"))
    chromium.open(path)
    assert "no training, so no fault: 1 checkpoint" in chromium.value("document.getElementById('steps-key').textContent")
    click_step(2)
    equal(title(), "Step 2 (checkpoint: no training, so no fault)")


@test
def a_store_without_steps_is_shown():
    path = os.path.join(HERE, "empty.html")
    run("report", "-o", path, store=make_store("empty.db", SCHEMA))
    chromium.open(path)
    assert "no steps yet" in chromium.value("document.getElementById('said').textContent")


def words_of(selector):
    return chromium.value(f"document.querySelector({selector!r}).innerText")


def open_changed(name, change):
    path = os.path.join(HERE, name + ".html")
    run("report", "-o", path, store=make_store(name + ".db", SCHEMA, FIXTURE, after=change))
    chromium.open(path)


@test
def the_worst_step_is_one_and_the_words_follow_it():
    # Two verdicts alike: the worst is the step whose rank was latest, for the card, the pane and the page's beginning alike.
    open_changed("worst", "INSERT INTO verdict SELECT max(id) + 1, 2, class, rank, candidates, peer_rank, device, operation, size_ns, bound_ns, confidence, evidence, more "
                 "FROM verdict; UPDATE step SET late_ns = (SELECT max(late_ns) + 1 FROM step), slowest_rank = 2, late_bound_ns = 1 WHERE id = 2; UPDATE step SET kind = 'training'; ")
    equal(title(), "Step 2")
    assert "show the worst, step 2" in words_of(".card") and "worst: 2" in words_of("#step-choice"), words_of(".card")
    for words in ("In 2 of 3 steps: 1 to 2; still so in the last step.", "about 51.2 ms", "in each of 2 steps (one estimate over all of them)"):
        assert words in words_of(".card"), (words, words_of(".card"))
    open_changed("over", "INSERT INTO verdict SELECT max(id) + 1, 0, class, rank, candidates, peer_rank, device, operation, size_ns, bound_ns, confidence, evidence, more FROM verdict; "
                 "UPDATE step SET kind = 'training';")
    assert "In 2 of 3 steps: 0 to 1; not since (the last is step 2)." in words_of(".card"), words_of(".card")
    chromium.open(os.path.join(HERE, "worst.html"))
    click_step(0)
    equal(words_of("#why-title"), "In words: step 0")
    assert "step 0 took" in words_of("#why"), words_of("#why")
    chromium.click(*show(".card button"))
    equal((title(), words_of("#why-title")), ("Step 2", "In words: step 2"))
    top = chromium.value("document.getElementById('step').getBoundingClientRect().top")
    assert 0 <= top < chromium.value("window.innerHeight") / 2, top


@test
def what_is_not_known_stands_in_the_head_and_is_not_zero():
    open_changed("unknown", "UPDATE rank_step SET late_ns = NULL, cost_ns = 0; UPDATE flow SET communicator = NULL; DELETE FROM message; DELETE FROM traffic_window; DELETE FROM gap; DELETE FROM counter;"
                 "INSERT INTO counter SELECT min(id), 0, 'clock_missed_answers_total', 183 FROM emitter;")
    flows = rows("SELECT count(*) AS flows FROM flow WHERE communicator IS NULL AND data_frames > 0", store=os.path.join(HERE, "unknown.db"))[0]["flows"]
    head = words_of("#about")
    for words in ("nothing lost of what was seen; the agents' own losses: 183 clock questions unanswered", f"{flows} flows without an owner", "no rank's lateness or cost"):
        assert words in head, (words, head)
    assert "no retransmissions" in words_of("#network"), words_of("#network")
    assert "Not known" in words_of("#costs"), words_of("#costs")
    assert chromium.value("document.querySelector('#heat canvas') === null") and "No map: no rank's lateness is known" in words_of("#heat"), words_of("#heat")
    chromium.click(*show("#heat-choice input[value=cost]"))
    assert chromium.value("document.querySelector('#heat canvas') === null") and "No map: no rank's cost is known" in words_of("#heat"), words_of("#heat")
    for words in ("8 bit/s", "1 ns or more", "half way"):
        assert words not in words_of("body"), words


@test
def a_long_warm_up_does_not_press_the_steps_flat():
    open_changed("warm", "UPDATE step SET kind = 'warm-up', duration_ns = 3 * (SELECT max(duration_ns) FROM step) WHERE id = 0")
    most = max(row["duration_ns"] for row in rows("SELECT duration_ns FROM step WHERE id > 0"))
    assert chromium.value("stepsPlot.scales.y.max") * 1e6 < 1.5 * most
    assert "longer than the axis" in words_of("#steps-key"), words_of("#steps-key")


# As tests/cli/command_check.py has it: behind the last step ranks 0 to 2 wait in an AllReduce that rank 3 never gave.
MISSING = """INSERT INTO operation VALUES (13, 1, 'AllReduce', 6, NULL, NULL, 1048576, 'unknown', 3, 1000361200000, NULL, NULL, 'incomplete');
    INSERT INTO rank_operation (operation, member, rank, enqueued_ns, host_ready_ns, gpu_ready_known, arrival_ns, arrival_of, active_ns, observed_bytes,
        retransmitted_frames, marked_frames, status)
    SELECT 13, id, rank, 1000361200000 + rank * 100000, 1000361200000 + rank * 100000 + 1000000, 0, 1000361200000 + rank * 100000 + 1000000, 'host', 0, 0, 0, 0,
        'incomplete' FROM member WHERE communicator = 1 AND rank < 3;
    INSERT INTO verdict VALUES (9, NULL, 'hang', 3, NULL, NULL, NULL, 13, 3000000000, 0, 0.7, 'who is missing', NULL);"""


@test
def what_hangs_is_a_bar_at_the_end_with_a_time_line_of_its_own():
    open_changed("missing", MISSING)
    equal((title(), chromium.value("[chosen.step, chosen.rank]")), ("Behind the last step: has not ended", [3, 3]))
    for words in ("Hang: rank 3", "for 3.00 s, not ended", "Since 2023-11-14 22:30:00.361200 UTC.", "Rank 3 is on node-a, GPU 0"):
        assert words in words_of(".card"), (words, words_of(".card"))
    assert "hangs: it has not ended" in words_of("#steps-key"), words_of("#steps-key")
    # The bar: red where the chart is at the number behind the last step.
    click_step(1)
    equal(title(), "Step 1")
    red = chromium.value("(() => { const x = Math.round(stepsPlot.valToPos(3, 'x', true)); const y = stepsPlot.bbox.top + stepsPlot.bbox.height / 2 | 0; const wanted = parseInt(colour('alarm').slice(1), 16); "
                         "const row = stepsPlot.ctx.getImageData(x - 8, y, 16, 1).data; let found = 0; for (let at = 0; at < row.length; at += 4) { "
                         "found += Math.abs(row[at] - (wanted >> 16)) < 40 && Math.abs(row[at + 1] - ((wanted >> 8) & 255)) < 40; } return found; })()")
    assert red >= 2, red
    x, y = chromium.value("(() => { const box = stepsPlot.over.getBoundingClientRect(); return [box.left + stepsPlot.valToPos(3, 'x') - 2, box.top + box.height / 2]; })()")
    chromium.mouse("mouseMoved", x, y)
    shown = tip()
    last = max(time for row in rows("SELECT enqueued_ns, host_ready_ns, gpu_ready_ns, last_data_ns, end_ns FROM rank_operation WHERE rank = 3", store=os.path.join(HERE, "missing.db")) for time in row.values() if time)
    for words in ("has not ended. AllReduce on communicator 1 hangs, for 3.00 s", "since 2023-11-14 22:30:00.361200 UTC",
                  f"rank 3 (node-a, pid 1003): missing, last sign {(1003361200000 - last) / 1e9:.2f} s before the end", "3 ranks wait in it"):
        assert words in shown, (words, shown)
    chromium.click(x, y)
    equal(title(), "Behind the last step: has not ended")
    lanes = chromium.value("view.lanes.filter((lane) => lane.kind === 'operations').map((lane) => [lane.label, lane.note, lane.state.state])")
    equal(lanes, [["rank 3, comm 1", "node-a, pid 1003", "missing"]] + [[f"rank {rank}, comm 1", f"node-a, pid 100{rank}", "waits"] for rank in range(3)])
    show("#timeline canvas")
    for rank, words in ((3, "rank 3: missing"), (1, "it has not ended: the rank waits; last sign 11.100 ms")):
        x, y = chromium.value("(() => { const lane = view.lanes.find((one) => one.kind === 'operations' && one.ranks[0] === " + str(rank) + "); const box = view.canvas.getBoundingClientRect(); "
                              "return [box.left + xOf(2e9), box.top + AXIS_HEIGHT + lane.top - view.box.scrollTop + lane.height / 2]; })()")
        chromium.mouse("mouseMoved", x, y)
        assert words in tip(), (words, tip())
    equal(list(zip(cells("ranks", 0), cells("ranks", 2))), [("0", "waits"), ("1", "waits"), ("2", "waits"), ("3", "missing")])
    # The heat map's column of it has who is waited for in the colour of an alarm.
    waits, missing = chromium.value("(() => { const at = heat.image.width - 2; return [0, 3].map((row) => [...heat.image.getContext('2d').getImageData(at, row, 1, 1).data].slice(0, 3)); })()")
    equal(missing, chromium.value("(() => { const number = parseInt(colour('alarm').slice(1), 16); return [number >> 16, (number >> 8) & 255, number & 255]; })()"))
    equal(len(set(waits)), 1)  # grey


@test
def a_healthy_step_is_one_click_away():
    steps = ", ".join(f"({number}, {1000351200000 + (number - 3) * 100_000_000}, {1000351200000 + (number - 2) * 100_000_000}, {ns}, 1, 1, 0, 0, NULL, NULL, NULL, NULL, 'training')"
                      for number, ns in ((3, 100_000_003), (4, 100_000_001), (5, 100_000_002)))
    open_changed("healthy", f"INSERT INTO step VALUES {steps};")
    x, y = chromium.value("(() => { const button = [...document.querySelectorAll('#step-choice button')].find((one) => one.textContent === 'healthy: 5'); button.scrollIntoView({block: 'center'}); "
                          "const box = button.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; })()")
    chromium.click(x, y)
    equal((title(), chromium.value("view.detail.step")), ("Step 5", 5))
    equal(words_of("#step-time"), "began 2023-11-14 22:30:00.551200 UTC")
    open_changed("unhealthy", "")
    assert "no healthy step to compare with" in words_of("#step-choice")


@test
def thousands_of_steps_take_no_time():
    # What is asked of each step must not look at all steps again: that took minutes, and takes a few ms.
    steps = ", ".join(f"({number}, {1000351200000 + (number - 3) * 100_000_000}, {1000351200000 + (number - 2) * 100_000_000}, {100_000_000 + number}, 1, 1, 0, 0, NULL, NULL, NULL, NULL, 'training')"
                      for number in range(3, 3000))
    open_changed("many", f"INSERT INTO step VALUES {steps};")
    took = chromium.value("(() => { const begun = performance.now(); stepsKey(); costBars(); return performance.now() - begun; })()")
    assert took < 5000, took


@test
def ranks_stand_beside_where_they_run():
    chromium.open(PAGE)
    equal(chromium.value("view.lanes.find((lane) => lane.label === 'rank 2, comm 1').note"), "node-a, pid 1002")
    equal((cells("verdicts", 3), cells("ranks", 1)), (["node-a, pid 1002"], [f"node-a, pid 100{rank}" for rank in range(4)]))
    equal(words_of("#step-time"), "began 2023-11-14 22:30:00.100000 UTC")


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
