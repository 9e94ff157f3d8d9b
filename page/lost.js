/* SPDX-License-Identifier: BSD-2-Clause */
/* What was lost, what is not known, and what the network did: three different things, each in words of its own. */
"use strict";

const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/* A question of the time without an answer only widens the clock's bound: no traffic is lost by it. */
const ofClock = (counter) => counter.name === "clock_missed_answers_total";

/* Of traffic and time first; what the agents lost of their own is no loss of the network's. */
function lostWords() {
  const { lost, loss_counters: counters } = data.steps;
  const clock = counters.filter(ofClock).reduce((sum, one) => sum + one.total, 0);
  const others = counters.filter((one) => !ofClock(one)).length;
  const own = [...(others > 0 ? [counted(others, "counter", "counters")] : []), ...(clock > 0 ? [`${counted(clock, "clock question", "clock questions")} unanswered`] : [])];
  return (lost.gaps > 0 ? `lost: ${counted(lost.gaps, "gap", "gaps")} in what was seen` : "nothing lost of what was seen") + (own.length > 0 ? `; the agents' own losses: ${own.join(", ")}` : "");
}

const hostSideSeen = () => data.queue_pairs.queue_pairs.some((row) => row.pid !== null) || (data.places || []).some((row) => row.emitter === "host");

function notKnownWords() {
  const { lost, withheld } = data.steps;
  const lateKnown = data.by_rank.some((row) => row[2] !== null);
  const parts = [[!hostSideSeen(), "no host side was seen"],
    [data.by_rank.length > 0 && !lateKnown, "no rank's lateness or cost"],
    [lost.unattributed_flows > 0, `${counted(lost.unattributed_flows, "flow", "flows")} without an owner (${bytes(lost.unattributed_bytes)})`],
    [lost.incomplete_operations > 0, `${counted(lost.incomplete_operations, "operation", "operations")} incomplete`],
    [lost.late_members > 0, `the beginning of ${counted(lost.late_members, "member of a communicator", "members of communicators")}`],
    [lost.clocks_unknown > 0, `${counted(lost.clocks_unknown, "clock", "clocks")}`],
    [withheld.length > 0, `${counted(withheld.length, "verdict that cannot be given", "verdicts that cannot be given")}`]];
  const known = parts.filter((part) => part[0]).map((part) => part[1]);
  return known.length > 0 ? `not known: ${known.join(", ")}` : "nothing unknown";
}

/* Of the network alone. */
function networkWords() {
  const { network } = data;
  const kinds = [["retransmitted_frames", "retransmission", "retransmissions"], ["timeouts", "time-out", "time-outs"], ["marked_frames", "ECN mark", "ECN marks"],
    ["cnps", "CNP", "CNPs"], ["naks", "NAK", "NAKs"], ["rnr_naks", "NAK of a receiver not ready", "NAKs of receivers not ready"]];
  if (!network || network.flows === 0) {
    return "The network: no flow was seen on it.";
  }
  const found = kinds.filter(([key]) => network[key] > 0).map(([key, one, many]) => counted(network[key], one, many));
  const none = kinds.filter(([key]) => network[key] === 0).map(([, , many]) => many);
  return `The network, in ${counted(network.flows, "flow", "flows")}: ${[...found, ...(none.length > 0 ? [`no ${none.slice(0, -1).join(", ")}${none.length > 1 ? " or " : ""}${none[none.length - 1]}`] : [])].join("; ")} ${found.length + none.length > 0 ? "were counted." : "what happened is not known."}`;
}

function lostLine(part) {
  const found = /^(.*): clock_missed_answers_total (\d+)$/.exec(part.text);
  return found ? { ...part, text: `${found[1]}: ${counted(Number(found[2]), "clock question", "clock questions")} without an answer: its clock's bound is wider for it, no traffic was lost (clock_missed_answers_total)` } : part;
}

function showLost() {
  fill("lost", ...paragraphs(data.steps_said.map(lostLine)), make("p", { class: "said" }, capital(notKnownWords()) + "."), make("p", { class: "said" }, networkWords()));
}

/* Destroyed queue pairs are no fault where all of them are. */
function showEnded() {
  const pairs = data.queue_pairs.queue_pairs.filter((row) => row.role !== "foreign");
  const gone = pairs.filter((row) => row.state === "DESTROYED").length;
  document.getElementById("ended").textContent = gone === 0 ? "" : gone === pairs.length ? "All are destroyed, as a job does at its end: the job has ended." :
    `${gone} of ${pairs.length} are destroyed: their connections were closed.`;
}
