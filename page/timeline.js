/* SPDX-License-Identifier: BSD-2-Clause */
/* One step in time. Invariant: view.from < view.to, in nanoseconds after the step's begin; only lanes in sight are drawn. */
"use strict";

const LABEL_WIDTH = 230;
const AXIS_HEIGHT = 24;
const SHORTEST_NS = 200;
const view = { detail: null, start: 0, full: [0, 1], from: 0, to: 1, lanes: [], height: 0, kinds: [], blamed: new Set(), scale: 1, canvas: null, box: null, width: 0, sight: 0, hatch: null };

const xOf = (time) => LABEL_WIDTH + ((time - view.from) * (view.width - LABEL_WIDTH)) / (view.to - view.from);
const timeOf = (x) => view.from + ((x - LABEL_WIDTH) * (view.to - view.from)) / (view.width - LABEL_WIDTH);
const kindName = (kind) => "kind" + (view.kinds.indexOf(kind) % 6);
const kindColour = (kind) => colour(kindName(kind));

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
/* What hangs ends at no time: its last sign is the end of what was seen under way. */
const endOf = (row) => (row.hangs && stateInHang.get(row.rank)?.in_communicator && stateInHang.get(row.rank).last_sign_ns) || (row.end_ns ?? view.full[1] + view.start);

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
    context.fillStyle = inkOn(kindName(row.kind));
    context.fillText(words, Math.max(LABEL_WIDTH, xOf(row.first_data_ns - view.start)) + 4, top + lane.height / 2 - 1);
  }
}

/* From its last sign on a rank waits in what hangs, hatched, or is waited for: a full bar, with words. */
function drawState(context, lane, top) {
  const from = Math.max(0, lane.state.last_sign_ns - view.start);
  const to = view.full[1];
  const words = lane.state.named && lane.state.in_communicator ? `${lane.state.state}: waited for` : lane.state.state;
  if (lane.state.state === "not in it") {
    return;
  }
  context.fillStyle = lane.state.named ? colour("alarm") : view.hatch;
  const width = bar(context, from, to, top + (lane.state.named ? 3 : 6), lane.height - (lane.state.named ? 8 : 12));
  if (width > context.measureText(words).width + 20) {
    const left = Math.max(LABEL_WIDTH, xOf(from)) + 8;
    if (!lane.state.named) {
      context.fillStyle = colour("ground");
      context.fillRect(left - 3, top + 3, context.measureText(words).width + 6, lane.height - 7);
    }
    context.fillStyle = lane.state.named ? inkOn("alarm") : colour("soft");
    context.fillText(words, left, top + lane.height / 2);
  }
}

function outlineBlamed(context, row, top, lane) {
  const verdicts = verdictsByStep.get(view.detail.step ?? hang?.number) || [];
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
  if (lane.state) {
    drawState(context, lane, top);
  }
}

/* A rank on its way is grey with its name, an operation under way has its colour. */
function drawPath(context, lane, top) {
  for (const part of lane.parts) {
    const own = part.part === "rank";
    const kind = view.detail.timeline.operations.find((row) => row.operation === part.operation)?.kind;
    context.fillStyle = own ? colour("compute") : kindColour(kind);
    const width = bar(context, part.from_ns - view.start, part.to_ns - view.start, top + 3, lane.height - 6);
    const words = own ? `rank ${plain(part.rank)}` : kind;
    const left = Math.max(LABEL_WIDTH, xOf(part.from_ns - view.start));
    if (width > 2) {
      context.fillStyle = colour("ground");
      context.fillRect(left, top + 3, 1, lane.height - 6);
    }
    if (width > context.measureText(words).width + 10) {
      context.fillStyle = inkOn(own ? "compute" : kindName(kind));
      context.fillText(words, left + 5, top + lane.height / 2);
    }
  }
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
    const tall = values[2 * at + 1] === 0 ? 0 : Math.max(1, Math.min(1, values[2 * at + 1] / view.scale) * height);
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

/* As much of it as fits, and that something is left out. */
function fitted(context, words, width) {
  let shown = words;
  while (shown.length > 1 && context.measureText(shown === words ? shown : shown + "…").width > width) {
    shown = shown.slice(0, -1);
  }
  return shown === words ? words : shown + "…";
}

function drawLabel(context, lane, top) {
  context.fillStyle = colour(lane.kind === "head" ? "soft" : "ink");
  context.font = (lane.ranks[0] !== undefined && view.blamed.has(lane.ranks[0]) ? "bold " : "") + "12px system-ui, Arial, sans-serif";
  context.fillText(lane.label, 6, top + lane.height / 2, lane.kind === "head" ? view.width : LABEL_WIDTH - 12);
  const left = 6 + context.measureText(lane.label).width + 8;
  if (lane.note && left < LABEL_WIDTH - 40) {
    context.fillStyle = colour("soft");
    context.font = "11px system-ui, Arial, sans-serif";
    context.fillText(fitted(context, lane.note, LABEL_WIDTH - 8 - left), left, top + lane.height / 2);
  }
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
  (view.detail.why.gaps || []).forEach((gap) => bar(context, gap.from_ns - view.start, gap.to_ns - view.start, AXIS_HEIGHT, height));
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
      } else if (lane.kind === "path") {
        drawPath(context, lane, top);
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
    return begin !== null && time >= begin - at.slack / 5 && time <= (row.hangs ? Infinity : row.end_ns ?? Infinity) + at.slack / 5;
  });
  return hits.find((row) => row.arrival_ns !== null && time >= row.arrival_ns) || hits[0];
}

