/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps over time: a point a step, those with a verdict marked by colour and form. */
"use strict";

let stepsPlot = null;
const FAR_LONGER = 4; /* times the median */
const LONGER = 1.3; /* times the longest step of training: the axis' end, where there are longer ones */
const MARK_DENSE = 3.5; /* half a mark where steps stand close: without a rim, which would hide its neighbours */

/* A verdict's form: who (triangle: a rank) or where (diamond: a link); all else a square. */
function drawMark(context, x, y, size, verdict) {
  context.beginPath();
  if (verdict.rank === null && !verdict.candidates) {
    context.rect(x - size, y - size, 2 * size, 2 * size);
  } else if (verdict.peer_rank === null) {
    context.moveTo(x, y - size * 1.2);
    context.lineTo(x + size * 1.1, y + size * 0.9);
    context.lineTo(x - size * 1.1, y + size * 0.9);
  } else {
    context.moveTo(x, y - size * 1.3);
    context.lineTo(x + size * 1.2, y);
    context.lineTo(x, y + size * 1.3);
    context.lineTo(x - size * 1.2, y);
  }
  context.closePath();
  context.fill();
  if (size > MARK_DENSE) {
    context.stroke();
  }
}

/* The axis is made for steps of training: neither a warm-up, which makes connections, nor a few far longer ones press them flat. */
function stepsCeiling() {
  const training = steps.filter((step) => !notTraining(step));
  const own = (training.length > 0 ? training : steps).map((step) => step.duration_ns);
  const limit = FAR_LONGER * median(own);
  const most = own.filter((ns) => ns <= limit).reduce((a, b) => Math.max(a, b), 0);
  return steps.some((step) => step.duration_ns > LONGER * most) ? LONGER * most : Infinity;
}

/* A step that is no training is a ring; one above the ceiling an arrow with its number. */
function drawOther(context, x, y, density, step, ceiling) {
  if (step.duration_ns > ceiling) {
    context.fillStyle = colour("soft");
    context.font = `${12 * density}px system-ui, Arial, sans-serif`;
    context.textBaseline = "middle";
    context.textAlign = x > context.canvas.width - 120 * density ? "right" : "left";
    context.fillText(`${context.textAlign === "left" ? "  ↑ " : ""}${duration(step.duration_ns)}${context.textAlign === "left" ? "" : " ↑  "}`, x, y - 6 * density);
  }
  if (notTraining(step)) {
    context.beginPath();
    context.arc(x, y, 5 * density, 0, 7);
    context.fillStyle = colour("ground");
    context.fill();
    context.strokeStyle = colour("kind0");
    context.lineWidth = 1.5 * density;
    context.stroke();
  }
}

