/* SPDX-License-Identifier: BSD-2-Clause */
/* Lateness or cost, rank by step. A pixel that stands for several steps shows the largest of them. */
"use strict";

const HEAT_LEFT = 64;
const HEAT_TOP = 4;
const HEAT_BOTTOM = 22;
const HEAT_TALL = 640;
const heat = { canvas: null, image: null, width: 0, row: 0, worst: 1, knee: 1, shows: "late" };
const HEAT_SHOWS = {
  late: { label: "lateness", of: lateOf, word: "late by", empty: "no rank's lateness is known in any step: that takes a host side", hint: "The rank's largest lateness in the step, after the median of the other ranks. Click a cell: choose its step and rank." },
  cost: { label: "cost", of: costOf, word: "cost the step", empty: "no rank's cost is known in any step: that takes a host side", hint: "By how much the step would have been shorter without what the rank added beyond the usual. Click a cell: choose its step and rank." },
};
const heatOf = (step, rank) => HEAT_SHOWS[heat.shows].of(step, rank);

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
  const number = parseInt(colour("alarm").slice(1), 16);
  const alarm = [number >> 16, (number >> 8) & 255, number & 255];
  ranks.forEach((rank, row) => {
    for (let x = 0; x < width; x++) {
      const first = Math.floor((x * steps.length) / width);
      const last = Math.max(first + 1, Math.floor(((x + 1) * steps.length) / width));
      let late = null;
      for (let index = first; index < last; index++) {
        const value = heatOf(steps[index].step, rank);
        if (value !== null && (late === null || value > late)) {
          late = value;
        }
      }
      const state = hang !== null && steps.slice(first, last).some((step) => isHanging(step.step)) ? stateInHang.get(rank) : undefined;
      if (state) {
        image.data.set(state.named ? [...alarm, 255] : state.state === "not in it" ? [...soft, 40] : [...soft, (x + 2 * row) % 4 < 2 ? 220 : 120], (row * width + x) * 4);
        continue;
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
  if (!heat.canvas.isConnected) {
    return;
  }
  heat.row = Math.min(22, Math.max(6, HEAT_TALL / Math.max(1, ranks.length)));
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
  if (isHanging(cell.step)) {
    const state = stateInHang.get(cell.rank);
    showTip(event, [`rank ${cell.rank}: ${state ? `${state.state}, last sign ${duration(state.silent_ns)} before the end of what was seen` : "not in it"}`, rankPlace(cell.rank), stepWords(cell.step)].filter((line) => line).join("\n"));
    return;
  }
  const words = (kind) => `${HEAT_SHOWS[kind].word} ${duration(HEAT_SHOWS[kind].of(cell.step, cell.rank))}`;
  showTip(event, [`rank ${cell.rank}: ${words("late")}, ${words("cost")}`, rankPlace(cell.rank), stepWords(cell.step)].filter((line) => line).join("\n"));
}

function heatLegend() {
  const stops = ["heat0", "heat1", "heat2", "heat3"].map((name) => `var(--${name})`).join(", ");
  const label = (part) => duration(Math.round(heat.knee * Math.expm1(part * Math.log1p(heat.worst / heat.knee))));
  return make("div", { class: "bar" },
    make("span", { class: "key" }, heat.shows === "late" ? "0 or early" : "0", make("i", { style: `width: 220px; background: linear-gradient(90deg, ${stops})` }), `${label(1)} or more`),
    make("span", { class: "key" }, `half way: ${label(0.5)}`), make("span", { class: "key" }, make("i", { style: "background: #80808060" }), "not known"),
    ...(hang === null ? [] : [make("span", { class: "key" }, make("i", { style: "background: var(--alarm)" }), "what hangs waits for it"), make("span", { class: "key" }, make("i", { style: "background: #808080c0" }), "waits in what hangs")]));
}

function heatChoice() {
  const one = (shows) => {
    const input = make("input", { type: "radio", name: "heat", value: shows });
    input.checked = heat.shows === shows;
    input.addEventListener("change", () => { heat.shows = shows; refreshHeat(); });
    return make("label", { class: "key" }, input, HEAT_SHOWS[shows].label);
  };
  fill("heat-choice", ...Object.keys(HEAT_SHOWS).map(one));
}

function makeHeatCanvas() {
  heat.canvas = make("canvas", { role: "img", "aria-label": "heat map, rank by step; the table of ranks of a chosen step has the numbers" });
  heat.canvas.addEventListener("mousemove", heatTip);
  heat.canvas.addEventListener("mouseleave", hideTip);
  heat.canvas.addEventListener("click", (event) => {
    const cell = heatCell(event);
    if (cell) {
      choose(cell);
    }
  });
}

function refreshHeat() {
  const first = data.by_rank.length > 0 ? data.by_rank[0][0] : 0;
  const left = steps.length > 0 && first > steps[0].step ? ` Known of steps from ${first} on; of earlier ones it is left out of the page, to keep it light.` : "";
  document.getElementById("heat-hint").textContent = HEAT_SHOWS[heat.shows].hint + left;
  if (ranks.length === 0) {
    fill("heat", make("p", { class: "note" }, "no step of a rank is known"));
    return;
  }
  const column = heat.shows === "late" ? 2 : 3;
  const training = data.by_rank.filter((row) => !notTraining(stepById.get(row[0])));
  const known = (training.some((row) => row[column] > 0) > 0 ? training : data.by_rank).map((row) => heatOf(row[0], row[1])).filter((value) => value !== null && value > 0).sort((a, b) => a - b);
  if (known.length === 0) {
    const seen = steps.some((step) => ranks.some((rank) => heatOf(step.step, rank) !== null));
    fill("heat", make("p", { class: "note" }, `No map: ${seen ? "of no rank is any above zero." : `${HEAT_SHOWS[heat.shows].empty}.`}`));
    heat.canvas.remove();
    return;
  }
  heat.worst = known[known.length - 1];
  heat.knee = Math.max(1, known[known.length >> 1] || 1, heat.worst / 200);
  heat.image = null;
  fill("heat", heat.canvas, heatLegend());
  drawHeat();
}

function startHeat() {
  makeHeatCanvas();
  heatChoice();
  refreshHeat();
  listeners.push(() => { if (ranks.length > 0) { drawHeat(); } });
}
