/* SPDX-License-Identifier: BSD-2-Clause */
/* The live page: the correlator says that its store changed, and what is shown is asked for anew. In a report nothing of it happens. */
"use strict";

const HANG_EVERY_MS = 5000; /* what hangs only goes on */
const live = { hang_asked: 0, waiting: false, missed: false, took_ms: 0, heard: 0, silent: false };

const follows = () => data.live && document.getElementById("follow").checked;

function showLive() {
  const badge = document.getElementById("live");
  const seconds = Math.round((Date.now() - live.heard) / 1000);
  badge.textContent = live.silent ? "the correlator does not answer" : seconds < 2 ? "live" : `live · changed ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`} ago`;
  badge.classList.toggle("alarm", live.silent);
}

/* Details of steps of which nothing changed. */
function keptDetails(fresh) {
  const now = new Map(fresh.steps.steps.map((step) => [step.step, JSON.stringify(step)]));
  return [...detailById.values()].filter((detail) => detail !== hangDetail && now.get(detail.step) === JSON.stringify(stepById.get(detail.step)));
}

/* One request at a time, and as long a rest after it as it took, so that a large job's page leaves its browser idle. */
async function fetchOverview() {
  if (live.waiting) {
    live.missed = true;
    return;
  }
  live.waiting = true;
  live.missed = false;
  const begun = performance.now();
  try {
    const answer = await fetch("api/v1/overview");
    if (answer.ok) {
      const fresh = await answer.json();
      fresh.details = keptDetails(fresh);
      live.heard = Date.now();
      refresh(fresh);
    }
    live.silent = !answer.ok;
  } catch {
    live.silent = true;
  }
  showLive();
  live.took_ms = performance.now() - begun;
  setTimeout(() => { live.waiting = false; if (live.missed) { fetchOverview(); } }, live.took_ms);
}

/* A step's time line, of a live page only; what it was when it was asked for, which its revision says. */
async function fetchDetail(step) {
  if (!data.live) {
    return;
  }
  try {
    const answer = await fetch(isHanging(step) ? "api/v1/hang" : `api/v1/steps/${step}`);
    if (answer.ok) {
      const detail = await answer.json();
      hangDetail = isHanging(step) ? detail : hangDetail;
      detailById.set(step, detail);
      if (chosen.step === step) {
        showDetail(detail);
      }
    }
  } catch {
    live.silent = true;
    showLive();
  }
}

function renewHang() {
  if (Date.now() - live.hang_asked > HANG_EVERY_MS) {
    live.hang_asked = Date.now();
    fetchDetail(hang.number);
  }
}

function startLive() {
  if (!data.live) {
    return;
  }
  ["live", "follow-label"].forEach((id) => { document.getElementById(id).hidden = false; });
  live.heard = Date.now();
  const events = new EventSource("api/v1/events");
  events.addEventListener("message", (event) => {
    if (Number(event.data) !== data.revision) {
      fetchOverview();
    }
  });
  events.addEventListener("error", () => { live.silent = true; showLive(); });
  events.addEventListener("open", () => { live.silent = false; showLive(); });
  setInterval(showLive, 1000);
  showLive();
}
