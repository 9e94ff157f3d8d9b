/* SPDX-License-Identifier: BSD-2-Clause */
/* Lateness, rank by step. A pixel that stands for several steps shows the latest of them. */
"use strict";

const HEAT_LEFT = 64;
const HEAT_TOP = 4;
const HEAT_BOTTOM = 22;
const heat = { canvas: null, image: null, width: 0, row: 0, worst: 1, knee: 1 };

/* Lightness falls (on a dark ground rises) all along, so that the order holds without colours. */
function heatScale() {
  const stops = ["heat0", "heat1", "heat2", "heat3"].map((name) => {
    const number = parseInt(colour(name).slice(1), 16);
    return [number >> 16, (number >> 8) & 255, number & 255];
  });
  return (part) => {
    const at = Math.min(0.9999, Math.max(0, part)) * 3;
    const low = stops[Math.floor(at)];
    const high = stops[Math.floor(at) + 1];
    return low.map((value, index) => Math.round(value + (high[index] - value) * (at - Math.floor(at))));
  };
}

/* Even up to the knee, the median of those that were late, then by orders of magnitude. */
const heatPart = (late) => Math.log1p(Math.max(0, late) / heat.knee) / Math.log1p(heat.worst / heat.knee);

function columnOf(index) {
  return HEAT_LEFT + (index * heat.width) / steps.length;
}

function heatImage(scale) {
  const width = Math.max(1, Math.floor(heat.width));
  const image = new ImageData(width, Math.max(1, ranks.length));
  const soft = [128, 128, 128];
  ranks.forEach((rank, row) => {
    for (let x = 0; x < width; x++) {
      const first = Math.floor((x * steps.length) / width);
      const last = Math.max(first + 1, Math.floor(((x + 1) * steps.length) / width));
      let late = null;
      for (let index = first; index < last; index++) {
        const value = lateness.get(steps[index].step)?.get(rank);
        if (value !== null && value !== undefined && (late === null || value > late)) {
          late = value;
        }
      }
      const [red, green, blue] = late === null ? soft : scale(heatPart(late));
      image.data.set([red, green, blue, late === null ? ((x + row) % 4 < 2 ? 90 : 40) : 255], (row * width + x) * 4);
    }
  });
  return image;
}

function drawHeatAxes(context, height) {
  context.fillStyle = colour("soft");
  context.font = "12px system-ui, Arial, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  const every = Math.max(1, Math.ceil(14 / heat.row));
  ranks.forEach((rank, row) => {
    if (row % every === 0) {
      context.fillText(`rank ${rank}`, HEAT_LEFT - 6, HEAT_TOP + (row + 0.5) * heat.row);
    }
  });
  context.textAlign = "center";
  const stride = Math.max(1, niceStride(steps.length, heat.width / 50));
  for (let index = 0; index < steps.length; index += stride) {
    context.fillText(String(steps[index].step), columnOf(index + 0.5), height - HEAT_BOTTOM / 2);
  }
}

/* The cells as a picture, a row a rank; kept until colours or width change. */
function makeHeatImage() {
  const image = heatImage(heatScale());
  heat.image = make("canvas", { width: image.width, height: image.height });
  heat.image.getContext("2d").putImageData(image, 0, 0);
}

function drawHeat() {
  const holder = document.getElementById("heat");
  heat.row = Math.min(22, Math.max(6, 640 / Math.max(1, ranks.length)));
  const width = Math.max(50, holder.clientWidth - HEAT_LEFT - 4);
  if (heat.image === null || width !== heat.width) {
    heat.width = width;
    makeHeatImage();
  }
  const height = HEAT_TOP + ranks.length * heat.row + HEAT_BOTTOM;
  const context = sized(heat.canvas, holder.clientWidth, height);
  context.imageSmoothingEnabled = false;
  context.drawImage(heat.image, HEAT_LEFT, HEAT_TOP, heat.width, ranks.length * heat.row);
  drawHeatAxes(context, height);
  const at = steps.findIndex((step) => step.step === chosen.step);
  if (at >= 0) {
    context.strokeStyle = colour("accent");
    context.lineWidth = 2;
    const left = columnOf(at);
    const row = ranks.indexOf(chosen.rank);
    const wide = Math.max(3, heat.width / steps.length);
    context.strokeRect(left, HEAT_TOP, wide, ranks.length * heat.row);
    if (row >= 0) {
      context.strokeRect(left - 2, HEAT_TOP + row * heat.row - 1, wide + 4, heat.row + 2);
    }
  }
}

function heatCell(event) {
  const box = heat.canvas.getBoundingClientRect();
  const index = Math.floor(((event.clientX - box.left - HEAT_LEFT) * steps.length) / heat.width);
  const row = Math.floor((event.clientY - box.top - HEAT_TOP) / heat.row);
  return index >= 0 && index < steps.length && row >= 0 && row < ranks.length ? { step: steps[index].step, rank: ranks[row] } : null;
}

function heatTip(event) {
  const cell = heatCell(event);
  if (!cell) {
    hideTip();
    return;
  }
  const late = lateness.get(cell.step)?.get(cell.rank);
  showTip(event, `rank ${cell.rank}: ${late === null || late === undefined ? "lateness not known" : `late by ${duration(late)}`}\n${stepWords(cell.step)}`);
}

function heatLegend() {
  const stops = ["heat0", "heat1", "heat2", "heat3"].map((name) => `var(--${name})`).join(", ");
  const label = (part) => duration(Math.round(heat.knee * Math.expm1(part * Math.log1p(heat.worst / heat.knee))));
  return make("div", { class: "bar" },
    make("span", { class: "key" }, "0 or early", make("i", { style: `width: 220px; background: linear-gradient(90deg, ${stops})` }), label(1)),
    make("span", { class: "key" }, `half way: ${label(0.5)}`), make("span", { class: "key" }, make("i", { style: "background: #80808060" }), "not known"));
}

function startHeat() {
  if (ranks.length === 0) {
    fill("heat", make("p", { class: "note" }, "no step of a rank is known"));
    return;
  }
  const known = data.lateness.map((row) => row[2]).filter((late) => late !== null && late > 0).sort((a, b) => a - b);
  heat.worst = known[known.length - 1] || 1;
  heat.knee = Math.max(1, known[known.length >> 1] || 1, heat.worst / 200);
  heat.canvas = make("canvas", { role: "img", "aria-label": "heat map of lateness, rank by step; the table of ranks of a chosen step has the numbers" });
  fill("heat", heat.canvas, heatLegend());
  heat.canvas.addEventListener("mousemove", heatTip);
  heat.canvas.addEventListener("mouseleave", hideTip);
  heat.canvas.addEventListener("click", (event) => {
    const cell = heatCell(event);
    if (cell) {
      choose(cell);
    }
  });
  drawHeat();
  listeners.push(drawHeat);
}
