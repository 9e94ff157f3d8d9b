/* SPDX-License-Identifier: BSD-2-Clause */
/* What the page shows, indexed. A live page takes it in anew as steps end. */
"use strict";

let data = null;
let steps = [];
let stepById = new Map();
let detailById = new Map();
let ranks = [];
let meta = new Map();
let verdictsByStep = new Map();
let rankSteps = new Map(); /* of a step: of a rank its [lateness, cost]; where no rank's lateness is known, no cost is either */
let placeOfRank = new Map();
let meanings = new Map();
let hang = null; /* what does not end: a step of its own where it is in none */
let hangDetail = null;
let stateInHang = new Map(); /* of a rank: what it does in it */

function takeData(fresh) {
  data = fresh;
  steps = data.steps.steps;
  hang = data.why.hang ?? null;
  stateInHang = new Map((data.why.hang_ranks || []).map((row) => [row.rank, row]));
  if (hang !== null) {
    const own = steps.find((step) => step.step === hang.number);
    const step = { partial: false, operations: 1, incomplete: 1, slowest_rank: null, late_ns: null, late_bound_ns: null, bound_ns: null, verdict: null, ...own,
      step: hang.number, kind: "hang", start_ns: hang.from_ns, started_utc: own?.started_utc ?? hang.began_utc, end_ns: hang.to_ns, duration_ns: hang.to_ns - hang.from_ns };
    steps = [...steps.filter((one) => one !== own), step].sort((a, b) => a.step - b.step);
  }
  stepById = new Map(steps.map((step) => [step.step, step]));
  detailById = new Map(data.details.map((detail) => [detail.step, detail]));
  hangDetail = data.hang_detail ?? (hang !== null && hangDetail?.timeline.hang.operation === hang.operation ? hangDetail : null);
  if (hangDetail !== null) {
    detailById.set(hang.number, hangDetail);
  }
  ranks = [...new Set([...data.by_rank.map((row) => row[1]), ...[...stateInHang.keys()].filter((rank) => rank !== null)])].sort((a, b) => a - b);
  meta = new Map(data.meta.map((row) => [row.key, row.value]));
  meanings = new Map(data.classes.map((row) => [row.class, row.meaning]));
  verdictsByStep = new Map();
  for (const verdict of data.steps.verdicts) {
    const step = verdict.step ?? hang?.number;
    verdictsByStep.set(step, [...(verdictsByStep.get(step) || []), verdict]);
  }
  rankSteps = new Map();
  for (const [step, rank, late, cost] of data.by_rank) {
    if (!rankSteps.has(step)) {
      rankSteps.set(step, new Map());
    }
    rankSteps.get(step).set(rank, [late, cost]);
  }
  for (const ofStep of rankSteps.values()) {
    if ([...ofStep.values()].every(([late]) => late === null)) {
      ofStep.forEach((own) => { own[1] = null; });
    }
  }
  placeOfRank = new Map((data.places || []).map((row) => [row.rank, row]));
}

const lateOf = (step, rank) => rankSteps.get(step)?.get(rank)?.[0] ?? null;
const costOf = (step, rank) => rankSteps.get(step)?.get(rank)?.[1] ?? null;

/* What is chosen; who shows it listens. */
const chosen = { step: null, rank: null, search: "" };
const listeners = [];
function choose(change) {
  Object.assign(chosen, change);
  for (const listener of listeners) {
    listener(change);
  }
}

function blamedRanks(step) {
  const blamed = new Set();
  for (const verdict of verdictsByStep.get(step) || []) {
    const candidates = verdict.candidates ? verdict.candidates.split(", ").map(Number) : [];
    for (const rank of [verdict.rank, verdict.peer_rank, ...candidates]) {
      if (rank !== null) {
        blamed.add(rank);
      }
    }
  }
  return blamed;
}

const stepOfDetail = (detail) => (detail.timeline.hang ? hang?.number : detail.step);
const isHanging = (id) => hang !== null && id === hang.number;

/* "node3, GPU 0": short enough to stand beside a rank. */
const rankName = (rank) => placeOfRank.get(rank)?.name ?? null;
const rankNamed = (rank) => `rank ${plain(rank)}${rankName(rank) ? ` (${rankName(rank)})` : ""}`;

/* "node3, GPU 0, mlx5_0/1, pid 2010 (train)", as far as it is known. */
function rankPlace(rank) {
  const row = placeOfRank.get(rank);
  return row ? [row.host, row.gpu === null ? null : `GPU ${row.gpu}`, row.devices?.replaceAll(",", ", "), row.emitter === "host" ? `pid ${row.pid} (${row.command})` : row.command].filter((part) => part).join(", ") : null;
}

