/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An mlx5 device through rdma-core (libibverbs and mlx5dv inside; nowhere else). Never ran on a device: what it is
 * given is tested against a stand-in, and what rdma-core and the kernel ask for is read from their code. Invariant: a
 * rule never changes where a packet goes: sent packets keep the domain's default, received ones go on in an empty
 * table.
 */
#include "nic/mlx5/mlx5_device_private.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

#define MEMORIES_MAX 64

/* A counter, or a bulk of them; a rule. Both are rdma-core's own under our names. */
struct mlx5_object;
struct mlx5_rule;

struct verbs_device {
    struct mlx5_device device;
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct mlx5dv_flow_matcher *matchers[MLX5_DIRECTIONS];
    struct mlx5dv_devx_obj *table;
    struct ibv_mr *memories[MEMORIES_MAX];
    unsigned memories_count;
    char name[64];
    unsigned port;
};

static void close_verbs(struct mlx5_device *device)
{
    struct verbs_device *self = (struct verbs_device *)device;

    for (unsigned i = 0; i < MLX5_DIRECTIONS; i++)
        if (self->matchers[i] != NULL)
            mlx5dv_destroy_flow_matcher(self->matchers[i]);
    if (self->table != NULL)
        mlx5dv_devx_obj_destroy(self->table);
    for (unsigned i = 0; i < self->memories_count; i++) {
        void *memory = self->memories[i]->addr;
        ibv_dereg_mr(self->memories[i]);
        free(memory);
    }
    if (self->domain != NULL)
        ibv_dealloc_pd(self->domain);
    if (self->context != NULL)
        ibv_close_device(self->context);
    free(self);
}

static struct mlx5dv_flow_match_parameters *match_parameters(const uint8_t *bytes)
{
    struct mlx5dv_flow_match_parameters *made = calloc(1, sizeof *made + MLX5_MATCH_BYTES);

    if (made == NULL)
        return NULL;
    made->match_sz = MLX5_MATCH_BYTES;
    memcpy(made->match_buf, bytes, MLX5_MATCH_BYTES);
    return made;
}

/* Which tables a rule goes into; another function's are named by the port. */
static bool set_domain(const struct verbs_device *self, enum mlx5_direction direction,
                       struct mlx5dv_flow_matcher_attr *attributes)
{
    attributes->comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE;
    attributes->ft_type = direction == MLX5_SENT ? MLX5DV_FLOW_TABLE_TYPE_RDMA_TX : MLX5DV_FLOW_TABLE_TYPE_RDMA_RX;
    if (self->port == 1)
        return true;
#ifdef HAVE_RDMA_TRANSPORT
    attributes->ft_type =
        direction == MLX5_SENT ? MLX5DV_FLOW_TABLE_TYPE_RDMA_TRANSPORT_TX : MLX5DV_FLOW_TABLE_TYPE_RDMA_TRANSPORT_RX;
    attributes->comp_mask |= MLX5DV_FLOW_MATCHER_MASK_IB_PORT;
    attributes->ib_port = self->port;
    return true;
#else
    return false;
#endif
}

static void complain(const struct verbs_device *self, enum mlx5_direction direction, int error)
{
    const char *what = direction == MLX5_SENT ? "sent" : "received";

    if (self->port == 1)
        log_warning("%s: no rules in the RDMA %s domain (%s): what is %s is not counted; it needs ConnectX-5 or later, "
                    "a kernel from 5.12 on and CAP_NET_RAW",
                    self->name, direction == MLX5_SENT ? "transmit" : "receive", strerror(error), what);
    else
        log_warning(
            "%s/%u: another function's port, and no rules in the RDMA transport domains (%s): what is %s there is "
            "not counted; it needs a DPU that owns the e-switch in switchdev mode, a kernel from 6.15 on, an "
            "rdma-core from 60 on when this was built, and the right to control other functions",
            self->name, self->port, strerror(error), what);
}

static struct mlx5dv_flow_matcher *make_matcher(struct verbs_device *self, enum mlx5_direction direction)
{
    uint8_t mask[MLX5_MATCH_BYTES];

