/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be exercised, by name. Each scenario is run by all ranks at the same time, each in a process of its own. */
#pragma once

#include "exercise/actor.h"

typedef void scenario_fn(struct actor *actor);

struct scenario {
    const char *name, *help;
    scenario_fn *run;
};

extern const struct scenario scenarios[];
extern const int scenarios_count;

#define SCENARIO(name, help) scenario_fn scenario_##name;
#include "exercise/scenario.def"
#undef SCENARIO
