/* SPDX-License-Identifier: BSD-2-Clause */
/* What the page shows, indexed. */
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const steps = data.steps.steps;
const stepById = new Map(steps.map((step) => [step.step, step]));
const detailById = new Map(data.details.map((detail) => [detail.step, detail]));
const ranks = [...new Set(data.lateness.map((row) => row[1]))].sort((a, b) => a - b);
const meta = new Map(data.meta.map((row) => [row.key, row.value]));
const verdictsByStep = new Map();
for (const verdict of data.steps.verdicts) {
  verdictsByStep.set(verdict.step, [...(verdictsByStep.get(verdict.step) || []), verdict]);
}
const lateness = new Map();
for (const [step, rank, late] of data.lateness) {
  if (!lateness.has(step)) {
    lateness.set(step, new Map());
  }
  lateness.get(step).set(rank, late);
}

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
    for (const rank of [verdict.rank, verdict.peer_rank]) {
      if (rank !== null) {
        blamed.add(rank);
      }
    }
  }
  return blamed;
}

/* The step before (-1) or after (1). */
function neighbour(step, sign) {
  const sorted = steps.map((row) => row.step);
  const at = sorted.indexOf(step);
  return at < 0 ? sorted[0] : sorted[Math.min(sorted.length - 1, Math.max(0, at + sign))];
}

function stepWords(id) {
  const step = stepById.get(id);
  const lines = [`step ${id}: ${withBound(step.duration_ns, step.bound_ns)}, ${step.operations} operations, ${step.incomplete} incomplete`];
  if (step.slowest_rank !== null) {
    lines.push(`latest: rank ${step.slowest_rank}, by ${withBound(step.late_ns, step.late_bound_ns)}`);
  }
  for (const verdict of verdictsByStep.get(id) || []) {
    lines.push(`${verdict.class}: ${place(verdict)}, ${withBound(verdict.size_ns, verdict.bound_ns)}`);
  }
  if (!detailById.has(id)) {
    lines.push("no time line in this page");
  }
  return lines.join("\n");
}

/* Which words of the search fit: "rank 2", "2" as a rank, "0x000011", a device, an address. */
function searchRank() {
  const found = /^(?:rank\s*)?(\d+)$/i.exec(chosen.search.trim());
  return found ? Number(found[1]) : null;
}
