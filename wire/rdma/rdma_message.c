/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Netlink framing (RFC 3549) and the attributes of rdma_netlink.h. Invariant: an attribute is looked at only as far as
 * its own length and its parent's reach.
 */
#include "wire/rdma/rdma_message.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#include "wire/cursor.h"

#define ERRNO_MAX            4095
#define NETLINK_ALIGN(bytes) (((bytes) + 3u) & ~3u)

struct attribute {
    uint16_t type;
    struct cursor value;
    const uint8_t *bytes;
    size_t length_bytes;
};

/* The next attribute of a list; false at its end or where it is damaged (`list` has failed then). */
static bool take_attribute(struct cursor *list, struct attribute *attribute)
{
    if (cursor_left(list) < sizeof(struct nlattr))
        return false;
    size_t length = cursor_le16(list);
    attribute->type = cursor_le16(list) & NLA_TYPE_MASK;
    if (length < sizeof(struct nlattr)) {
        list->failed = true;
        return false;
    }
    attribute->length_bytes = length - sizeof(struct nlattr);
    attribute->bytes = cursor_take(list, attribute->length_bytes);
    if (attribute->bytes == NULL)
        return false;
    cursor_init(&attribute->value, attribute->bytes, attribute->length_bytes);
    size_t padding = NETLINK_ALIGN(length) - length;
    if (padding <= cursor_left(list))
        cursor_skip(list, padding);
    return true;
}

/* One attribute of a queue pair's entry. */
static void take_field(struct rdma_queue_pair *pair, struct attribute *attribute)
{
    switch (attribute->type) {
    case RDMA_NLDEV_ATTR_RES_LQPN:
        pair->qpn = cursor_le32(&attribute->value);
        break;
    case RDMA_NLDEV_ATTR_RES_RQPN:
        pair->remote_qpn = cursor_le32(&attribute->value);
        break;
    case RDMA_NLDEV_ATTR_PORT_INDEX:
        pair->port = cursor_le32(&attribute->value);
        break;
    case RDMA_NLDEV_ATTR_RES_PID:
        pair->pid = cursor_le32(&attribute->value);
        break;
    case RDMA_NLDEV_ATTR_RES_TYPE:
        pair->type = cursor_u8(&attribute->value);
        break;
    case RDMA_NLDEV_ATTR_RES_STATE:
        pair->state = cursor_u8(&attribute->value);
        break;
    case RDMA_NLDEV_ATTR_RES_SQ_PSN:
        pair->has_send_psn = attribute->length_bytes >= 4;
        pair->send_psn = cursor_le32(&attribute->value) & 0xffffff;
        break;
    case RDMA_NLDEV_ATTR_RES_RQ_PSN:
        pair->has_receive_psn = attribute->length_bytes >= 4;
        pair->receive_psn = cursor_le32(&attribute->value) & 0xffffff;
        break;
    default:
        break;
    }
}

static void take_entry(struct cursor *list, uint32_t device, rdma_message_visit visit, void *context)
{
    struct rdma_queue_pair pair = {.device = device, .type = RDMA_UNKNOWN8, .state = RDMA_UNKNOWN8};
    struct attribute attribute;

    while (take_attribute(list, &attribute))
        take_field(&pair, &attribute);
    if (pair.qpn != 0 && !list->failed)
        visit(context, &pair);
}

static void take_table(struct cursor *list, uint32_t device, rdma_message_visit visit, void *context)
{
    struct attribute attribute;

    while (take_attribute(list, &attribute))
        if (attribute.type == RDMA_NLDEV_ATTR_RES_QP_ENTRY)
            take_entry(&attribute.value, device, visit, context);
}

static bool take_payload(struct cursor *payload, struct rdma_message *message, rdma_message_visit visit, void *context)
{
    struct attribute attribute;

    while (take_attribute(payload, &attribute)) {
        switch (attribute.type) {
        case RDMA_NLDEV_ATTR_DEV_INDEX:
            message->device = cursor_le32(&attribute.value);
            break;
        case RDMA_NLDEV_ATTR_DEV_NAME:
            memcpy(message->device_name, attribute.bytes,
                   attribute.length_bytes < sizeof message->device_name ? attribute.length_bytes
                                                                        : sizeof message->device_name - 1);
            break;
        case RDMA_NLDEV_ATTR_RES_RAW:
            message->raw = attribute.bytes;
            message->raw_bytes = attribute.length_bytes;
            break;
        case RDMA_NLDEV_ATTR_RES_QP:
            if (visit != NULL)
                take_table(&attribute.value, message->device, visit, context);
            break;
        default:
            break;
        }
    }
    return !payload->failed;
}

/* A negative errno as the kernel writes it; what none can be is a fault of the answer. */
static int read_error(struct cursor *payload)
{
    int32_t error = cursor_left(payload) >= 4 ? (int32_t)cursor_le32(payload) : 0;

    return error <= 0 && error >= -ERRNO_MAX ? -error : EBADMSG;
}

int rdma_message_read(const uint8_t *bytes, size_t length_bytes, struct rdma_message *message, rdma_message_visit visit,
                      void *context)
{
    struct cursor cursor;

    memset(message, 0, sizeof *message);
    if (length_bytes == 0)
        return 0;
    cursor_init(&cursor, bytes, length_bytes);
    uint32_t length = cursor_le32(&cursor);
    message->type = cursor_le16(&cursor);
    cursor_skip(&cursor, sizeof(struct nlmsghdr) - 6);
    if (cursor.failed || length < sizeof(struct nlmsghdr) || length > length_bytes)
        return -EBADMSG;
    cursor_init(&cursor, bytes + sizeof(struct nlmsghdr), length - sizeof(struct nlmsghdr));
    message->is_last = message->type == NLMSG_DONE;
    message->is_error = message->type == NLMSG_ERROR;
    if (message->is_error || message->is_last)
        message->error = read_error(&cursor);
    else if (message->type >= NLMSG_MIN_TYPE && !take_payload(&cursor, message, visit, context))
        return -EBADMSG;
    size_t taken = NETLINK_ALIGN(length);
    return (int)(taken < length_bytes ? taken : length_bytes);
}