    mlx5_encode_match_mask(mask, direction);
    struct mlx5dv_flow_match_parameters *parameters = match_parameters(mask);
    struct mlx5dv_flow_matcher_attr attributes = {
        .type = IBV_FLOW_ATTR_NORMAL,
        .match_criteria_enable = MLX5_MATCH_MISCELLANEOUS,
        .match_mask = parameters,
    };
    struct mlx5dv_flow_matcher *matcher = NULL;
    errno = EOPNOTSUPP;
    if (parameters != NULL && set_domain(self, direction, &attributes))
        matcher = mlx5dv_create_flow_matcher(self->context, &attributes);
    if (matcher == NULL)
        complain(self, direction, errno);
    free(parameters);
    return matcher;
}

/* The vport of another function's port; false when the device does not say. */
static bool find_vport(const struct verbs_device *self, uint16_t *vport)
{
    struct mlx5dv_port port = {0};

    if (mlx5dv_query_port(self->context, self->port, &port) != 0 || (port.flags & MLX5DV_QUERY_PORT_VPORT) == 0)
        return false;
    *vport = port.vport;
    return true;
}

static void find_abilities(struct mlx5_device *device, struct mlx5_abilities *abilities)
{
    struct verbs_device *self = (struct verbs_device *)device;

    *abilities = (struct mlx5_abilities){.has_memory = true, .bulk_log_max = MLX5_BULK_LOG};
    abilities->domain.is_transport = self->port != 1;
    for (unsigned i = 0; i < MLX5_DIRECTIONS; i++) {
        self->matchers[i] = make_matcher(self, i);
        abilities->counts[i] = self->matchers[i] != NULL;
    }
    if (self->port != 1 && abilities->counts[MLX5_RECEIVED] && !find_vport(self, &abilities->domain.vport)) {
        log_warning("%s/%u: the device does not say which function's port it is: what is received is not counted",
                    self->name, self->port);
        abilities->counts[MLX5_RECEIVED] = false;
    }
#ifdef HAVE_COUNTER_OFFSETS
    abilities->has_offsets = true;
#else
    log_info("%s: built with an rdma-core whose rules name no counter within a bulk: each counter is read with a "
             "command of its own",
             self->name);
#endif
}

/* What rdma-core says in errno, the device in its answer's status. */
static int error_of(const uint8_t *answer)
{
    int error = errno;

    if (mlx5_get(answer, MLX5_ANSWER_STATUS) != 0)
        log_debug("mlx5: status 0x%llx, syndrome 0x%llx", (unsigned long long)mlx5_get(answer, MLX5_ANSWER_STATUS),
                  (unsigned long long)mlx5_get(answer, MLX5_ANSWER_SYNDROME));
    return error == 0 ? -EIO : -error;
}

static int make_verbs(struct mlx5_device *device, const uint8_t *command, uint8_t *answer, struct mlx5_object **object)
{
    struct verbs_device *self = (struct verbs_device *)device;

    errno = 0;
    memset(answer, 0, MLX5_ANSWER_BYTES);
    *object = (struct mlx5_object *)mlx5dv_devx_obj_create(self->context, command, MLX5_COMMAND_BYTES, answer,
                                                           MLX5_ANSWER_BYTES);
    return *object == NULL ? error_of(answer) : 0;
}

static void remove_verbs(struct mlx5_device *device, struct mlx5_object *object)
{
    (void)device;
    mlx5dv_devx_obj_destroy((struct mlx5dv_devx_obj *)object);
}

static int table_verbs(struct mlx5_device *device, const uint8_t *command)
{
    struct verbs_device *self = (struct verbs_device *)device;
    uint8_t answer[MLX5_ANSWER_BYTES] = {0};

    errno = 0;
    self->table = mlx5dv_devx_obj_create(self->context, command, MLX5_TABLE_COMMAND_BYTES, answer, MLX5_ANSWER_BYTES);
    return self->table == NULL ? error_of(answer) : 0;
}

static int query_verbs(struct mlx5_device *device, struct mlx5_object *object, const uint8_t *command, uint8_t *answer,
                       size_t answer_bytes)
{
    (void)device;
    errno = 0;
    return mlx5dv_devx_obj_query((struct mlx5dv_devx_obj *)object, command, MLX5_COMMAND_BYTES, answer, answer_bytes) ==
                   0
               ? 0
               : error_of(answer);
}

