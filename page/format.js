/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as qpscope prints them, and elements. */
"use strict";

function scaled(value, unit) {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0) + " " + unit;
}

function withUnit(value, units, factor, limit) {
  let unit = 0;
  while (Math.abs(value) >= limit && unit < units.length - 1) {
    value /= factor;
    unit++;
  }
  return unit === 0 ? `${value} ${units[0]}` : scaled(value, units[unit]);
}

const NOT_KNOWN = "-";
const duration = (ns) => (ns === null || ns === undefined ? NOT_KNOWN : withUnit(ns, ["ns", "us", "ms", "s"], 1000, 999.5));
const bytes = (count) => (count === null || count === undefined ? NOT_KNOWN : withUnit(count, ["B", "KiB", "MiB", "GiB", "TiB"], 1024, 1023.5));
const bitRate = (bytesPerSecond) => withUnit(bytesPerSecond * 8, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], 1000, 999.5);
const withBound = (ns, bound) => (bound === null || bound === undefined || ns === null ? duration(ns) : `${duration(ns)} ±${duration(bound)}`);
const percent = (part) => (part > 0 && part < 0.0005 ? "< 0.1 %" : `${(part * 100).toFixed(part < 0.0995 ? 1 : 0)} %`);
const hex = (number) => (number === null ? NOT_KNOWN : "0x" + number.toString(16).padStart(6, "0"));
const plain = (value) => (value === null || value === undefined ? NOT_KNOWN : String(value));

/* Nanoseconds after a step's begin, to the microsecond. */
const offset = (ns, from) => (ns === null || ns === undefined ? NOT_KNOWN : ((ns - from) / 1e6).toFixed(3) + " ms");

function place(verdict) {
  if (verdict.candidates) {
    return `one of ranks ${verdict.candidates}`;
  }
  if (verdict.rank === null) {
    return /^(hang|late: cause not visible)$/.test(verdict.class) ? "nobody alone" : "all ranks";
  }
  const device = verdict.device ? ` (${verdict.device})` : "";
  return (verdict.peer_rank === null ? `rank ${verdict.rank}` : `link rank ${verdict.rank} to rank ${verdict.peer_rank}`) + device;
}

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") {
      element.addEventListener("click", value);
    } else if (value !== null) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

function fill(id, ...children) {
  const element = document.getElementById(id);
  element.replaceChildren(...children);
  return element;
}

/* What a subcommand says to people: paragraphs. */
function paragraphs(said) {
  return said.map((part) => {
    const verdict = part.indent === 0 && / ±.*confidence \d+ %/.test(part.text);
    return make("p", { class: "said" + (part.indent ? " indent" : verdict ? " verdict" : "") }, part.text);
  });
}

/* Ink that is read on a colour: dark on what is light. */
function inkOn(name) {
  const number = parseInt(colour(name).slice(1), 16);
  return (number >> 16) * 0.299 + ((number >> 8) & 255) * 0.587 + (number & 255) * 0.114 > 140 ? "#14171b" : "#ffffff";
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/* A canvas of `width` by `height` CSS pixels, sharp on dense screens. */
function sized(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  return context;
}
