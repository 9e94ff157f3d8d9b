/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables that sort by a click on a heading and filter by words. */
"use strict";

const ROWS_SHOWN = 200;

function compareValues(left, right) {
  if (left === null || right === null) {
    return (left === null) - (right === null);
  }
  return typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right), "en", { numeric: true });
}

/* columns: {label, value(row), show(row), number, long}. options: filter, sort: [column, sign], onrow(row), marked(row). */
class Table {
  constructor(id, columns, rows, options = {}) {
    Object.assign(this, { id, columns, rows, options, sort: options.sort || null, shown: ROWS_SHOWN, words: "" });
    if (options.filter) {
      this.input = make("input", { type: "search", placeholder: options.filter, "aria-label": "filter" });
      this.input.addEventListener("input", () => { this.words = this.input.value; this.draw(); });
    }
    this.body = make("div", { class: "scroll" });
    fill(id, ...(this.input ? [make("div", { class: "bar" }, this.input)] : []), this.body);
    this.draw();
  }

  filter(words) {
    this.words = words;
    if (this.input) {
      this.input.value = words;
    }
    this.draw();
  }

  /* Every word has to stand in a cell's beginning or, when long, anywhere; "rank 2" also as ranks are shown. */
  fitting() {
    const words = this.words.toLowerCase().trim().split(/\s+/).filter((word) => word !== "");
    const rank = /^(?:rank\s*)?(\d+)$/i.exec(this.words.trim());
    return this.rows.filter((row) => {
      if (rank && this.options.ranks) {
        return this.options.ranks(row).includes(Number(rank[1])) || this.options.numbers(row).includes(Number(rank[1]));
      }
      const text = this.columns.map((column) => column.show(row)).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  heading(column) {
    const sign = this.sort && this.sort[0] === column.label ? this.sort[1] : 0;
    const button = make("button", { type: "button", onclick: () => { this.sort = [column.label, sign === 1 ? -1 : 1]; this.draw(); } },
      column.label + (sign === 1 ? " ▲" : sign === -1 ? " ▼" : ""));
    return make("th", { class: column.number ? "number" : null, "aria-sort": sign === 1 ? "ascending" : sign === -1 ? "descending" : null }, button);
  }

  line(row) {
    const { onrow, marked } = this.options;
    const classes = [onrow ? "link" : "", marked && marked(row) ? "blamed" : ""].join(" ").trim();
    const line = make("tr", { class: classes || null, tabindex: onrow ? 0 : null, onclick: onrow ? () => onrow(row) : () => {} },
      ...this.columns.map((column) => make("td", { class: column.long ? "long" : column.number ? "number" : null }, column.show(row))));
    if (onrow) {
      line.addEventListener("keydown", (event) => { if (event.key === "Enter") { onrow(row); } });
    }
    return line;
  }

  draw() {
    const fitting = this.fitting();
    if (this.sort) {
      const column = this.columns.find((one) => one.label === this.sort[0]);
      fitting.sort((a, b) => { const [x, y] = [column.value(a), column.value(b)]; return x === null || y === null ? compareValues(x, y) : this.sort[1] * compareValues(x, y); });
    }
    const left = fitting.length - this.shown;
    this.body.replaceChildren(
      fitting.length === 0 ? make("p", { class: "note" }, this.rows.length === 0 ? this.options.empty || "none" : "none fits") :
        make("table", {}, make("thead", {}, make("tr", {}, ...this.columns.map((column) => this.heading(column)))),
          make("tbody", {}, ...fitting.slice(0, this.shown).map((row) => this.line(row)))),
      ...(left > 0 ? [make("p", { class: "note" }, `${left} more `, make("button", { type: "button", onclick: () => { this.shown += 10 * ROWS_SHOWN; this.draw(); } }, "show more"))] : []));
  }
}

const textColumn = (label, key, show = plain) => ({ label, value: (row) => row[key], show: (row) => show(row[key]) });
const numberColumn = (label, key, show = plain) => ({ ...textColumn(label, key, show), number: true });

function culpritTable() {
  return new Table("culprits", [textColumn("verdict", "class"), { label: "where", value: place, show: place },
    { label: "steps", value: (row) => row.steps, show: (row) => `${row.steps} of ${row.steps_total}`, number: true },
    numberColumn("median", "median_ns", duration), numberColumn("largest", "largest_ns", duration)],
  data.why.summary || [], { empty: "No verdict in any step: nothing was late enough to be blamed.", onrow: showCulprit });
}

/* The step in which it was worst. */
function showCulprit(culprit) {
  const own = data.steps.verdicts.filter((one) => one.class === culprit.class && one.rank === culprit.rank && one.peer_rank === culprit.peer_rank && one.step !== null);
  own.sort((a, b) => b.size_ns - a.size_ns);
  if (own.length > 0) {
    choose({ step: own[0].step, rank: culprit.rank });
  }
}

function verdictTable() {
  return new Table("verdicts", [numberColumn("step", "step"), textColumn("verdict", "class"), { label: "where", value: place, show: place },
    { label: "size", value: (row) => row.size_ns, show: (row) => withBound(row.size_ns, row.bound_ns), number: true },
    { label: "confidence", value: (row) => row.confidence, show: (row) => `${Math.round(row.confidence * 100)} %`, number: true },
    { ...textColumn("evidence", "evidence"), long: true }],
  data.steps.verdicts, { filter: "filter: class, rank, words", sort: ["size", -1], empty: "no verdict in any step",
    onrow: (row) => choose(row.step === null ? {} : { step: row.step, rank: row.rank }) });
}

function queuePairTable() {
  const device = (row) => `${row.device}/${row.port}`;
  return new Table("queue-pairs", [{ label: "device", value: device, show: device }, textColumn("QPN", "lqpn", hex), textColumn("state", "state"),
    numberColumn("rank", "rank"), numberColumn("peer", "peer_rank"), numberColumn("comm", "communicator"), numberColumn("channel", "channel"), textColumn("role", "role"),
    numberColumn("payload", "payload_bytes", bytes), numberColumn("sent again", "retransmitted_frames"), numberColumn("ECN marks", "marked_frames"),
    numberColumn("CNPs got", "got_cnps"), numberColumn("NAKs got", "got_naks"), numberColumn("time-outs", "timeouts"),
    textColumn("peer QPN", "rqpn", hex), textColumn("address", "address"), textColumn("peer address", "remote_address"), numberColumn("pid", "pid"), textColumn("command", "comm")],
  data.queue_pairs.queue_pairs, { filter: "filter: rank 2, 0x000011, mlx5_0, sender", empty: "no queue pair is known",
    ranks: (row) => [row.rank, row.peer_rank], numbers: (row) => [row.lqpn, row.rqpn, row.pid] });
}

/* The deciding operation, rank by rank, as qpscope why shows it. */
function rankTable(detail) {
  const from = detail.why.operation ? detail.why.operation.start_ns : 0;
  const time = (label, key) => ({ label, value: (row) => row[key], show: (row) => (key === "gpu_ready_ns" && row.gpu_ready_known === false && row[key] !== null ? "≤" : "") + offset(row[key], from), number: true });
  const step = stepById.get(detail.step);
  return new Table("ranks", [numberColumn("rank", "rank"), time("enqueued", "enqueued_ns"), time("host ready", "host_ready_ns"), time("GPU ready", "gpu_ready_ns"),
    time("first data", "first_data_ns"), time("last data", "last_data_ns"), time("end", "end_ns"),
    numberColumn("late by", "late_ns", (late) => withBound(late, step.late_bound_ns)), textColumn("seen by", "arrival_of"), textColumn("status", "status")],
  detail.why.ranks, { empty: "no operation decided this step", onrow: (row) => choose({ rank: row.rank }), marked: (row) => blamedRanks(detail.step).has(row.rank) });
}
