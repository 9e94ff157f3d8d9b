/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables' names. */
#include "tests/simulation/setting.h"

static const struct {
    const char *text, *class;
    enum fault_place place;
} faults[] = {
#define FAULT(name, text, class, place, help) {text, class, PLACE_##place},
#include "tests/simulation/fault.def"
#undef FAULT
};

static const char *const shapes[] = {
#define SHAPE(name, text, make, help) text,
#include "tests/simulation/shape.def"
#undef SHAPE
};

static const uint32_t versions[] = {
#define NCCL(text, version) version,
#include "tests/simulation/nccl.def"
#undef NCCL
};

uint32_t setting_version(const struct setting *setting)
{
    return versions[setting->nccl];
}

bool setting_shares(const struct setting *setting)
{
    return setting_version(setting) >= 22000;
}

const char *setting_fault_name(int fault)
{
    return faults[fault].text;
}

const char *setting_fault_class(int fault)
{
    return faults[fault].class;
}

enum fault_place setting_fault_place(int fault)
{
    return faults[fault].place;
}

const char *setting_shape_name(int shape)
{
    return shapes[shape];
}

bool setting_faulty(const struct setting *setting, uint64_t step)
{
    if (setting->fault == FAULT_GPU_ONCE)
        return step == setting->fault_first_step;
    return setting->fault != FAULT_NONE && step >= setting->fault_first_step && step <= setting->fault_last_step;
}