/* What hangs is a bar to the axis' end, hatched so that no colour is needed to tell it, with for how long. */
function drawHangBar(context, plot, x, density) {
  const width = 9 * density;
  context.fillStyle = hatchOf(context, colour("alarm"));
  context.fillRect(x - width / 2, plot.bbox.top, width, plot.bbox.height);
  context.strokeStyle = colour("alarm");
  context.lineWidth = 1.5 * density;
  context.strokeRect(x - width / 2, plot.bbox.top, width, plot.bbox.height + density);
  context.fillStyle = colour("alarm");
  context.font = `bold ${12 * density}px system-ui, Arial, sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = x < plot.bbox.left + 180 * density ? "left" : "right";
  context.fillText(`hangs: ${duration(hang.to_ns - hang.began_ns)}, not ended`, x + (context.textAlign === "left" ? width : -width), plot.bbox.top + plot.bbox.height / 2);
}

function markSteps(plot) {
  const context = plot.ctx;
  const density = window.devicePixelRatio || 1;
  const ceiling = stepsCeiling();
  const apart = plot.bbox.width / Math.max(1, plot.scales.x.max - plot.scales.x.min);
  const size = apart < 9 * density ? MARK_DENSE : 5.5 * density;
  context.save();
  context.beginPath();
  context.rect(plot.bbox.left, plot.bbox.top - 8 * density, plot.bbox.width, plot.bbox.height + 16 * density);
  context.clip();
  for (const step of steps) {
    const verdicts = verdictsByStep.get(step.step);
    const x = plot.valToPos(step.step, "x", true);
    if (isHanging(step.step)) {
      drawHangBar(context, plot, x, density);
    } else if (x >= plot.bbox.left && x <= plot.bbox.left + plot.bbox.width && (verdicts || notTraining(step) || step.duration_ns > ceiling)) {
      const y = plot.valToPos(Math.min(ceiling, step.duration_ns) / 1e6, "y", true);
      drawOther(context, x, y, density, step, ceiling);
      context.fillStyle = colour("alarm");
      context.strokeStyle = colour("ground");
      context.lineWidth = density;
      if (verdicts) {
        drawMark(context, x, y, size, verdicts[0]);
      }
    }
  }
  if (chosen.step !== null) {
    const x = plot.valToPos(chosen.step, "x", true);
    context.strokeStyle = colour("accent");
    context.lineWidth = 2 * density;
    context.beginPath();
    context.moveTo(x, plot.bbox.top);
    context.lineTo(x, plot.bbox.top + plot.bbox.height);
    context.stroke();
  }
  context.restore();
}

function stepsOptions(width) {
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "12px system-ui, Arial, sans-serif" };
  return {
    width, height: 210,
    padding: [10, 16, 0, 0],
    scales: { x: { time: false, range: (plot, low, high) => [low - 0.4, high + 0.4] }, y: { range: (plot, low, high) => [0, (high || 1) * 1.08] } },
    legend: { show: false },
    cursor: { y: false, points: { size: 9, fill: colour("accent") } },
    series: [{ label: "step" }, { label: "duration", stroke: colour("kind0"), width: 1.5, points: { show: steps.length <= 200, size: 5, fill: colour("kind0") } }],
    axes: [{ ...axis, label: "step", labelSize: 20, size: 34, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] },
      { ...axis, label: "duration in ms", labelSize: 20, size: 58 }],
    hooks: { draw: [markSteps] },
  };
}

function stepAt(event) {
  const left = event.clientX - stepsPlot.over.getBoundingClientRect().left;
  return steps[stepsPlot.posToIdx(left)].step;
}

function stepsData() {
  const ceiling = stepsCeiling();
  return [steps.map((step) => step.step), steps.map((step) => (isHanging(step.step) ? null : Math.min(ceiling, step.duration_ns) / 1e6))];
}

/* A live page's zoom stays while steps are added. */
function showSteps() {
  const holder = document.getElementById("steps");
  stepsPlot?.destroy();
  stepsPlot = null;
  fill("steps-key", ...stepsKey());
  if (steps.length === 0) {
    return;
  }
  stepsPlot = new uPlot(stepsOptions(holder.clientWidth), stepsData(), holder);
  let pressed = 0;
  stepsPlot.over.addEventListener("mousedown", (event) => { pressed = event.clientX; });
  stepsPlot.over.addEventListener("click", (event) => {
    if (Math.abs(event.clientX - pressed) < 4) {
      choose({ step: stepAt(event) });
    }
  });
  stepsPlot.over.addEventListener("mousemove", (event) => showTip(event, stepWords(stepAt(event))));
  stepsPlot.over.addEventListener("mouseleave", hideTip);
}

function refreshSteps() {
  if (stepsPlot === null || steps.length === 0) {
    showSteps();
  } else {
    const { min, max } = stepsPlot.scales.x;
    const whole = min <= stepsPlot.data[0][0] && max >= stepsPlot.data[0][stepsPlot.data[0].length - 1];
    stepsPlot.setData(stepsData(), whole);
    stepsPlot.redraw(false);
    fill("steps-key", ...stepsKey());
  }
}

function stepsKey() {
  const key = (sign, words, name = "alarm") => make("span", { class: "key" }, make("b", { style: `color: var(--${name})` }, sign), words);
  const others = new Map();
  steps.filter((step) => notTraining(step) && !isHanging(step.step)).forEach((step) => others.set(step.kind, (others.get(step.kind) || 0) + 1));
  const places = new Set(data.steps.verdicts.filter((one) => one.step !== null).map((one) => (one.rank === null && !one.candidates ? "all" : one.peer_rank === null ? "rank" : "link")));
  const left = data.steps.past?.steps || 0;
  const ceiling = stepsCeiling();
  return [...(places.has("rank") ? [key("▲", "a rank is blamed")] : []), ...(places.has("link") ? [key("◆", "a link is blamed")] : []),
    ...(places.has("all") ? [key("■", "slow, but no rank or link alone")] : []),
    ...(others.size > 0 ? [key("○", `no training, so no fault: ${[...others].map(([kind, count]) => `${count} ${kind}`).join(", ")}`, "kind0")] : []),
    ...(hang !== null ? [key("▨", "hangs: it has not ended")] : []),
    ...(steps.some((step) => step.duration_ns > ceiling && !isHanging(step.step)) ? [key("↑", "longer than the axis: drawn at its edge", "soft")] : []),
    ...(left > 0 ? [key("…", `${left} earlier steps are kept without their detail`, "soft")] : [])];
}

function startSteps() {
  document.getElementById("steps-hint").textContent =
    "Duration, median over the ranks. Click, or arrow keys: choose a step. Drag: zoom; double click: all.";
  document.getElementById("steps").addEventListener("keydown", (event) => {
    const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (sign && steps.length > 0) {
      event.preventDefault();
      choose({ step: neighbour(chosen.step, sign) });
    }
  });
  showSteps();
  /* What is said of a step above the chart moves it, which uPlot does not see: it would take the next click for a drag. */
  listeners.push((change) => { if ("step" in change) { stepsPlot?.redraw(false); setTimeout(() => stepsPlot?.syncRect(true), 0); } });
}
