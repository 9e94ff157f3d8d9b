/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of scenarios. */
#include "exercise/scenario.h"

const struct scenario scenarios[] = {
#define SCENARIO(name, help) {#name, help, scenario_##name},
#include "exercise/scenario.def"
#undef SCENARIO
};

const int scenarios_count = sizeof scenarios / sizeof scenarios[0];
