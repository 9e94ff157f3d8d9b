/* SPDX-License-Identifier: BSD-2-Clause */
/* One step in time. Invariant: view.from < view.to, in nanoseconds after the step's begin; only lanes in sight are drawn. */
"use strict";

const LABEL_WIDTH = 190;
const AXIS_HEIGHT = 24;
const SHORTEST_NS = 200;
const view = { detail: null, start: 0, full: [0, 1], from: 0, to: 1, lanes: [], height: 0, kinds: [], blamed: new Set(), scale: 1, canvas: null, box: null, width: 0, sight: 0, hatch: null };

const xOf = (time) => LABEL_WIDTH + ((time - view.from) * (view.width - LABEL_WIDTH)) / (view.to - view.from);
const timeOf = (x) => view.from + ((x - LABEL_WIDTH) * (view.to - view.from)) / (view.width - LABEL_WIDTH);
const kindColour = (kind) => colour("kind" + (view.kinds.indexOf(kind) % 6));

function hatchOf(context, stroke) {
  const tile = make("canvas", { width: 6, height: 6 });
  const pen = tile.getContext("2d");
  pen.strokeStyle = stroke;
  pen.lineWidth = 1.3;
  pen.beginPath();
  pen.moveTo(-1, 7);
  pen.lineTo(7, -1);
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

function bar(context, from, to, top, height) {
  const left = Math.max(LABEL_WIDTH, xOf(from));
  const right = Math.min(view.width, Math.max(xOf(to), xOf(from) + 1));
  if (right > left) {
    context.fillRect(left, top, right - left, height);
  }
  return right - left;
}

const beginOf = (row) => row.enqueued_ns ?? row.first_data_ns;
const endOf = (row) => row.end_ns ?? view.full[1] + view.start;

/* Enqueue to arrival is hatched; all along where the arrival is not known. */
function drawWait(context, row, lane, top) {
  context.fillStyle = view.hatch;
  bar(context, beginOf(row) - view.start, (row.arrival_ns ?? endOf(row)) - view.start, top + 6, lane.height - 12);
}

/* Arrival to end is pale, with its data in full. */
function drawOperation(context, row, lane, top) {
  if (row.arrival_ns === null) {
    return;
  }
  const end = endOf(row);
  context.fillStyle = kindColour(row.kind);
  context.globalAlpha = 0.35;
  bar(context, row.arrival_ns - view.start, end - view.start, top + 3, lane.height - 8);
  context.globalAlpha = 1;
  if (row.first_data_ns === null) {
    return;
  }
  const width = bar(context, row.first_data_ns - view.start, (row.last_data_ns ?? end) - view.start, top + 3, lane.height - 8);
  const words = `${row.place}: ${row.kind}`;
  if (width > context.measureText(words).width + 8) {
    context.fillStyle = colour("ground");
    context.fillText(words, Math.max(LABEL_WIDTH, xOf(row.first_data_ns - view.start)) + 4, top + lane.height / 2 - 1);
  }
}

function outlineBlamed(context, row, top, lane) {
  const verdicts = verdictsByStep.get(view.detail.step) || [];
  if (verdicts.some((verdict) => verdict.operation === row.operation && verdict.rank === row.rank)) {
    const left = Math.max(LABEL_WIDTH, xOf(beginOf(row) - view.start));
    const right = Math.min(view.width, xOf(endOf(row) - view.start));
    context.strokeStyle = colour("alarm");
    context.lineWidth = 2;
    if (right > left) {
      context.strokeRect(left, top + 1, right - left, lane.height - 3);
    }
  }
}

function drawOperations(context, lane, top) {
  if (lane.compute !== null) {
    context.fillStyle = colour("compute");
    lane.spans = lane.spans || computeSpans(view.detail, lane.compute);
    lane.spans.forEach(([from, to]) => bar(context, from - view.start, to - view.start, top + lane.height / 2 - 2, 3));
  }
  const known = lane.rows.filter((row) => beginOf(row) !== null);
  known.forEach((row) => drawWait(context, row, lane, top));
  known.forEach((row) => drawOperation(context, row, lane, top));
  known.forEach((row) => outlineBlamed(context, row, top, lane));
}

function drawEvent(context, form, x, y) {
  const size = 4;
  context.beginPath();
  if (form === "down") {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y - size);
    context.lineTo(x, y + size);
  } else if (form === "diamond") {
    context.moveTo(x, y - size - 1);
    context.lineTo(x + size + 1, y);
    context.lineTo(x, y + size + 1);
    context.lineTo(x - size - 1, y);
  } else if (form === "square") {
    context.rect(x - size + 1, y - size + 1, 2 * size - 2, 2 * size - 2);
  } else if (form === "dot") {
    context.arc(x, y, size - 1, 0, 7);
  } else if (form === "cross") {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size);
    context.lineTo(x - size, y + size);
    context.stroke();
    return;
  }
  context.fill();
}

