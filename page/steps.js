/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps over time: a point a step, those with a verdict marked by colour and form. */
"use strict";

let stepsPlot = null;

/* A verdict's form: who (triangle: a rank) or where (diamond: a link); all else a square. */
function drawMark(context, x, y, size, verdict) {
  context.beginPath();
  if (verdict.rank === null) {
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
  context.stroke();
}

function markSteps(plot) {
  const context = plot.ctx;
  const density = window.devicePixelRatio || 1;
  context.save();
  context.beginPath();
  context.rect(plot.bbox.left, plot.bbox.top - 8 * density, plot.bbox.width, plot.bbox.height + 16 * density);
  context.clip();
  context.fillStyle = colour("alarm");
  context.strokeStyle = colour("ground");
  context.lineWidth = density;
  for (const step of steps) {
    const verdicts = verdictsByStep.get(step.step);
    const x = plot.valToPos(step.step, "x", true);
    if (verdicts && x >= plot.bbox.left && x <= plot.bbox.left + plot.bbox.width) {
      drawMark(context, x, plot.valToPos(step.duration_ns / 1e6, "y", true), 5.5 * density, verdicts[0]);
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

function showSteps() {
  const holder = document.getElementById("steps");
  if (stepsPlot) {
    stepsPlot.destroy();
  }
  stepsPlot = new uPlot(stepsOptions(holder.clientWidth), [steps.map((step) => step.step), steps.map((step) => step.duration_ns / 1e6)], holder);
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

function startSteps() {
  if (steps.length === 0) {
    return;
  }
  document.getElementById("steps-hint").textContent =
    "Median over the ranks. Marked: triangle, a rank is blamed; diamond, a link; square, nobody alone. Click or arrow keys choose a step; drag zooms, double click shows all.";
  document.getElementById("steps").addEventListener("keydown", (event) => {
    const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (sign) {
      event.preventDefault();
      choose({ step: neighbour(chosen.step, sign) });
    }
  });
  showSteps();
  listeners.push((change) => { if ("step" in change) { stepsPlot.redraw(false); } });
}