static const uint8_t *memory_verbs(struct mlx5_device *device, size_t bytes, uint32_t *mkey, uint64_t *address)
{
    struct verbs_device *self = (struct verbs_device *)device;
    void *memory = NULL;

    if (self->memories_count == MEMORIES_MAX || self->domain == NULL || posix_memalign(&memory, 4096, bytes) != 0)
        return NULL;
    memset(memory, 0, bytes);
    struct ibv_mr *registered = ibv_reg_mr(self->domain, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (registered == NULL) {
        free(memory);
        return NULL;
    }
    self->memories[self->memories_count++] = registered;
    *mkey = registered->lkey;
    *address = (uint64_t)(uintptr_t)memory;
    return memory;
}

static struct mlx5dv_flow_action_attr counter_action(struct mlx5_object *object, uint32_t offset)
{
    struct mlx5dv_devx_obj *counter = (struct mlx5dv_devx_obj *)object;
#ifdef HAVE_COUNTER_OFFSETS
    if (offset != 0)
        return (struct mlx5dv_flow_action_attr){.type = MLX5DV_FLOW_ACTION_COUNTERS_DEVX_WITH_OFFSET,
                                                .bulk_obj = {.obj = counter, .offset = offset}};
#else
    (void)offset;
#endif
    return (struct mlx5dv_flow_action_attr){.type = MLX5DV_FLOW_ACTION_COUNTERS_DEVX, .obj = counter};
}

static int count_verbs(struct mlx5_device *device, enum mlx5_direction direction, const uint8_t *match,
                       struct mlx5_object *object, uint32_t offset, struct mlx5_rule **rule)
{
    struct verbs_device *self = (struct verbs_device *)device;
    struct mlx5dv_flow_match_parameters *parameters = match_parameters(match);
    struct mlx5dv_flow_action_attr actions[] = {
        counter_action(object, offset),
        {.type = MLX5DV_FLOW_ACTION_DEST_DEVX, .obj = self->table},
    };

    if (parameters == NULL)
        return -ENOMEM;
    errno = 0;
    *rule = (struct mlx5_rule *)mlx5dv_create_flow(self->matchers[direction], parameters,
                                                   direction == MLX5_SENT ? 1 : 2, actions);
    int error = *rule == NULL ? (errno == 0 ? -EIO : -errno) : 0;
    free(parameters);
    return error;
}

static void uncount_verbs(struct mlx5_device *device, struct mlx5_rule *rule)
{
    (void)device;
    ibv_destroy_flow((struct ibv_flow *)rule);
}

static const struct mlx5_device_operations operations = {
    .close = close_verbs,
    .abilities = find_abilities,
    .make = make_verbs,
    .remove = remove_verbs,
    .make_table = table_verbs,
    .query = query_verbs,
    .memory = memory_verbs,
    .count = count_verbs,
    .uncount = uncount_verbs,
};

static int open_context(struct verbs_device *self)
{
    struct mlx5dv_context_attr attributes = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    int count = 0, error = -ENODEV;
    struct ibv_device **list = ibv_get_device_list(&count);

    for (int i = 0; list != NULL && i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), self->name) != 0)
            continue;
        error = mlx5dv_is_supported(list[i]) ? 0 : -EOPNOTSUPP;
        if (error == 0)
            self->context = mlx5dv_open_device(list[i], &attributes);
        if (error == 0 && self->context == NULL)
            error = errno == 0 ? -EIO : -errno;
    }
    if (list != NULL)
        ibv_free_device_list(list);
    return error;
}

static int open_parts(struct verbs_device *self)
{
    int error = open_context(self);

    if (error == -ENODEV)
        return log_error_return(error, "%s: rdma-core does not list it: is its provider (libmlx5) installed?",
                                self->name);
    if (error == -EOPNOTSUPP)
        return log_error_return(error, "%s: no mlx5 device; --source psn reads other devices", self->name);
    if (error != 0)
        return log_error_return(error,
                                "%s: no DevX context (%s): needs CAP_NET_RAW, and a kernel and firmware with DevX",
                                self->name, strerror(-error));
    self->domain = ibv_alloc_pd(self->context);
    return 0;
}

int mlx5_device_open(struct mlx5_device **device, const char *name, unsigned port)
{
    struct verbs_device *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    made->device.operations = &operations;
    made->port = port;
    snprintf(made->name, sizeof made->name, "%s", name);
    int error = open_parts(made);
    if (error != 0)
        close_verbs(&made->device);
    else
        *device = &made->device;
    return error;
}
