/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the page together. */
"use strict";

function showAbout() {
  const offsetNs = meta.get("realtime_minus_reference_ns");
  const parts = [data.store, `${ranks.length} ranks`, `${steps.length} steps`];
  if (offsetNs && steps.length > 0) {
    const begin = new Date(Number((BigInt(offsetNs) + BigInt(steps[0].start_ns)) / 1000000n));
    parts.push(`from ${begin.toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC")}`);
  }
  parts.push(data.generator);
  document.getElementById("about").textContent = parts.join(" · ");
  document.title = `${data.store} · qpscope report`;
}

/* What qpscope why says of what hangs and of the worst step, in short: the evidence stands with the step. */
function worstWords() {
  return data.why_said.filter((part) => part.indent === 0 && !/^(operation \d|not seen of|\()/.test(part.text));
}

function stepButtons() {
  const button = (id) => make("button", { type: "button", onclick: () => choose({ step: id }) }, id);
  return data.details.length === 0 ? ["No step has a time line."] :
    [data.details.length === steps.length ? "Steps: " : `Of ${steps.length} steps these have a time line in this page (qpscope report --step A..B chooses others): `,
      ...data.details.flatMap((detail) => [button(detail.step), " "])];
}

function showStep() {
  const detail = detailById.get(chosen.step);
  document.getElementById("step-title").textContent = chosen.step === null ? "Step" : `Step ${chosen.step}`;
  fill("step-choice", ...stepButtons());
  view.detail = null;
  if (detail) {
    fill("said", ...paragraphs(detail.said));
    showTimeline(detail);
    rankTable(detail);
  } else {
    const words = chosen.step === null ? "no steps yet: none of the job's operations has been seen to repeat" : stepWords(chosen.step);
    fill("said", ...words.split("\n").map((line) => make("p", { class: "said" }, line)));
    ["bar", "timeline", "ranks"].forEach((id) => fill(id));
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
  if (steps.length > 0) {
    showSteps();
  }
  if (heat.canvas) {
    heat.image = null;
    drawHeat();
  }
  layTimeline();
}

function startSearch(queuePairs) {
  const input = document.getElementById("search");
  input.addEventListener("input", () => {
    chosen.search = input.value;
    queuePairs.filter(input.value);
    const rank = searchRank();
    choose({ rank: rank !== null && ranks.includes(rank) ? rank : chosen.rank });
    layTimeline();
  });
}

function start() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches);
  dark.addEventListener("change", () => { setTheme(dark.matches); redraw(); });
  document.getElementById("theme").addEventListener("click", () => { setTheme(!isDark()); redraw(); });
  showAbout();
  fill("why", ...paragraphs(worstWords()));
  culpritTable();
  fill("lost", ...paragraphs(data.steps_said));
  verdictTable();
  const queuePairs = queuePairTable();
  startSearch(queuePairs);
  startSteps();
  startHeat();
  listeners.push((change) => { if ("step" in change) { showStep(); } else { askDraw(); } });
  let asked = 0;
  window.addEventListener("resize", () => { clearTimeout(asked); asked = setTimeout(redraw, 100); });
  const worst = data.why.step;
  choose({ step: worst ? worst.step : null, rank: data.why.verdicts?.length > 0 ? data.why.verdicts[0].rank : worst ? worst.slowest_rank : null });
}

start();
