/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: every pin here is of a flow that was described. */
#include "correlator/detail/pin.h"

static int32_t find_flow(const struct naming *naming, size_t stream, uint32_t number)
{
    for (size_t i = 0; i < naming->flows.count; i++)
        if (naming->flows.items[i].stream == stream && naming->flows.items[i].record.flow == number)
            return (int32_t)i;
    return -1;
}

void pin_find(pin_list *pins, const struct naming *naming, const struct intake *intake, const struct timeline *timeline)
{
    struct intake_walk walk = {.intake = intake, .skips_runs = true};
    union record record;

    while (intake_next(&walk, &record)) {
        int32_t flow = record.header.kind == RECORD_PIN ? find_flow(naming, walk.stream, record.header.source) : -1;
        if (flow < 0)
            continue;
        struct pin *pin = array_add(pins);
        pin->stream = walk.stream;
        pin->flow = flow;
        pin->from_ns = timeline_map(timeline, walk.stream, record.pin.from_ns).ns;
        pin->to_ns = timeline_map(timeline, walk.stream, record.pin.to_ns).ns;
        pin->record = record.pin;
    }
}

const char *pin_cause_name(uint32_t cause)
{
    switch (cause) {
    case PIN_STALLED_WITHIN:
        return "stalled within a message";
    case PIN_STALLED_BETWEEN:
        return "stalled between messages";
    case PIN_SLOWED:
        return "rate changed";
    default:
        return "unknown";
    }
}