/* The order in which qpscope why takes the worst step: the largest verdict, then who was latest, then the longest. */
const sizeOfStep = (id) => Math.max(-Infinity, ...(verdictsByStep.get(id) || []).map((one) => one.size_ns));
function worseFirst(a, b) {
  const [left, right] = [stepById.get(a), stepById.get(b)];
  const falling = (x, y) => (x === y ? 0 : (y ?? -Infinity) > (x ?? -Infinity) ? 1 : -1);
  return falling(sizeOfStep(a), sizeOfStep(b)) || falling(left?.late_ns, right?.late_ns) || falling(left?.duration_ns, right?.duration_ns) || a - b;
}

/* The step before (-1) or after (1). */
function neighbour(step, sign) {
  const at = steps.findIndex((row) => row.step === step);
  return at < 0 ? steps[0].step : steps[Math.min(steps.length - 1, Math.max(0, at + sign))].step;
}

/* When it began, in UTC: with the time of day first to be read. */
function beganWords(step) {
  const bound = data.utc ? ` ±${duration(data.utc.bound_ns)}` : "";
  return step.started_utc ? `${step.started_utc.slice(0, 10)} ${step.started_utc.slice(11, -1)} UTC${bound}` : null;
}

/* "rank 3 (node1, GPU 1) has sent nothing; 7 ranks wait": who, in what hangs. */
function hangStateWords() {
  const rows = [...stateInHang.values()];
  const named = rows.filter((row) => row.named).map((row) => `${rankNamed(row.rank)}: ${row.state}, last sign ${duration(row.silent_ns)} before the end of what was seen`);
  const waiting = rows.filter((row) => row.state === "waits").length;
  return [...(named.length > 0 ? named.slice(0, 4) : ["who is missing is not known"]), ...(named.length > 4 ? [`and ${named.length - 4} more`] : []), `${counted(waiting, "rank waits", "ranks wait")} in it`];
}

function hangStepWords() {
  return [`${hang.step === null ? "behind the last step" : `step ${hang.step}`}: has not ended. ${hang.kind} on communicator ${hang.communicator} hangs, for ${duration(hang.to_ns - hang.began_ns)}`,
    ...(hang.began_utc ? [`since ${hang.began_utc.slice(0, 10)} ${hang.began_utc.slice(11, -1)} UTC${hang.utc_bound_ns === null ? "" : ` ±${duration(hang.utc_bound_ns)}`}`] : []),
    ...hangStateWords()].join("\n");
}

/* Who cost the step most, where that is a hundredth of it or more. */
function costliest(id) {
  const found = [...(rankSteps.get(id) || [])].reduce((best, [rank, [, cost]]) => (cost > best.cost ? { rank, cost } : best), { rank: null, cost: 0 });
  return found.cost * 100 >= stepById.get(id).duration_ns ? found : null;
}

const notTraining = (step) => step.kind !== "training";

function stepWords(id) {
  const step = stepById.get(id);
  if (isHanging(id)) {
    return hangStepWords();
  }
  const lines = [`step ${id}${notTraining(step) ? ` (${step.kind}, no fault)` : ""}: ${withBound(step.duration_ns, step.bound_ns)}, ${step.operations} operations, ${step.incomplete} incomplete`];
  if (beganWords(step)) {
    lines.push(`began ${beganWords(step)}`);
  }
  if (step.slowest_rank !== null) {
    lines.push(`latest: ${rankNamed(step.slowest_rank)}, by ${withBound(step.late_ns, step.late_bound_ns)}`);
  }
  const cost = costliest(id);
  if (cost) {
    lines.push(`costliest: ${rankNamed(cost.rank)}, ${duration(cost.cost)} of the step (${percent(cost.cost / step.duration_ns)})`);
  }
  for (const verdict of verdictsByStep.get(id) || []) {
    lines.push(`${verdict.class}: ${place(verdict)}, ${withBound(verdict.size_ns, verdict.bound_ns)}`);
  }
  if (step.partial) {
    lines.push("partial: what came before was cut out of the memory");
  }
  if (!data.live && !detailById.has(id)) {
    lines.push("no time line in this page");
  }
  return lines.join("\n");
}

/* Which words of the search fit: "rank 2", "2" as a rank, "0x000011", a device, an address. */
function searchRank() {
  const found = /^(?:rank\s*)?(\d+)$/i.exec(chosen.search.trim());
  return found ? Number(found[1]) : null;
}
