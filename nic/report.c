/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows by the table in column.def: one printer for JSON and one for text. Invariant: a row's columns are its key's and
 * then its own, in the order of column.def; text that came from outside is escaped.
 */
#include "nic/report.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

enum table { TABLE_KEY = 1, TABLE_FLOW, TABLE_TOTAL, TABLE_MESSAGE, TABLE_WINDOW };
enum type {
    TYPE_UNSIGNED8,
    TYPE_UNSIGNED16,
    TYPE_UNSIGNED32,
    TYPE_UNSIGNED64,
    TYPE_QPN,
    TYPE_ADDRESS,
    TYPE_VANTAGE,
    TYPE_ROLE,
    TYPE_FLAGS,
    TYPE_TUNNEL, /* of a whole record_flow */
};

struct column {
    enum table table;
    const char *name;
    enum type type;
    size_t offset;
    int width;
};

static const struct column columns[] = {
#define COLUMN(table, name, type, record, field, width)                                                                \
    {TABLE_##table, name, TYPE_##type, offsetof(struct record, field), width},
#include "nic/column.def"
#undef COLUMN
};
#define COLUMNS_COUNT (sizeof columns / sizeof columns[0])

static const struct {
    uint16_t flag;
    const char *name;
} flags[] = {
    {MESSAGE_IMMEDIATE, "immediate"}, {MESSAGE_INCOMPLETE, "incomplete"}, {MESSAGE_RETRANSMITTED, "retransmitted"},
    {MESSAGE_MERGED, "merged"},       {MESSAGE_PLACED, "placed"},
};

static uint64_t read_number(const struct column *column, const uint8_t *at)
{
    uint64_t number = 0;
    static const uint8_t bytes[] = {
        [TYPE_UNSIGNED8] = 1, [TYPE_UNSIGNED16] = 2, [TYPE_UNSIGNED32] = 4, [TYPE_UNSIGNED64] = 8,
        [TYPE_QPN] = 4,       [TYPE_VANTAGE] = 1,    [TYPE_ROLE] = 1,       [TYPE_FLAGS] = 2};

    memcpy(&number, at, bytes[column->type]);
    return number;
}

static const char *name_of(const char *const *names, size_t count, uint64_t number)
{
    return number < count && names[number] != NULL ? names[number] : "unknown";
}

static const char *vantage_name(uint64_t vantage)
{
    static const char *const names[] = {[VANTAGE_MIDDLE] = "middle", [VANTAGE_TX] = "tx", [VANTAGE_RX] = "rx"};
    return name_of(names, sizeof names / sizeof names[0], vantage);
}

static const char *role_name(uint64_t role)
{
    static const char *const names[] = {[ROLE_DATA] = "data",
                                        [ROLE_CREDIT] = "credit",
                                        [ROLE_SIZE] = "size",
                                        [ROLE_FLUSH] = "flush",
                                        [ROLE_OTHER] = "other"};
    return name_of(names, sizeof names / sizeof names[0], role);
}

static void format_address(const uint8_t *address, char text[INET6_ADDRSTRLEN])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (memcmp(address, mapped, sizeof mapped) == 0)
        inet_ntop(AF_INET, address + 12, text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

/* "erspan2:10.0.0.9/5 vxlan:5001 vlan:10.11", what there is of it: the mirror, the tunnel, the frame's own VLANs. */
static void print_tunnel(FILE *to, const struct record_flow *flow)
{
    static const char *const kinds[] = {
        [TUNNEL_VXLAN] = "vxlan", [TUNNEL_GRE] = "gre", [TUNNEL_GRE_KEY] = "gre", [TUNNEL_MPLS] = "mpls"};
    const char *separator = "";
    unsigned mirror = flow->mirror_kind & ~(unsigned)MIRROR_V6, address = flow->mirror_address;

    if (mirror != 0) {
        fprintf(to, "erspan%u:", mirror);
        if ((flow->mirror_kind & MIRROR_V6) != 0)
            fprintf(to, "v6-%08x", address);
        else
            fprintf(to, "%u.%u.%u.%u", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff, address & 0xff);
        if (mirror != MIRROR_ERSPAN1)
            fprintf(to, "/%u", flow->mirror_session);
        separator = " ";
    }
    if (flow->tunnel_kind != TUNNEL_NONE) {
        fprintf(to, "%s%s", separator, name_of(kinds, sizeof kinds / sizeof kinds[0], flow->tunnel_kind));
        if (flow->tunnel_kind != TUNNEL_GRE)
            fprintf(to, ":%u", flow->tunnel);
        separator = " ";
    }
    if (flow->vlans != 0)
        fprintf(to, "%svlan:%u", separator, flow->vlans & 0xfff);
    if (flow->vlans >> 12 != 0)
        fprintf(to, ".%u", flow->vlans >> 12);
}

static void print_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

static void print_flags(FILE *to, uint64_t set)
{
    const char *separator = "";

    fputc('[', to);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if ((set & flags[i].flag) == 0)
            continue;
        fprintf(to, "%s\"%s\"", separator, flags[i].name);
        separator = ",";
    }
    fputc(']', to);
}

static void print_json(FILE *to, const struct column *column, const uint8_t *at)
{
    char text[INET6_ADDRSTRLEN];

    fprintf(to, ",\"%s\":", column->name);
    switch (column->type) {
    case TYPE_ADDRESS:
        format_address(at, text);
        fprintf(to, "\"%s\"", text);
        break;
    case TYPE_VANTAGE:
        fprintf(to, "\"%s\"", vantage_name(read_number(column, at)));
        break;
    case TYPE_ROLE:
        fprintf(to, "\"%s\"", role_name(read_number(column, at)));
        break;
    case TYPE_FLAGS:
        print_flags(to, read_number(column, at));
        break;
    case TYPE_TUNNEL:
        fputc('"', to);
        print_tunnel(to, (const struct record_flow *)at);
        fputc('"', to);
        break;
    default:
        fprintf(to, "%llu", (unsigned long long)read_number(column, at));
    }
}

static void print_text(FILE *to, const struct column *column, const uint8_t *at)
{
    char text[INET6_ADDRSTRLEN];

    switch (column->type) {
    case TYPE_ADDRESS:
        format_address(at, text);
        break;
    case TYPE_VANTAGE:
        snprintf(text, sizeof text, "%s", vantage_name(read_number(column, at)));
        break;
    case TYPE_ROLE:
        snprintf(text, sizeof text, "%s", role_name(read_number(column, at)));
        break;
    case TYPE_QPN:
        snprintf(text, sizeof text, "0x%06llx", (unsigned long long)read_number(column, at));
        break;
    default:
        snprintf(text, sizeof text, "%llu", (unsigned long long)read_number(column, at));
    }
    fprintf(to, " %*s", column->width, text);
}

static void print_columns(const struct report *report, enum table table, const void *record)
{
    for (size_t i = 0; i < COLUMNS_COUNT; i++) {
        const struct column *column = &columns[i];
        const uint8_t *at = (const uint8_t *)record + column->offset;
        if (column->table != table)
            continue;
        if (report->is_json)
            print_json(report->to, column, at);
        else if (column->width != 0)
            print_text(report->to, column, at);
    }
}

static void print_heads(const struct report *report, enum table table)
{
    for (size_t i = 0; i < COLUMNS_COUNT; i++) {
        if (columns[i].table == table && columns[i].width != 0)
            fprintf(report->to, " %*s", columns[i].width, columns[i].type == TYPE_QPN ? "to_qpn" : columns[i].name);
    }
}

/* Begins a row of the table that ends with `table`; for people, with its head when another table came before. */
static void begin_row(struct report *report, enum table table, const char *name, const struct flow *flow)
{
    struct record_flow key;

    flow_record(flow, &key);
    if (!report->is_json && report->headed != (int)table) {
        print_heads(report, TABLE_KEY);
        print_heads(report, table);
        fputc('\n', report->to);
        report->headed = (int)table;
    }
    if (report->is_json)
        fprintf(report->to, "{\"row\":\"%s\"", name);
    print_columns(report, TABLE_KEY, &key);
    if (table == TABLE_TOTAL)
        print_columns(report, TABLE_FLOW, &key);
}

static void end_row(const struct report *report)
{
    fputs(report->is_json ? "}\n" : "\n", report->to);
}

void report_begin(struct report *report, const char *source)
{
    if (!report->is_json)
        return;
    fprintf(report->to,
            "{\"row\":\"header\",\"schema_version\":%d,\"generator\":\"qpscope-nic " QPSCOPE_VERSION
            "\",\"window_ns\":%u,\"source\":",
            REPORT_SCHEMA_VERSION, report->window_ns);
    print_string(report->to, source);
    end_row(report);
}

void report_flow(struct report *report, const struct flow *flow, const struct record_flow_total *total)
{
    begin_row(report, TABLE_TOTAL, "flow", flow);
    print_columns(report, TABLE_TOTAL, total);
    end_row(report);
}

void report_message(struct report *report, const struct flow *flow, const struct record_message *message)
{
    begin_row(report, TABLE_MESSAGE, "message", flow);
    print_columns(report, TABLE_MESSAGE, message);
    end_row(report);
}

void report_window(struct report *report, const struct flow *flow, const struct record_window *window)
{
    begin_row(report, TABLE_WINDOW, "window", flow);
    print_columns(report, TABLE_WINDOW, window);
    end_row(report);
}

void report_end(struct report *report, const struct counter_table *counters, bool is_complete)
{
    const char *separator = "";

    if (report->is_json)
        fprintf(report->to, "{\"row\":\"summary\",\"complete\":%s,\"counters\":{", is_complete ? "true" : "false");
    for (size_t i = 0; i < counters->count; i++) {
        uint64_t total = counter_read(counters->values, i);
        if (report->is_json)
            fprintf(report->to, "%s\"%s\":%llu", separator, counters->specs[i].name, (unsigned long long)total);
        else if (total != 0)
            fprintf(report->to, "%12llu %s\n", (unsigned long long)total, counters->specs[i].help);
        separator = ",";
    }
    if (report->is_json)
        fputs("}}\n", report->to);
    else if (!is_complete)
        fputs("The input ended in an error: this is what came before it.\n", report->to);
}