/* Each value is at least a pixel wide, and the highest at a pixel is what is seen: no short burst is lost between two. */
function drawRate(context, values, base, height) {
  const first = Math.max(0, rateIndex(values, view.from));
  context.beginPath();
  for (let at = first; at < values.length / 2 && values[2 * at] <= view.to; at++) {
    const tall = Math.min(1, values[2 * at + 1] / view.scale) * height;
    if (tall > 0) {
      const left = Math.floor(Math.max(LABEL_WIDTH, xOf(values[2 * at])));
      const right = Math.min(view.width, at + 1 < values.length / 2 ? xOf(values[2 * at + 2]) : left + 1);
      context.rect(left, base - tall, Math.max(1, right - left), tall);
    }
  }
  context.fill();
}

function drawFlow(context, lane, top) {
  const base = top + lane.height - 3;
  const rate = flowRate(lane.flow);
  context.fillStyle = colour("line");
  context.fillRect(LABEL_WIDTH, base, view.width - LABEL_WIDTH, 1);
  for (const pin of lane.flow.pins) {
    context.fillStyle = view.hatch;
    bar(context, pin.from_ns - view.start, pin.to_ns - view.start, top + 2, lane.height - 5);
  }
  if (rate) {
    context.fillStyle = colour("flow");
    drawRate(context, rate.values, base, lane.height - 8);
  }
  context.fillStyle = colour("mark");
  context.strokeStyle = colour("mark");
  context.lineWidth = 2;
  for (const event of lane.flow.events) {
    const form = EVENT_FORMS[event.metric]?.form || "square";
    if (form === "line") {
      bar(context, event.from_ns - view.start, event.to_ns - view.start, top + 2, 2);
    } else {
      const x = xOf((event.from_ns + event.to_ns) / 2 - view.start);
      if (x >= LABEL_WIDTH && x <= view.width) {
        drawEvent(context, form, x, top + (EVENT_FORMS[event.metric]?.answer ? 7 : 18));
      }
    }
  }
}

function drawLabel(context, lane, top) {
  context.fillStyle = colour(lane.kind === "head" ? "soft" : "ink");
  context.font = (lane.ranks[0] !== undefined && view.blamed.has(lane.ranks[0]) ? "bold " : "") + "12px system-ui, Arial, sans-serif";
  context.fillText(lane.label, 6, top + lane.height / 2, lane.kind === "head" ? view.width : LABEL_WIDTH - 12);
  context.font = "12px system-ui, Arial, sans-serif";
  if (lane.kind !== "head" && lane.ranks[0] === chosen.rank && chosen.rank !== null) {
    context.fillStyle = colour("accent");
    context.fillRect(0, top, 3, lane.height);
  }
}

function niceStride(span, count) {
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((stride) => stride >= rough);
}

function drawAxis(context, height) {
  context.fillStyle = colour("panel");
  context.fillRect(0, 0, view.width, AXIS_HEIGHT);
  context.fillStyle = colour("soft");
  context.fillText("after the step's begin", 6, AXIS_HEIGHT / 2, LABEL_WIDTH - 12);
  const stride = niceStride(view.to - view.from, Math.max(2, (view.width - LABEL_WIDTH) / 110));
  const digits = Math.max(0, Math.ceil(-Math.log10(stride / 1e6)));
  context.textAlign = "center";
  for (let time = Math.ceil(view.from / stride) * stride; time <= view.to; time += stride) {
    const x = xOf(time);
    context.fillStyle = colour("line");
    context.fillRect(x, AXIS_HEIGHT - 5, 1, height);
    context.fillStyle = colour("soft");
    context.fillText(`${(time / 1e6).toFixed(digits)} ms`, x, AXIS_HEIGHT / 2 - 1);
  }
  context.textAlign = "left";
}

function drawUnseen(context, height) {
  context.fillStyle = view.hatch;
  context.globalAlpha = 0.5;
  view.detail.why.gaps.forEach((gap) => bar(context, gap.from_ns - view.start, gap.to_ns - view.start, AXIS_HEIGHT, height));
  context.globalAlpha = 1;
}

