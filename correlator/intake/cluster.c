/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clusters of clocks. Invariant: each bound is that of an interval which holds the true time, the narrower of the one
 * by way of the root and the one by the machine's own exchanges where both meet, and both where they contradict each
 * other.
 */
#include "correlator/intake/cluster.h"

#include <stdlib.h>

#define ROUNDS 3 /* of laying a time backwards over a band: each leaves 2e-4 of what was wrong */

void cluster_fini(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->machines.count; i++)
        band_fini(&cluster->machines.items[i].band);
    for (size_t i = 0; i < cluster->machines.count; i++)
        array_fini(&cluster->machines.items[i].points);
    for (size_t i = 0; i < cluster->edges.count; i++)
        band_fini(&cluster->edges.items[i].band);
    array_fini(&cluster->machines);
    array_fini(&cluster->edges);
}

static struct cluster_time over(const struct band *band, uint64_t ns)
{
    struct band_offset offset = band_at(band, ns);

    return (struct cluster_time){ns + (uint64_t)offset.offset_ns, offset.half_ns, offset.half_ns};
}

static struct cluster_time back(const struct band *band, uint64_t ns)
{
    struct band_offset offset = {band->knots.items[0].offset_ns, 0};

    for (int round = 0; round < ROUNDS; round++)
        offset = band_at(band, ns - (uint64_t)offset.offset_ns);
    return (struct cluster_time){ns - (uint64_t)offset.offset_ns, offset.half_ns, offset.half_ns};
}

struct cluster_time cluster_map_plain(const struct cluster *cluster, size_t machine, uint64_t machine_ns)
{
    const struct band *band = &cluster->machines.items[machine].band;

    return band->knots.count == 0 ? (struct cluster_time){machine_ns, 0, 0} : over(band, machine_ns);
}

/* The root's time; its bound is that of the path. */
static struct cluster_time to_root(const struct cluster *cluster, size_t machine, uint64_t machine_ns)
{
    struct cluster_time time = {machine_ns, 0, 0};

    while (cluster->machines.items[machine].parent != CLUSTER_NONE) {
        const struct cluster_edge *edge = &cluster->edges.items[cluster->machines.items[machine].edge];
        struct cluster_time next = edge->from == machine ? over(&edge->band, time.ns) : back(&edge->band, time.ns);
        time.ns = next.ns;
        time.bound_ns += next.bound_ns;
        machine = cluster->machines.items[machine].parent;
    }
    return time;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Of two intervals around times what is common, or both when nothing is. */
static struct cluster_time join(uint64_t a_ns, uint64_t a_half_ns, uint64_t b_ns, uint64_t b_half_ns)
{
    int64_t a_low = -(int64_t)a_half_ns;
    int64_t a_high = (int64_t)a_half_ns;
    int64_t b_low = (int64_t)(b_ns - a_ns) - (int64_t)b_half_ns;
    int64_t b_high = (int64_t)(b_ns - a_ns) + (int64_t)b_half_ns;
    int64_t low = a_low > b_low ? a_low : b_low;
    int64_t high = a_high < b_high ? a_high : b_high;

    if (low > high) {
        low = a_low < b_low ? a_low : b_low;
        high = a_high > b_high ? a_high : b_high;
    }
    int64_t middle = low + (high - low) / 2;
    return (struct cluster_time){a_ns + (uint64_t)middle, (uint64_t)(high - middle), 0};
}

/* A machine that is no root, edge by edge; by its own exchanges where the way is wider than these. */
static struct cluster_time map_along(const struct cluster *cluster, size_t machine, uint64_t machine_ns)
{
    size_t root_machine = cluster->machines.items[machine].root;
    uint64_t root_worst_ns = cluster->machines.items[root_machine].worst_ns;
    struct cluster_time plain = cluster_map_plain(cluster, machine, machine_ns);
    struct cluster_time path = to_root(cluster, machine, machine_ns);

    if (path.bound_ns > plain.bound_ns + root_worst_ns)
        return (struct cluster_time){plain.ns, plain.bound_ns, plain.bound_ns + root_worst_ns};
    struct cluster_time root = cluster_map_plain(cluster, root_machine, path.ns);
    struct cluster_time best = join(root.ns, path.bound_ns, plain.ns, plain.bound_ns + root.bound_ns);
    uint64_t by_root = best.bound_ns + root.bound_ns;
    uint64_t by_own = distance(best.ns, plain.ns) + plain.bound_ns;

