/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer first: who, how much, why; then what each rank cost over all steps. */
"use strict";

const CARDS_SHOWN = 4;
const COSTS_SHOWN = 8;

const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/* The steps that a culprit has a verdict in, the worst first. */
function stepsOf(culprit) {
  return data.steps.verdicts.filter((one) => one.step !== null && ["class", "rank", "candidates", "peer_rank", "device"].every((key) => one[key] === culprit[key]))
    .sort((a, b) => b.size_ns - a.size_ns || worseFirst(a.step, b.step));
}

function showCulprit(culprit) {
  const own = stepsOf(culprit);
  if (own.length > 0) {
    goTo({ step: own[0].step, rank: culprit.rank ?? chosen.rank });
  }
}

/* Chooses, and brings the step into sight. */
function goTo(change) {
  choose(change);
  const pane = document.getElementById("step");
  pane.scrollIntoView({ block: "start" });
  pane.classList.remove("shown");
  pane.getBoundingClientRect();
  pane.classList.add("shown");
}

/* "14 to 21; not since (the last is step 39)": when it was, and whether it still is. */
function whenWords(numbers) {
  const [first, last] = [numbers[0], numbers[numbers.length - 1]];
  const training = steps.filter((step) => !notTraining(step) || numbers.includes(step.step));
  const between = training.filter((step) => step.step >= first && step.step <= last).length;
  const span = numbers.length === 1 ? `step ${first}` : `${between === numbers.length ? "" : "between "}${first} ${between === numbers.length ? "to" : "and"} ${last}`;
  const newest = training[training.length - 1].step;
  const kind = steps.some(notTraining) ? " of training" : "";
  return last === newest ? `${span}; still so in the last step${kind}` : `${span}; not since (the last${kind} is step ${newest})`;
}

/* One estimate over many steps is no measurement in each. */
const isPooled = (own) => own.length > 1 && own.every((one) => one.size_ns === own[0].size_ns);

function card(kind, title, amount, ...lines) {
  return make("div", { class: "card " + kind }, make("div", { class: "card-title" }, title), ...(amount ? [make("div", { class: "card-amount" }, amount)] : []),
    ...lines.filter((line) => line).map((line) => make("p", {}, line)));
}

/* Where those who are named run. */
function placesWords(verdict) {
  const named = verdict.candidates ? verdict.candidates.split(", ").map(Number) : [verdict.rank, verdict.peer_rank].filter((rank) => rank !== null);
  const known = named.filter((rank) => rankPlace(rank)).slice(0, 4);
  return known.length > 0 ? known.map((rank) => `Rank ${rank} is on ${rankPlace(rank)}.`).join(" ") : null;
}

function culpritCard(culprit) {
  const own = stepsOf(culprit);
  const numbers = own.map((one) => one.step).sort((a, b) => a - b);
  const worst = own[0];
  const share = worst && stepById.get(worst.step) ? culprit.median_ns / median(own.map((one) => stepById.get(one.step).duration_ns)) : null;
  const amount = culprit.median_ns > 0 ? `${isPooled(own) ? "about " : ""}${duration(culprit.median_ns)}${share === null ? "" : ` · ${percent(share)} of a step`}` : "cost not known";
  const how = isPooled(own) ? `about that in each of ${own.length} steps (one estimate over all of them)` :
    own.length > 1 ? `in the median; ${duration(own[own.length - 1].size_ns)} to ${duration(culprit.largest_ns)}` : null;
  const button = make("button", { type: "button", onclick: () => showCulprit(culprit) }, worst ? `show the worst, step ${worst.step}` : "show");
  return card("alarm", `${capital(place(culprit))}: ${culprit.class}`, amount,
    numbers.length > 0 ? `In ${culprit.steps} of ${culprit.steps_total} steps: ${whenWords(numbers)}.` : `In ${culprit.steps} of ${culprit.steps_total} steps.`,
    culprit.median_ns > 0 && how ? `${capital(how)}.` : null,
    placesWords(culprit),
    meanings.has(culprit.class) ? capital(meanings.get(culprit.class)) + "." : null,
    worst ? `Confidence ${Math.round(worst.confidence * 100)} % in the worst. ` : null, button);
}

function hangCard(verdict) {
  const button = make("button", { type: "button", onclick: () => goTo({ step: hang.number, rank: verdict.rank ?? chosen.rank }) }, "show who waits, since when");
  return card("alarm", `Hang: ${verdict.rank === null && !verdict.candidates ? "who is missing is not known" : place(verdict)}`,
    `for ${duration(verdict.size_ns)}, not ended`, hang.began_utc ? `Since ${hang.began_utc.slice(0, 10)} ${hang.began_utc.slice(11, -1)} UTC.` : null, placesWords(verdict),
    verdict.operation === hang.operation ? `${capital(hangStateWords().join("; "))}.` : null, capital(verdict.evidence) + ".", button);
}

function quietCard() {
  if (steps.length === 0) {
    return card("quiet", "No steps yet", null, "None of the job's operations has been seen to repeat.");
  }
  const own = steps.filter((step) => !notTraining(step));
  const usual = median((own.length > 0 ? own : steps).map((step) => step.duration_ns));
  return card("quiet", "Nobody stood out", `${duration(usual)} a step`,
    "No rank and no link was late enough, often enough or by more than chance, to be blamed. The median of the steps is shown.");
}

