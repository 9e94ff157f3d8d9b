/* SPDX-License-Identifier: BSD-2-Clause */
/* The lanes of a step's time line: of each rank one for each communicator, and of each named flow one. */
"use strict";

const LANE_HEIGHT = 20;
const FLOW_HEIGHT = 30;
const HEAD_HEIGHT = 24; /* the title of a group of lanes */

/* Events of flows: each has a form of its own; what the receiver answered stands above what the sender did. */
const EVENT_FORMS = {
  retransmitted_frames: { label: "sent again", form: "down" },
  timeouts: { label: "time-out", form: "cross" },
  timeout_ns: { label: "waited for an acknowledgement", form: "line" },
  naks: { label: "NAK", form: "square", answer: true },
  rnr_naks: { label: "receiver not ready", form: "square", answer: true },
  cnps: { label: "CNP", form: "diamond", answer: true },
  marked_frames: { label: "ECN mark", form: "dot" },
};

function operationTip(row, from) {
  const ready = row.gpu_ready_ns === null ? NOT_KNOWN : (row.gpu_ready_known ? "" : "≤") + offset(row.gpu_ready_ns, from);
  const idle = row.first_data_ns === null ? null : row.last_data_ns - row.first_data_ns - row.active_ns;
  const step = stepById.get(chosen.step);
  const state = row.hangs && stateInHang.get(row.rank)?.in_communicator ? stateInHang.get(row.rank) : null;
  return [
    `rank ${plain(row.rank)}, communicator ${row.communicator}: ${row.kind}, operation ${row.place} of the step`,
    ...(rankPlace(row.rank) ? [`on ${rankPlace(row.rank)}`] : []),
    `enqueued ${offset(row.enqueued_ns, from)}`,
    `host ready ${offset(row.host_ready_ns, from)}`,
    `GPU ready ${ready}`,
    `late by ${withBound(row.late_ns, step.late_bound_ns)}${row.arrival_of ? `, seen by ${row.arrival_of}` : ""}`,
    `data from ${offset(row.first_data_ns, from)} to ${offset(row.last_data_ns, from)}`,
    ...(state ? [`it has not ended: the rank ${state.named ? state.state : "waits"}; last sign ${offset(state.last_sign_ns, from)}`] : [`end ${offset(row.end_ns, from)}`]),
    `active ${duration(row.active_ns)}, gaps ${duration(idle === null ? null : Math.max(0, idle))}`,
    `sent ${bytes(row.observed_bytes)} of ${bytes(row.expected_bytes)} expected`,
    row.status,
  ].join("\n");
}

function flowName(flow) {
  return `${plain(flow.rank)} → ${plain(flow.peer_rank)}  ${hex(flow.lqpn)}`;
}

/* Which of a flow's two rates is shown: windows where they were asked for, else messages. */
function flowRate(flow) {
  return flow.windows || flow.messages;
}

function flowSource(flow) {
  const rate = flowRate(flow);
  const what = flow.windows ? "windows" : "messages, each spread over its time";
  return rate && rate.mean_over_ns ? `${what}, mean over ${duration(rate.mean_over_ns)}` : what;
}

