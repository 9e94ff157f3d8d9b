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
    this.body = make("div", { class: "scroll" + (options.tall ? " tall" : "") });
    const parts = [...(this.input ? [this.input] : []), ...(options.hide ? [this.hideBox()] : [])];
    fill(id, ...(parts.length > 0 ? [make("div", { class: "bar" }, ...parts)] : []), this.body);
    this.draw();
  }

  /* Other rows in the same table: its words, order and place stay. */
  refresh(rows) {
    this.rows = rows;
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
    const rows = this.options.hide && !this.all && this.words.trim() === "" && this.rows.some((row) => !this.options.hide.of(row)) ? this.rows.filter((row) => !this.options.hide.of(row)) : this.rows;
    const words = this.words.toLowerCase().trim().split(/\s+/).filter((word) => word !== "");
    const rank = /^(?:rank\s*)?(\d+)$/i.exec(this.words.trim());
    return rows.filter((row) => {
      if (rank && this.options.ranks) {
        return this.options.ranks(row).includes(Number(rank[1])) || this.options.numbers(row).includes(Number(rank[1]));
      }
      const text = this.columns.map((column) => column.show(row)).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  /* A box to tick that shows also what options.hide leaves out. */
  hideBox() {
    const input = make("input", { type: "checkbox" });
    this.all = false;
    input.addEventListener("change", () => { this.all = input.checked; this.draw(); });
    return make("label", { class: "key" }, input, this.options.hide.label);
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

const verdictNames = (row) => [row.rank, row.peer_rank].filter((rank) => rankName(rank)).map(rankName).join(" to ") || null;

function verdictTable() {
  return new Table("verdicts", [numberColumn("step", "step"), textColumn("verdict", "class"), { label: "where", value: place, show: place },
    { label: "on", value: verdictNames, show: (row) => plain(verdictNames(row)) },
    { label: "size", value: (row) => row.size_ns, show: (row) => withBound(row.size_ns, row.bound_ns), number: true },
    { label: "confidence", value: (row) => row.confidence, show: (row) => `${Math.round(row.confidence * 100)} %`, number: true },
    { ...textColumn("evidence", "evidence"), long: true }],
  data.steps.verdicts, { filter: "filter: class, rank, words", tall: true, sort: ["size", -1], empty: "no verdict in any step",
    onrow: (row) => choose({ step: row.step ?? hang.number, rank: row.rank }) });
}

function queuePairTable() {
  const device = (row) => `${row.device}/${row.port}`;
  return new Table("queue-pairs", [{ label: "device", value: device, show: device }, textColumn("QPN", "lqpn", hex), textColumn("state", "state"),
    numberColumn("rank", "rank"), { label: "on", value: (row) => rankName(row.rank), show: (row) => plain(rankName(row.rank)) }, numberColumn("peer", "peer_rank"), { label: "peer on", value: (row) => rankName(row.peer_rank), show: (row) => plain(rankName(row.peer_rank)) }, numberColumn("comm", "communicator"), numberColumn("channel", "channel"), textColumn("role", "role"),
    numberColumn("payload", "payload_bytes", bytes), numberColumn("sent again", "retransmitted_frames"), numberColumn("ECN marks", "marked_frames"),
    numberColumn("CNPs got", "got_cnps"), numberColumn("NAKs got", "got_naks"), numberColumn("time-outs", "timeouts"),
    textColumn("peer QPN", "rqpn", hex), textColumn("address", "address"), textColumn("peer address", "remote_address"), numberColumn("pid", "pid"), textColumn("command", "comm")],
  data.queue_pairs.queue_pairs, { filter: "filter: rank 2, 0x000011, mlx5_0, sender", tall: true,
    hide: { label: "also those that carry no data: unused, for flushing, foreign", of: (row) => ["unused", "flush", "foreign"].includes(row.role) }, empty: "no queue pair is known",
    ranks: (row) => [row.rank, row.peer_rank], numbers: (row) => [row.lqpn, row.rqpn, row.pid] });
}

/* The rows of what hangs, with those ranks that never came to it. */
function withMissing(detail) {
  const there = new Set(detail.why.ranks.map((row) => row.rank));
  const bare = Object.fromEntries(["enqueued_ns", "host_ready_ns", "gpu_ready_ns", "first_data_ns", "last_data_ns", "end_ns", "late_ns", "arrival_of"].map((key) => [key, null]));
  return [...detail.why.ranks, ...(detail.timeline.hang_ranks || []).filter((row) => !there.has(row.rank)).map((row) => ({ ...bare, rank: row.rank, gpu_ready_known: true, status: row.state }))];
}

/* The deciding operation, rank by rank, as qpscope why shows it. */
function rankTable(detail) {
  const from = detail.why.operation ? detail.why.operation.start_ns : 0;
  const time = (label, key) => ({ label, value: (row) => row[key], show: (row) => (key === "gpu_ready_ns" && row.gpu_ready_known === false && row[key] !== null ? "≤" : "") + offset(row[key], from), number: true });
  const step = stepById.get(detail.step ?? hang?.number);
  const states = detail.timeline.hang ? [{ label: "in what hangs", value: (row) => stateInHang.get(row.rank)?.state ?? null, show: (row) => plain(stateInHang.get(row.rank)?.state) },
    { label: "silent for", value: (row) => stateInHang.get(row.rank)?.silent_ns ?? null, show: (row) => duration(stateInHang.get(row.rank)?.silent_ns), number: true }] : [];
  return new Table("ranks", [numberColumn("rank", "rank"), ...(placeOfRank.size > 0 ? [{ label: "on", value: (row) => rankName(row.rank), show: (row) => plain(rankName(row.rank)) }] : []), ...states, time("enqueued", "enqueued_ns"), time("host ready", "host_ready_ns"), time("GPU ready", "gpu_ready_ns"),
    time("first data", "first_data_ns"), time("last data", "last_data_ns"), time("end", "end_ns"),
    numberColumn("late by", "late_ns", (late) => withBound(late, step.late_bound_ns)),
    { label: "cost the step", value: (row) => costOf(detail.step, row.rank), show: (row) => duration(costOf(detail.step, row.rank)), number: true }, textColumn("seen by", "arrival_of"), textColumn("status", "status")],
  withMissing(detail), { empty: "no operation decided this step", onrow: (row) => choose({ rank: row.rank }), marked: (row) => blamedRanks(detail.step ?? hang?.number).has(row.rank) });
}

/* The critical path: each part with its share of the step. */
function pathTable(detail) {
  const step = stepById.get(detail.step ?? hang?.number);
  const span = step.end_ns - step.start_ns;
  const length = (row) => row.to_ns - row.from_ns;
  document.getElementById("path-holder").hidden = detail.why.critical_path.length === 0;
  return new Table("path", [numberColumn("part", "place"), { label: "after", value: (row) => row.from_ns, show: (row) => offset(row.from_ns, step.start_ns), number: true },
    { label: "for", value: length, show: (row) => duration(length(row)), number: true },
    { label: "of the step", value: length, show: (row) => percent(length(row) / span), number: true },
    { label: "the step waited for", value: (row) => pathWords(detail, row), show: (row) => pathWords(detail, row) }],
  detail.why.critical_path, { onrow: (row) => { choose({ rank: row.rank }); setView(row.from_ns - step.start_ns, row.to_ns - step.start_ns); } });
}
