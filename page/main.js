/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the page together. */
"use strict";

const tables = {};

function showAbout() {
  const parts = [data.store, `${ranks.length} ranks`, `${steps.length} steps`];
  if (steps.length > 0 && steps[0].started_utc) {
    parts.push(`from ${steps[0].started_utc.replace("T", " ").replace(/\.\d+Z/, " UTC")}`);
  }
  document.getElementById("about").replaceChildren(parts.join(" · ") + " · ", make("a", { href: "#lost-section" }, lostWords()), " · ",
    make("a", { href: "#lost-section" }, notKnownWords()));
  document.getElementById("network").textContent = networkWords();
  document.getElementById("made").textContent = `Made by ${data.generator}, ${data.live ? "live" : "as one file"}; times of day are UTC${data.utc ? `, by the CLOCK_REALTIME of ${data.utc.host}, ±${duration(data.utc.bound_ns)}` : meta.has("realtime_minus_reference_ns") ? ", with a bound that is not known" : ", where they are known"}.`;
  document.title = `${data.store} · qpscope`;
}

/* The steps that have a time line in a report; a live page has that of any. */
function stepButtons() {
  const button = (words, step, title) => make("button", { type: "button", onclick: () => choose({ step }), title: title || null }, words);
  if (steps.length === 0) {
    return [];
  }
  const moves = [button("‹", neighbour(chosen.step, -1), "the step before"), button("›", neighbour(chosen.step, 1), "the step after")];
  if (data.why.step && !(hang !== null && verdictsByStep.get(data.why.step.step) === undefined)) {
    moves.push(button(`worst: ${data.why.step.step}`, data.why.step.step, "the one of the largest verdict, as qpscope why takes it"));
  }
  if (hang !== null) {
    moves.push(button("what hangs", hang.number, "what has not ended: who waits, who is missing, since when"));
  }
  const { healthy } = data.why;
  moves.push(healthy ? button(`healthy: ${healthy.step}`, healthy.step, `to compare with: the median, ${duration(healthy.duration_ns)}, of the ${healthy.of_steps} whole steps of training without a verdict`) :
    make("span", { class: "key" }, "no healthy step to compare with: no whole step of training is without a verdict"));
  if (data.live || data.details.length === steps.length) {
    return moves;
  }
  return [...moves, make("span", { class: "key" }, `Of ${steps.length} steps these have a time line in this page (qpscope report --step A..B chooses others):`),
    ...data.details.map((detail) => button(detail.step, detail.step))];
}

function showDetail(detail) {
  fill("said", ...paragraphs(detail.said));
  showWords(detail);
  showTimeline(detail);
  rankTable(detail);
  pathTable(detail);
}

function showNoDetail(words) {
  view.detail = null;
  fill("said", ...words.split("\n").map((line) => make("p", { class: "said" }, line)));
  showWords(null);
  ["bar", "timeline", "ranks", "path"].forEach((id) => fill(id));
  document.getElementById("path-holder").hidden = true;
}

function showStep() {
  const step = stepById.get(chosen.step);
  const kind = step && isHanging(step.step) ? ": has not ended" : step && notTraining(step) ? ` (${step.kind}: no training, so no fault)` : "";
  document.getElementById("step-title").textContent = step ? `${isHanging(step.step) && hang.step === null ? "Behind the last step" : `Step ${chosen.step}`}${kind}` : "Step";
  document.getElementById("step-time").textContent = step && beganWords(step) ? `began ${beganWords(step)}` : "";
  fill("step-choice", ...stepButtons());
  if (!step) {
    showNoDetail("no steps yet: none of the job's operations has been seen to repeat");
  } else if (detailById.has(chosen.step)) {
    showDetail(detailById.get(chosen.step));
  } else {
    showNoDetail(stepWords(chosen.step));
    fetchDetail(chosen.step);
  }
}

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
}

function redraw() {
  showSteps();
  if (ranks.length > 0) {
    heat.image = null;
    drawHeat();
  }
  layTimeline();
}

function startSearch() {
  const input = document.getElementById("search");
  input.addEventListener("input", () => {
    chosen.search = input.value;
    tables.queuePairs.filter(input.value);
    const rank = searchRank();
    choose({ rank: rank !== null && ranks.includes(rank) ? rank : chosen.rank });
    layTimeline();
  });
}

function chooseWorst() {
  if (hang !== null) {
    choose({ step: hang.number, rank: [...stateInHang.values()].find((row) => row.named)?.rank ?? null });
    return;
  }
  const worst = data.why.step; /* who worseFirst puts first too */
  choose({ step: worst ? worst.step : null, rank: data.why.verdicts?.length > 0 ? data.why.verdicts[0].rank : worst ? worst.slowest_rank : null });
}

/* What is new in the store is shown where it was; what was chosen stays. */
function refresh(fresh) {
  takeData(fresh);
  showAbout();
  showSummary();
  showLost();
  tables.verdicts.refresh(data.steps.verdicts);
  tables.queuePairs.refresh(data.queue_pairs.queue_pairs);
  showEnded();
  refreshSteps();
  refreshHeat();
  if (follows() && steps.length > 0) {
    choose({ step: steps[steps.length - 1].step });
  } else if (!stepById.has(chosen.step)) {
    chooseWorst();
  } else if (detailById.has(chosen.step)) {
    fill("step-choice", ...stepButtons());
    if (isHanging(chosen.step)) {
      renewHang();
    }
  } else {
    showStep();
  }
}

function start() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches);
  dark.addEventListener("change", () => { setTheme(dark.matches); redraw(); });
  document.getElementById("theme").addEventListener("click", () => { setTheme(!isDark()); redraw(); });
  takeData(JSON.parse(document.getElementById("data").textContent));
  showAbout();
  showSummary();
  showLost();
  tables.verdicts = verdictTable();
  tables.queuePairs = queuePairTable();
  showEnded();
  startSearch();
  startSteps();
  startHeat();
  listeners.push((change) => { if ("step" in change) { showStep(); } else { askDraw(); } });
  let asked = 0;
  window.addEventListener("resize", () => { clearTimeout(asked); asked = setTimeout(redraw, 100); });
  chooseWorst();
  startLive();
}

start();
