/* SPDX-License-Identifier: BSD-2-Clause */
/* The one tooltip. */
"use strict";

function showTip(event, text) {
  const tip = document.getElementById("tip");
  tip.textContent = text;
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 14 + box.width > window.innerWidth ? event.clientX - box.width - 14 : event.clientX + 14;
  const top = event.clientY + 16 + box.height > window.innerHeight ? event.clientY - box.height - 10 : event.clientY + 16;
  tip.style.left = Math.max(0, left) + "px";
  tip.style.top = Math.max(0, top) + "px";
}

function hideTip() {
  document.getElementById("tip").style.display = "none";
}
