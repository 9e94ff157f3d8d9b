/* SPDX-License-Identifier: BSD-2-Clause */
/* What is followed when somebody asks for it over the control link. */
#include "host/agent/agent_private.h"

#include <errno.h>

#include "wire/log.h"

static int set_work(void *context, pid_t pid, int descriptor, const struct provider_place *place)
{
    const struct agent *agent = context;
    return probe_follow_work(agent->probe, pid, descriptor, place);
}

static int begin_work(struct agent *agent, const struct record_follow *request)
{
    tracker_each_queue_pair(agent->tracker, work_learn, agent->work);
    const int error = work_set(agent->work, (pid_t)request->pid);
    if (error != 0)
        probe_end_work(agent->probe);
    return error;
}

static enum detail_kind detail_of(enum follow_what what)
{
    return what == FOLLOW_SUBMISSIONS ? DETAIL_SUBMISSIONS : DETAIL_DELAYS;
}

static int begin_following(void *context, enum follow_what what, const struct record_follow *request)
{
    const struct agent *agent = context;
    if (what == FOLLOW_WORK)
        return begin_work(context, request);
    if (what == FOLLOW_SUBMISSIONS)
        probe_set_duty(agent->probe, DUTY_DETAIL, true);
    if (what == FOLLOW_SUBMISSIONS || what == FOLLOW_DELAYS)
        return 0;
    return log_error_return(-EOPNOTSUPP, "asked to follow something that this version does not know (%#x)", what);
}

/* What keeps threads from running is there, or is not. */
static int is_settling(void *context, enum follow_what what)
{
    const struct agent *agent = context;
    if (what == FOLLOW_WORK)
        return probe_work_is_being_set(agent->probe);
    return what == FOLLOW_SUBMISSIONS && probe_is_being_set(agent->probe, DUTY_DETAIL);
}

static void start_following(void *context, enum follow_what what, const struct record_follow *request)
{
    const struct agent *agent = context;
    if (what == FOLLOW_WORK)
        probe_allow_work(agent->probe, (int64_t)request->hits_max);
    else
        probe_allow_detail(agent->probe, detail_of(what), (pid_t)request->pid, (int64_t)request->hits_max);
}

static void end_following(void *context, enum follow_what what)
{
    const struct agent *agent = context;
    if (what == FOLLOW_WORK)
        probe_end_work(agent->probe);
    else
        probe_allow_detail(agent->probe, detail_of(what), 0, 0);
    if (what == FOLLOW_SUBMISSIONS)
        probe_set_duty(agent->probe, DUTY_DETAIL, false);
}

static int64_t hits_left(void *context, enum follow_what what)
{
    const struct agent *agent = context;
    return what == FOLLOW_WORK ? probe_work_left(agent->probe) : probe_detail_left(agent->probe, detail_of(what));
}

static uint64_t read_clock(void *context)
{
    const struct agent *agent = context;
    return publisher_now_ns(agent->publisher);
}

/* What the probes still hold belongs to it. */
static void publish_followed(void *context, const struct record_followed *record)
{
    struct agent *agent = context;
    struct record_followed copy = *record;
    probe_read(agent->probe);
    publisher_add(agent->publisher, RECORD_FOLLOWED, &copy);
}

static void take_request(void *context, const struct record_follow *request)
{
    struct agent *agent = context;
    follow_request(agent->follow, request);
}

void agent_read_requests(struct agent *agent)
{
    counter_add(agent->counters, COUNT_REQUESTS_STRANGE, control_read(agent->control, take_request, agent));
}

int agent_open_requests(struct agent *agent, const struct agent_options *options)
{
    const struct work_options work_options = {set_work, agent};
    const struct follow_options follow_options = {
        begin_following, is_settling, start_following, end_following, hits_left, read_clock, publish_followed, agent,
    };
    int error = work_create(&agent->work, &work_options);
    if (error == 0)
        error = follow_create(&agent->follow, &follow_options);
    if (error == 0 && options->control != NULL)
        error = control_open(&agent->control, options->control, options->emitter.key_file);
    return error;
}