function timelineTip(event) {
  const at = timelineAt(event);
  if (!at.lane || !at.inside || at.lane.kind === "head") {
    hideTip();
    return;
  }
  if (at.lane.kind === "path") {
    const part = at.lane.parts.find((one) => at.time + view.start >= one.from_ns && at.time + view.start < one.to_ns);
    if (part) { showTip(event, pathTip(view.detail, part)); } else { hideTip(); }
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
  } else if (at.lane.state && at.time + view.start >= at.lane.state.last_sign_ns) {
    showTip(event, hangTip(at.lane.state));
  } else if (idle) {
    showTip(event, `rank ${at.lane.compute}: no operation asked for, for ${duration(idle[1] - idle[0])}\n(it computes, or its host does something else)`);
  } else {
    hideTip();
  }
}

function hangTip(state) {
  return [`rank ${plain(state.rank)}: ${state.state}`, rankPlace(state.rank), `last sign ${offset(state.last_sign_ns, view.start)}, ${duration(state.silent_ns)} before the end of what was seen`,
    state.enqueued_ns === null ? (state.in_communicator ? `it has not asked for ${hang.kind}, which the others wait in` : `it is not in the communicator of the ${hang.kind} that hangs`) : `asked for ${hang.kind} at ${offset(state.enqueued_ns, view.start)}`].filter((line) => line).join("\n");
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
    } else if (held && Math.abs(held.x - event.clientX) < 4 && at.lane?.kind === "path") {
      const part = at.lane.parts.find((one) => at.time + view.start >= one.from_ns && at.time + view.start < one.to_ns);
      choose({ rank: part?.rank ?? chosen.rank });
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

/* Seconds of waiting press what was before flat. */
function showBeginning() {
  const signs = view.detail.timeline.hang_ranks.map((row) => row.last_sign_ns ?? 0);
  setView(view.full[0], Math.min(view.full[1], 1.3 * (Math.max(...signs, view.detail.timeline.hang.began_ns) - view.start)));
}

const detailHasPath = () => view.detail.why.critical_path.length > 0;

const HATCH_WORDS = "Hatched, in a rank's lane: an operation was asked for, but the rank was not ready (all along: when it was is not known), or it waits in what hangs. "
  + "Hatched, in a flow's lane: its data stalled. Hatched across all lanes: the agents did not see this time.";

function timelineLegend() {
  const swatch = (style, words) => make("span", { class: "key" }, make("i", { style }), words);
  const hatch = "background: repeating-linear-gradient(135deg, var(--wait) 0 1.5px, transparent 1.5px 4.5px)";
  const kinds = view.kinds.map((kind, index) => swatch(`background: var(--kind${index % 6})`, kind));
  const events = new Set(view.detail.flows.flatMap((flow) => flow.events.map((event) => event.metric)));
  const signs = { down: "▼", cross: "✕", square: "■", diamond: "◆", dot: "●", line: "▔" };
  const marks = [...events].map((metric) => make("span", { class: "key" }, make("b", { style: "color: var(--mark)" }, signs[EVENT_FORMS[metric]?.form || "square"]),
    EVENT_FORMS[metric]?.label || metric));
  const button = (words, action, title) => make("button", { type: "button", onclick: action, title }, words);
  return [button("+", () => zoom(0.6), "zoom in"), button("−", () => zoom(1 / 0.6), "zoom out"), button("whole step", () => setView(...view.full), "key 0"), ...(view.detail.timeline.hang ? [button("how it began", showBeginning, "from its step's begin to the last sign of any rank")] : []), ...kinds,
    swatch("background: linear-gradient(90deg, color-mix(in srgb, var(--kind0) 35%, transparent) 30%, var(--kind0) 30% 70%, color-mix(in srgb, var(--kind0) 35%, transparent) 70%)", "waits for others, sends, waits"),
    swatch(hatch, "hatched: not under way (see below)"), ...(view.detail.timeline.hang ? [swatch("background: var(--alarm)", "what hangs waits for this rank")] : []), ...(detailHasPath() ? [swatch("background: var(--compute)", "critical path: that rank on its way")] : []), swatch("background: linear-gradient(transparent 35%, var(--compute) 35% 65%, transparent 65%)", "computes: no operation asked for"), ...marks,
    make("span", { class: "hint" }, "Drag, shift+wheel, ← →: move. Ctrl+wheel, + −: zoom. Double click, 0: whole step. Click: choose the rank.")];
}

/* What a flow's rate stays below for nine tenths of the time in which something flows: a burst of a microsecond does not press all else flat. */
function usualRate(detail) {
  const spans = [];
  for (const flow of detail.flows) {
    const values = flowRate(flow)?.values || [];
    for (let at = 0; at + 3 < values.length; at += 2) {
      if (values[at + 1] > 0) {
        spans.push([values[at + 1], values[at + 2] - values[at]]);
      }
    }
  }
  let left = 0.9 * spans.reduce((sum, span) => sum + span[1], 0);
  return spans.sort((a, b) => a[0] - b[0]).find((span) => (left -= span[1]) <= 0)?.[0] || 1;
}

function showTimeline(detail) {
  const asBefore = view.detail !== null && stepOfDetail(view.detail) === stepOfDetail(detail) && (view.from !== view.full[0] || view.to !== view.full[1]) ? [view.from, view.to] : null;
  view.detail = detail;
  view.start = spanOf(detail).start_ns;
  const rows = detail.timeline.ranks;
  const begins = rows.map(beginOf).filter((time) => time !== null);
  view.full = [Math.min(0, ...[Math.min(...begins) - view.start].filter(Number.isFinite)),
    rows.reduce((last, row) => Math.max(last, (row.end_ns ?? 0) - view.start), spanOf(detail).end_ns - view.start)];
  view.kinds = [...new Set(rows.map((row) => row.kind))].sort();
  view.blamed = blamedRanks(detail.step ?? hang?.number);
  view.scale = usualRate(detail);
  view.canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": "time line of the step: lanes of ranks and flows; the tables have the numbers" });
  view.space = make("div");
  view.box = make("div", { class: "lanes" }, view.canvas, view.space);
  fill("timeline", view.box, make("p", { class: "note" }, flowsNote(detail)), make("p", { class: "note" }, HATCH_WORDS));
  fill("bar", ...timelineLegend());
  view.box.addEventListener("scroll", askDraw);
  listenTimeline(view.canvas);
  [view.from, view.to] = asBefore || view.full; /* what is told anew, since it goes on, stays as it was looked at */
  layTimeline();
}

function flowsNote(detail) {
  const carried = detail.flows.filter(flowRate);
  const windows = carried.filter((flow) => flow.windows).length;
  if (carried.length === 0) {
    return "No flow's rate is known in this step.";
  }
  const means = Math.max(...carried.map((flow) => flowRate(flow).mean_over_ns));
  return `Full height of a flow's lane: ${bitRate(view.scale)} of payload or more (for nine tenths of the busy time it is less). `
    + (windows === 0 ? "No windows were asked for in this step: rates are from messages, each spread evenly over its time."
      : `Windows were asked for of ${windows} of ${carried.length} flows, where rates are theirs; the others' are from messages.`)
    + (means > 0 ? ` To keep the page light they are means over ${duration(means)}: what is shorter is not seen here.` : "");
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