/* What hangs comes before all that was slow. */
function summaryCards() {
  const culprits = data.why.summary || [];
  const cards = [...data.why.hangs.map(hangCard), ...culprits.slice(0, CARDS_SHOWN).map(culpritCard)];
  const left = culprits.length - CARDS_SHOWN;
  fill("cards", ...(cards.length > 0 ? cards : [quietCard()]));
  fill("cards-more", ...(left > 0 ? [`${left} more, of fewer steps or smaller: the table of verdicts has all.`] : []));
}

/* Of each rank: its cost over the steps in which it is known. */
function rankCosts() {
  const sums = new Map(ranks.map((rank) => [rank, { rank, cost: 0, costs: [], steps: 0, worst: null, most: 0 }]));
  let whole = 0;
  for (const step of steps.filter((one) => !isHanging(one.step))) {
    whole += step.duration_ns;
    for (const [rank, [, cost]] of rankSteps.get(step.step) || []) {
      const sum = sums.get(rank);
      if (cost === null) {
        continue;
      }
      sum.costs.push(cost);
      sum.cost += cost;
      sum.steps += cost * 100 >= step.duration_ns && cost > 0 ? 1 : 0;
      if (cost > sum.most) {
        Object.assign(sum, { most: cost, worst: step.step });
      }
    }
  }
  const all = [...sums.values()];
  return { whole, known: all.some((sum) => sum.costs.length > 0), sums: all.filter((sum) => sum.cost > 0).sort((a, b) => b.cost - a.cost) };
}

/* By how much a step of training without a verdict differs from the median one: nine of ten by less. */
function usualSpread() {
  const quiet = steps.filter((step) => !notTraining(step) && !verdictsByStep.has(step.step)).map((step) => step.duration_ns);
  const usual = median(quiet);
  return quiet.length < 3 ? 0 : quiet.map((ns) => Math.abs(ns - usual)).sort((a, b) => a - b)[Math.floor(0.9 * (quiet.length - 1))];
}

function costLine(sum, whole, most, spread, blamed) {
  const noise = sum.most <= spread && !blamed.has(sum.rank);
  const on = rankName(sum.rank) ? ` · ${rankName(sum.rank)}` : "";
  const words = `${duration(sum.cost)}, ${percent(sum.cost / whole)}; a step: ${duration(median(sum.costs))}, up to ${duration(sum.most)}${noise ? " (noise)" : ""}${on}`;
  const show = () => goTo({ step: sum.worst, rank: sum.rank });
  const title = [rankPlace(sum.rank), `most in step ${sum.worst}`, `1 % or more in ${counted(sum.steps, "step", "steps")}`].filter((part) => part).join("\n");
  const line = make("div", { class: "cost" + (noise ? " noise" : ""), tabindex: 0, onclick: show, title },
    make("span", { class: "cost-name" }, `rank ${sum.rank}`),
    make("span", { class: "cost-bar" }, make("i", { style: `width: ${Math.max(0.3, (100 * sum.cost) / most)}%` })), make("span", { class: "cost-words" }, words));
  line.addEventListener("keydown", (event) => { if (event.key === "Enter") { show(); } });
  return line;
}

function costBars() {
  const { whole, known, sums } = rankCosts();
  const shown = sums.slice(0, COSTS_SHOWN);
  const left = sums.length - shown.length;
  const spread = usualSpread();
  const blamed = new Set([...verdictsByStep.keys()].flatMap((step) => [...blamedRanks(step)]));
  const note = (words) => make("p", { class: "note" }, words);
  const none = steps.length > 0 && !known ? "Not known: in no step is it known when the ranks were ready, which takes a host side." : "No rank cost any step anything that is known.";
  fill("costs", ...(shown.length === 0 ? [note(none)] : shown.map((sum) => costLine(sum, whole, shown[0].cost, spread, blamed))),
    ...(left > 0 ? [note(`${left} more rank${left === 1 ? "" : "s"}, each less.`)] : []),
    ...(shown.length > 0 && spread > 0 ? [note(`Nine of ten steps without a verdict differ by up to ${duration(spread)} from the usual one: what costs no more than that in any step is noise.`)] : []));
}

/* What qpscope why says, in short: the evidence stands with the step. */
const inShort = (said) => said.filter((part) => part.indent === 0 && !/^((the )?operation( \d|:)|not seen of|\()/.test(part.text));

/* What hangs, whichever step is chosen. */
function hangWords() {
  const at = data.why_said.findIndex((part) => part.indent === 0 && /^(step \d+ took|no verdict in any step|no steps yet)/.test(part.text));
  return data.why.hangs.length > 0 ? data.why_said.slice(0, at < 0 ? undefined : at) : [];
}

/* Of the chosen step; without its detail, what the page knows of any. */
function showWords(detail) {
  const step = stepById.get(chosen.step);
  document.getElementById("why-title").textContent = step ? `In words: ${isHanging(step.step) ? "what hangs" : `step ${chosen.step}`}` : "In words";
  const own = isHanging(chosen.step) ? [] : detail ? paragraphs(inShort(detail.said)) : (step ? stepWords(chosen.step).split("\n") : []).map((line) => make("p", { class: "said" }, line));
  fill("why", ...paragraphs(inShort(hangWords())), ...(step ? own : paragraphs(inShort(data.why_said))));
}

function showSummary() {
  summaryCards();
  costBars();
}