function drawTimeline() {
  if (!view.detail) {
    return;
  }
  const height = Math.min(AXIS_HEIGHT + view.height, 618);
  const context = sized(view.canvas, view.width, height);
  context.font = "12px system-ui, Arial, sans-serif";
  context.textBaseline = "middle";
  view.hatch = hatchOf(context, colour("wait"));
  drawAxis(context, height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, view.width, height);
  context.clip();
  drawUnseen(context, height);
  for (const lane of view.lanes) {
    const top = AXIS_HEIGHT + lane.top - view.box.scrollTop;
    if (top + lane.height >= AXIS_HEIGHT && top <= height) {
      drawLabel(context, lane, top);
      if (lane.kind === "operations") {
        drawOperations(context, lane, top);
      } else if (lane.kind === "flow") {
        drawFlow(context, lane, top);
      }
    }
  }
  context.restore();
}

let drawAsked = false;
function askDraw() {
  if (!drawAsked) {
    drawAsked = true;
    requestAnimationFrame(() => { drawAsked = false; drawTimeline(); });
  }
}

function setView(from, to) {
  const span = Math.min(view.full[1] - view.full[0], Math.max(SHORTEST_NS, to - from));
  view.from = Math.min(view.full[1] - span, Math.max(view.full[0], from));
  view.to = view.from + span;
  askDraw();
}

function zoom(factor, centre) {
  const at = centre === undefined ? (view.from + view.to) / 2 : centre;
  setView(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

const pan = (part) => setView(view.from + part * (view.to - view.from), view.to + part * (view.to - view.from));

/* The lane and time at a point, and what is there. */
function timelineAt(event) {
  const box = view.canvas.getBoundingClientRect();
  const y = event.clientY - box.top - AXIS_HEIGHT + view.box.scrollTop;
  const x = event.clientX - box.left;
  const lane = event.clientY - box.top < AXIS_HEIGHT ? null : view.lanes.find((one) => y >= one.top && y < one.top + one.height);
  return { lane, time: timeOf(x), slack: ((view.to - view.from) * 5) / (view.width - LABEL_WIDTH), inside: x >= LABEL_WIDTH };
}

function operationAt(at) {
  const time = at.time + view.start;
  const hits = at.lane.rows.filter((row) => {
    const begin = beginOf(row);
    return begin !== null && time >= begin - at.slack / 5 && time <= (row.end_ns ?? Infinity) + at.slack / 5;
  });
  return hits.find((row) => row.arrival_ns !== null && time >= row.arrival_ns) || hits[0];
}

function timelineTip(event) {
  const at = timelineAt(event);
  if (!at.lane || !at.inside || at.lane.kind === "head") {
    hideTip();
    return;
  }
  if (at.lane.kind === "flow") {
    const near = at.lane.flow.events.filter((one) => one.to_ns - view.start >= at.time - at.slack && one.from_ns - view.start <= at.time + at.slack);
    showTip(event, flowTip(at.lane.flow, at.time, near));
    return;
  }
  const row = operationAt(at);
  const idle = at.lane.compute !== null && (at.lane.spans || []).find(([from, to]) => at.time + view.start >= from && at.time + view.start < to);
  if (row) {
    showTip(event, operationTip(row, view.start));
  } else if (idle) {
    showTip(event, `rank ${at.lane.compute}: no operation asked for, for ${duration(idle[1] - idle[0])}\n(it computes, or its host does something else)`);
  } else {
    hideTip();
  }
}

const timelineKeys = {
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
  ArrowUp: () => { view.box.scrollTop -= 60; }, ArrowDown: () => { view.box.scrollTop += 60; }, 0: () => setView(...view.full), Home: () => setView(...view.full),
};

function listenTimeline(canvas) {
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = { x: event.clientX, from: view.from, to: view.to }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (held) {
      const moved = ((held.x - event.clientX) * (held.to - held.from)) / (view.width - LABEL_WIDTH);
      setView(held.from + moved, held.to + moved);
    }
    timelineTip(event);
  });
  canvas.addEventListener("pointerup", (event) => {
    const at = timelineAt(event);
    if (held && Math.abs(held.x - event.clientX) < 4 && at.lane && at.lane.ranks[0] !== undefined) {
      choose({ rank: at.lane.ranks[0] });
    }
    held = null;
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("dblclick", () => setView(...view.full));
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.altKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY / 300), timelineAt(event).time);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / 800);
    }
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const action = timelineKeys[event.key];
    if (action && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      action();
    }
  });
}