    return (struct cluster_time){best.ns, by_root < by_own ? by_root : by_own, best.bound_ns};
}

/* Between two points of a clock that was not set; the root's own line has no corner between them. */
static struct cluster_time map_between(const struct cluster_point *low, const struct cluster_point *high,
                                       uint64_t at_ns)
{
    double whole = (double)(high->at_ns - low->at_ns);
    double done = (double)(at_ns - low->at_ns);
    int64_t moved = (int64_t)(high->ns - low->ns) - (int64_t)(high->at_ns - low->at_ns);
    uint64_t wander = (uint64_t)(BAND_WANDER * done * (whole - done) / whole) + 1;

    return (struct cluster_time){
        low->ns + (at_ns - low->at_ns) + (uint64_t)(int64_t)((double)moved * done / whole),
        (low->bound_ns > high->bound_ns ? low->bound_ns : high->bound_ns) + wander,
        (low->among_ns > high->among_ns ? low->among_ns : high->among_ns) + wander,
    };
}

struct cluster_time cluster_map(const struct cluster *cluster, size_t machine, uint64_t machine_ns)
{
    const struct cluster_machine *of = &cluster->machines.items[machine];
    const struct cluster_point *points = of->points.items;
    size_t low = 0;
    size_t high = of->points.count;

    if (of->parent == CLUSTER_NONE) {
        struct cluster_time plain = cluster_map_plain(cluster, machine, machine_ns);
        plain.among_ns = of->is_root ? 0 : plain.among_ns;
        return plain;
    }
    if (high < 2 || machine_ns < points[0].at_ns || machine_ns >= points[high - 1].at_ns)
        return map_along(cluster, machine, machine_ns);
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (points[middle].at_ns <= machine_ns)
            low = middle;
        else
            high = middle;
    }
    return map_between(&points[low], &points[low + 1], machine_ns);
}

static bool is_steady(const struct cluster *cluster, size_t machine)
{
    const struct cluster_machine *of = &cluster->machines.items[machine];

    if (of->band.cuts_count > 0 || cluster->machines.items[of->root].band.cuts_count > 0)
        return false;
    for (; of->parent != CLUSTER_NONE; of = &cluster->machines.items[of->parent])
        if (cluster->edges.items[of->edge].band.cuts_count > 0)
            return false;
    return true;
}

/* The time of the machine's clock at which it maps to the root's `root_ns`. */
static uint64_t from_root(const struct cluster *cluster, size_t machine, uint64_t root_ns)
{
    uint64_t guess = root_ns;

    for (int round = 0; round < ROUNDS + 1; round++)
        guess -= to_root(cluster, machine, guess).ns - root_ns;
    return guess;
}

static int by_point(const void *a, const void *b)
{
    uint64_t left = ((const struct cluster_point *)a)->at_ns;
    uint64_t right = ((const struct cluster_point *)b)->at_ns;
    return (left > right) - (left < right);
}

static void add_point(struct cluster_machine *machine, uint64_t at_ns)
{
    ((struct cluster_point *)array_add(&machine->points))->at_ns = at_ns;
}