/* The index of the last value at or before `time`, -1 before the first. */
function rateIndex(values, time) {
  let low = 0;
  let high = values.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[2 * middle] <= time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

function flowTip(flow, time, near) {
  const lines = [`flow from rank ${plain(flow.rank)} to rank ${plain(flow.peer_rank)}, communicator ${plain(flow.communicator)}`,
    ...[flow.rank, flow.peer_rank].filter((rank) => rankName(rank)).map((rank) => `rank ${rank} on ${rankName(rank)}`),
    `${flow.device} QP ${hex(flow.lqpn)}, at ${offset(time, 0)}`];
  const rate = flowRate(flow);
  if (rate) {
    const at = rateIndex(rate.values, time);
    lines.push(`${bitRate(at < 0 ? 0 : rate.values[2 * at + 1])} (${flowSource(flow)})`);
  } else {
    lines.push("nothing carried in this step");
  }
  for (const event of near.slice(0, 6)) {
    const amount = event.metric.endsWith("_ns") ? duration(event.amount) : event.amount;
    lines.push(`${EVENT_FORMS[event.metric]?.label || event.metric}: ${amount}, within ${duration(event.to_ns - event.from_ns)}`);
  }
  return lines.join("\n");
}

/* Those of a group that the search leaves; of blamed ranks first, then flows to which something happened. */
function pickLanes(lanes, blamed) {
  const rank = searchRank();
  const word = chosen.search.trim().toLowerCase();
  const kept = word === "" ? lanes : lanes.filter((lane) => lane.always || (rank !== null && lane.ranks.includes(rank)) || lane.words.includes(word));
  const first = (lane) => (lane.ranks[0] !== null && blamed.has(lane.ranks[0]) ? 0 : lane.flow?.events.length > 0 ? 1 : 2);
  const shown = kept.length > 0 ? kept : lanes;
  return shown.map((lane, index) => [lane, index]).sort((a, b) => first(a[0]) - first(b[0]) || a[1] - b[1]).map((pair) => pair[0]);
}

function operationLanes(detail) {
  const lanes = new Map();
  const seen = new Set();
  const laneOf = (rank, communicator) => {
    const key = `${rank}/${communicator}`;
    if (!lanes.has(key)) {
      lanes.set(key, { kind: "operations", label: `rank ${plain(rank)}${communicator === null ? "" : `, comm ${communicator}`}`, note: rankName(rank), ranks: [rank], words: `${key} ${rankName(rank) || ""}`.toLowerCase(), rows: [],
        compute: seen.has(rank) ? null : rank, state: null, height: LANE_HEIGHT });
      seen.add(rank);
    }
    return lanes.get(key);
  };
  detail.timeline.ranks.forEach((row) => laneOf(row.rank, row.communicator).rows.push(row));
  /* Who never came to what hangs has a lane, too; who is not in its communicator says it where it was last. */
  for (const row of detail.timeline.hang_ranks || []) {
    const own = [...lanes.values()].filter((lane) => lane.ranks[0] === row.rank);
    const there = row.in_communicator ? laneOf(row.rank, detail.timeline.hang.communicator) : own[own.length - 1] || laneOf(row.rank, null);
    there.state = row;
  }
  return [...lanes.values()];
}

/* When the time line begins and ends: a step's, or that of what hangs. */
const spanOf = (detail) => (detail.timeline.hang ? { start_ns: detail.timeline.hang.from_ns, end_ns: detail.timeline.hang.to_ns } : detail.timeline.step);

function flowLanes(detail) {
  return detail.flows.filter((flow) => flowRate(flow) || flow.events.length || flow.pins.length).map((flow) => ({
    kind: "flow", flow, label: flowName(flow), note: flow.device, ranks: [flow.rank, flow.peer_rank], words: `${flow.device} ${hex(flow.lqpn)} ${flow.lqpn}`.toLowerCase(),
    height: FLOW_HEIGHT,
  }));
}

/* When the rank had no operation under way: [from, to) pairs. */
function computeSpans(detail, rank) {
  const own = detail.rank_steps.find((row) => row.rank === rank);
  if (!own) {
    return [];
  }
  const busy = detail.timeline.ranks.filter((row) => row.rank === rank && (row.enqueued_ns ?? row.first_data_ns) !== null && (row.hangs || row.end_ns !== null))
    .map((row) => [row.enqueued_ns ?? row.first_data_ns, row.hangs ? Infinity : row.end_ns]).sort((a, b) => a[0] - b[0]);
  const spans = [];
  let at = own.start_ns;
  for (const [from, to] of [...busy, [own.end_ns, own.end_ns]]) {
    if (from > at) {
      spans.push([at, from]);
    }
    at = Math.max(at, to);
  }
  return spans;
}

/* "rank 2, on its way to AllReduce (operation 0)". */
function pathWords(detail, part) {
  const row = detail.timeline.operations.find((one) => one.operation === part.operation);
  const operation = row ? `${row.kind} (operation ${row.place})` : `operation ${part.operation}`;
  const rank = part.rank === null ? "an unknown rank" : `rank ${part.rank}`;
  return part.part === "rank" ? `${rank}${rankName(part.rank) ? ` (${rankName(part.rank)})` : ""}, on its way to ${operation}` : `${operation} under way, last at ${rank}`;
}

function pathLanes(detail) {
  const parts = detail.why.critical_path;
  return parts.length === 0 ? [] : [{ kind: "path", label: "critical path", ranks: [], words: "", parts, always: true, height: LANE_HEIGHT + 4 }];
}

function pathTip(detail, part) {
  const step = spanOf(detail);
  const length = part.to_ns - part.from_ns;
  return [`the step waited for ${pathWords(detail, part)}`, `for ${duration(length)}, ${percent(length / (step.end_ns - step.start_ns))} of the step`,
    `from ${offset(part.from_ns, step.start_ns)} to ${offset(part.to_ns, step.start_ns)}`].join("\n");
}

function layLanes(detail, blamed) {
  const groups = [["What the step waited for", pathLanes(detail)], ["What each rank did", operationLanes(detail)], ["What each named flow carried (all flows on one scale)", flowLanes(detail)]];
  const lanes = [];
  let top = 0;
  for (const [title, group] of groups) {
    const shown = pickLanes(group, blamed);
    if (shown.length > 0) {
      const left = group.length - shown.length;
      lanes.push({ kind: "head", label: left > 0 ? `${title}: ${shown.length} of ${group.length} fit the search` : title, ranks: [], top, height: HEAD_HEIGHT });
      top += HEAD_HEIGHT;
    }
    for (const lane of shown) {
      lane.top = top;
      lanes.push(lane);
      top += lane.height;
    }
  }
  return { lanes, height: top };
}