function timelineLegend() {
  const swatch = (style, words) => make("span", { class: "key" }, make("i", { style }), words);
  const hatch = "background: repeating-linear-gradient(135deg, var(--wait) 0 1.5px, transparent 1.5px 4.5px)";
  const kinds = view.kinds.map((kind, index) => swatch(`background: var(--kind${index % 6})`, kind));
  const events = new Set(view.detail.flows.flatMap((flow) => flow.events.map((event) => event.metric)));
  const signs = { down: "▼", cross: "✕", square: "■", diamond: "◆", dot: "●", line: "▔" };
  const marks = [...events].map((metric) => make("span", { class: "key" }, make("b", { style: "color: var(--mark)" }, signs[EVENT_FORMS[metric]?.form || "square"]),
    EVENT_FORMS[metric]?.label || metric));
  const button = (words, action, title) => make("button", { type: "button", onclick: action, title }, words);
  return [button("+", () => zoom(0.6), "zoom in"), button("−", () => zoom(1 / 0.6), "zoom out"), button("whole step", () => setView(...view.full), "key 0"), ...kinds,
    swatch("background: linear-gradient(90deg, color-mix(in srgb, var(--kind0) 35%, transparent) 30%, var(--kind0) 30% 70%, color-mix(in srgb, var(--kind0) 35%, transparent) 70%)", "waits for others, sends, waits"),
    swatch(hatch, "asked for, not there yet; in flows: stalled; over all: not seen"), swatch("background: linear-gradient(transparent 35%, var(--compute) 35% 65%, transparent 65%)", "computes: no operation asked for"), ...marks,
    make("span", { class: "hint" }, "Drag, shift+wheel, ← →: move. Ctrl+wheel, + −: zoom. Double click, 0: whole step. Click: choose the rank.")];
}

function showTimeline(detail) {
  view.detail = detail;
  view.start = detail.timeline.step.start_ns;
  const rows = detail.timeline.ranks;
  const begins = rows.map(beginOf).filter((time) => time !== null);
  view.full = [Math.min(0, ...[Math.min(...begins) - view.start].filter(Number.isFinite)),
    rows.reduce((last, row) => Math.max(last, (row.end_ns ?? 0) - view.start), detail.timeline.step.end_ns - view.start)];
  view.kinds = [...new Set(rows.map((row) => row.kind))].sort();
  view.blamed = blamedRanks(detail.step);
  const rates = detail.flows.flatMap((flow) => (flowRate(flow)?.values || []).filter((value, index) => index % 2 === 1 && value > 0)).sort((a, b) => a - b);
  view.scale = rates[Math.floor(rates.length * 0.95)] || 1;
  view.canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": "time line of the step: lanes of ranks and flows; the tables have the numbers" });
  view.space = make("div");
  view.box = make("div", { class: "lanes" }, view.canvas, view.space);
  fill("timeline", view.box, make("p", { class: "note" }, `Full height of a flow's lane: ${bitRate(view.scale)} of payload or more (nineteen of twenty values are less). ${flowsNote(detail)}`));
  fill("bar", ...timelineLegend());
  view.box.addEventListener("scroll", askDraw);
  listenTimeline(view.canvas);
  [view.from, view.to] = view.full;
  layTimeline();
}

function flowsNote(detail) {
  const carried = detail.flows.filter(flowRate);
  const windows = carried.filter((flow) => flow.windows).length;
  if (carried.length === 0) {
    return "No flow's rate is known in this step.";
  }
  return windows === 0 ? "No windows were asked for in this step: rates are from messages, each spread evenly over its time."
    : `Windows were asked for of ${windows} of ${carried.length} flows, where rates are theirs; the others' are from messages.`;
}

function layTimeline() {
  if (view.detail) {
    view.width = Math.max(LABEL_WIDTH + 100, view.box.clientWidth);
    Object.assign(view, layLanes(view.detail, view.blamed));
    view.space.style.height = Math.max(0, view.height + AXIS_HEIGHT - 618) + "px";
    drawTimeline();
  }
}

/* Where an operation of a rank is on the screen: what the tests point at. */
function timelinePlace(rank, operation) {
  for (const lane of view.lanes) {
    const row = lane.kind === "operations" && lane.rows.find((one) => one.rank === rank && one.operation === operation);
    if (row) {
      const box = view.canvas.getBoundingClientRect();
      const from = row.arrival_ns ?? row.enqueued_ns;
      return { x: box.left + xOf((from + (row.end_ns ?? from)) / 2 - view.start), y: box.top + AXIS_HEIGHT + lane.top - view.box.scrollTop + lane.height / 2, label: lane.label };
    }
  }
  return null;
}