/* Points wherever a line on the way may have a corner that matters: its own, its edge's and the root's. */
static void lay_points(struct cluster *cluster, size_t machine)
{
    struct cluster_machine *of = &cluster->machines.items[machine];
    const struct cluster_edge *edge = &cluster->edges.items[of->edge];
    const struct cluster_machine *root = &cluster->machines.items[of->root];
    size_t kept = 0;

    for (size_t i = 0; i < of->band.knots.count; i++)
        add_point(of, of->band.knots.items[i].at_ns);
    for (size_t i = 0; i < edge->band.knots.count; i++)
        add_point(of, edge->band.knots.items[i].at_ns +
                          (uint64_t)(edge->from == machine ? 0 : edge->band.knots.items[i].offset_ns));
    for (size_t i = 0; i < root->band.knots.count; i++)
        add_point(of, from_root(cluster, machine, root->band.knots.items[i].at_ns));
    array_sort(&of->points, by_point);
    for (size_t i = 0; i < of->points.count; i++) {
        uint64_t at_ns = of->points.items[i].at_ns;
        if (kept > 0 && of->points.items[kept - 1].at_ns == at_ns)
            continue;
        struct cluster_time time = map_along(cluster, machine, at_ns);
        of->points.items[kept++] = (struct cluster_point){at_ns, time.ns, time.bound_ns, time.among_ns};
    }
    of->points.count = kept;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void weigh(struct cluster_edge *edge)
{
    ARRAY(uint64_t) halves = {0};

    for (size_t i = 0; i < edge->band.knots.count; i++)
        *(uint64_t *)array_add(&halves) = edge->band.knots.items[i].half_ns;
    array_sort(&halves, by_value);
    edge->weight_ns = halves.items[halves.count / 2] + 1;
    array_fini(&halves);
}

/* Lays a machine onto the root by way of its neighbour when that is narrower; true when it was. */
static bool relax(struct cluster *cluster, uint64_t *distances, size_t edge, size_t from, size_t to)
{
    uint64_t weight = cluster->edges.items[edge].weight_ns;

    uint64_t known = cluster->machines.items[to].worst_ns;

    /* what is wider than exchanges tells nothing, and each edge costs time */
    if (distances[from] == UINT64_MAX || distances[from] + weight >= distances[to] ||
        distances[from] + weight > 2 * known + weight)
        return false;
    distances[to] = distances[from] + weight;
    cluster->machines.items[to].root = cluster->machines.items[from].root;
    cluster->machines.items[to].parent = from;
    cluster->machines.items[to].edge = edge;
    return true;
}

/* Bellman and Ford: as many rounds as the longest path has edges. */
static void spread(struct cluster *cluster, uint64_t *distances, size_t root)
{
    bool more = true;

    distances[root] = 0;
    while (more) {
        more = false;
        for (size_t i = 0; i < cluster->edges.count; i++) {
            const struct cluster_edge *edge = &cluster->edges.items[i];
            more |= relax(cluster, distances, i, edge->from, edge->to);
            more |= relax(cluster, distances, i, edge->to, edge->from);
        }
    }
}

/*
 * Machines in no cluster yet that have edges: the one with the most, as ways are shortest from there; of equals that
 * whose exchanges are narrowest, as its error is that of the whole cluster; CLUSTER_NONE of none.
 */
static size_t next_root(const struct cluster *cluster, const uint64_t *distances, const size_t *degrees)
{
    const struct cluster_machine *machines = cluster->machines.items;
    size_t best = CLUSTER_NONE;

    for (size_t i = 0; i < cluster->machines.count; i++) {
        if (distances[i] != UINT64_MAX || degrees[i] == 0)
            continue;
        if (best == CLUSTER_NONE || degrees[i] > degrees[best] ||
            (degrees[i] == degrees[best] && machines[i].worst_ns < machines[best].worst_ns))
            best = i;
    }
    return best;
}

/* Exchanges allow no such distance between the two clocks at some time. */
static bool is_contradicted(const struct cluster *cluster, const struct cluster_edge *edge)
{
    for (size_t i = 0; i < edge->band.knots.count; i++) {
        const struct band_knot *knot = &edge->band.knots.items[i];
        struct cluster_time from = cluster_map_plain(cluster, edge->from, knot->at_ns);
        struct cluster_time to = cluster_map_plain(cluster, edge->to, knot->at_ns + (uint64_t)knot->offset_ns);
        if (distance(from.ns, to.ns) > from.bound_ns + to.bound_ns + knot->half_ns)
            return true;
    }
    return false;
}

void cluster_lay(struct cluster *cluster)
{
    size_t count = cluster->machines.count;
    uint64_t *distances = array_zeroed(count * sizeof *distances);
    size_t *degrees = array_zeroed(count * sizeof *degrees);

    for (size_t i = 0; i < count; i++) {
        distances[i] = UINT64_MAX;
        cluster->machines.items[i].root = i;
        cluster->machines.items[i].parent = CLUSTER_NONE;
    }
    for (size_t i = 0; i < cluster->edges.count; i++) {
        struct cluster_edge *edge = &cluster->edges.items[i];
        weigh(edge);
        degrees[edge->from]++;
        degrees[edge->to]++;
        edge->contradicted = is_contradicted(cluster, edge);
        cluster->contradictions += edge->contradicted;
    }
    for (size_t root; (root = next_root(cluster, distances, degrees)) != CLUSTER_NONE;) {
        cluster->machines.items[root].is_root = true;
        spread(cluster, distances, root);
    }
    free(distances);
    free(degrees);
    for (size_t i = 0; i < count; i++)
        if (cluster->machines.items[i].parent != CLUSTER_NONE && is_steady(cluster, i))
            lay_points(cluster, i);
}
