/* The commands that look at nets, and random data in place of a definition's, on a fake library.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <math.h>

#include "cli/layered.h"
#include "cli/net_boxes.h"

static void test_shapes(void **state)
{
    (void)state;
    assert_int_equal(RUN("shapes", "--model", "n.prototxt"), 0);
    assert_non_null(strstr(fake.calls, "net(n.prototxt|-|0|-)"));
    assert_non_null(strstr(out, "Net \"a <net> & more\", phase TEST, batch 10\n"));
    assert_non_null(strstr(out, " 10 x 3 x 8 x 8\n"));
    assert_non_null(strstr(out, " label                    10\n"));
    assert_non_null(strstr(out, "weight 20 x 3 x 5 x 5, bias 20\n"));
    assert_non_null(strstr(out, " scalar\n"));
    assert_non_null(strstr(out, "\n1520 parameters; 0.024 million multiply-adds"));
    assert_int_equal(RUN("shapes", "--model", "n", "--phase", "TRAIN", "--level", "3", "--stage",
                         "deep", "--input", "data=1,3,4,4", "--json"),
                     0);
    assert_non_null(strstr(fake.calls, "dummy(0|data=1,3,4,4) net(n|TRAIN|3|deep)"));
    assert_non_null(strstr(messages, "lockstep: note: layer 'data': random data\n"));
    assert_non_null(strstr(out, "\"bottoms\": [\"conv1\", \"label\"]"));
    assert_non_null(strstr(out, "{\"name\": \"weight\", \"shape\": [20, 3, 5, 5]}"));
    assert_int_equal(RUN("shapes"), LOCKSTEP_USAGE);
    fake.load_status = LOCKSTEP_DEFINITION;
    fake.message = "n:1:2: wrong";
    assert_int_equal(RUN("shapes", "--model", "n"), LOCKSTEP_DEFINITION);
    assert_string_equal(messages, "lockstep: n:1:2: wrong\n");
}

static size_t count(const char *text, const char *word)
{
    size_t found = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        found++;
    return found;
}

/* The activation shares the box of the layer in front of it. */
static void test_draw(void **state)
{
    (void)state;
    assert_int_equal(RUN("draw", "--model", "n"), 0);
    assert_int_equal(strncmp(out, "<svg xmlns=", 11), 0);
    assert_non_null(strstr(out, ">a &lt;net&gt; &amp; more</text>"));
    assert_non_null(strstr(out, "prefers-color-scheme:dark"));
    assert_int_equal(count(out, "<g>"), 3);
    assert_int_equal(count(out, "marker-end"), 3);
    assert_non_null(strstr(out, ">Convolution + ReLU</text>"));
    assert_non_null(strstr(out, ">10 x 20 x 4 x 4</text>"));
    assert_non_null(strstr(out, ">1.5 K parameters, 48 KFLOP, 25.0 KiB</text>"));
    assert_non_null(strstr(out, "weight 20 x 3 x 5 x 5, bias 20\n"));
    assert_int_equal(strcmp(out + strlen(out) - 7, "</svg>\n"), 0);
    const char *path = ls_test_path("net.svg");
    assert_int_equal(RUN("draw", "--model", "n", "-o", path, "--theme", "dark"), 0);
    assert_string_equal(out, "");
    size_t size;
    char *file = ls_test_read(path, &size);
    assert_null(strstr(file, "prefers-color-scheme"));
    free(file);
    assert_int_equal(RUN("draw", "--model", "n", "--theme", "blue"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("draw", "--model", "n", "-o", "/no/such/folder/n.svg"), LOCKSTEP_RESOURCE);
}

/* Nodes of a row keep their distance, edges lead downwards and bend once in each row between. */
static void test_rows_of_a_drawing(void **state)
{
    (void)state;
    enum { NODES = 60, EDGES = 150 };
    struct ls_layered_node node[NODES] = {{0}};
    struct ls_layered_edge edge[EDGES] = {{0}};
    uint32_t random = 1;
    for (int i = 0; i < NODES; i++)
        node[i].width = 40 + 10 * (i % 7);
    for (int e = 0; e < EDGES; e++) {
        random = random * 1664525 + 1013904223;
        edge[e].to = 1 + (random >> 8) % (NODES - 1);
        edge[e].from = (random >> 20) % edge[e].to;
    }
    struct ls_layered drawing = {
        .node = node, .nodes = NODES, .edge = edge, .edges = EDGES, .gap = 12};
    assert_true(ls_layered_run(&drawing));
    for (int e = 0; e < EDGES; e++) {
        const int rows = node[edge[e].to].row - node[edge[e].from].row;
        assert_true(rows > 0 && edge[e].bends == (size_t)rows - 1);
        for (size_t b = 0; b < edge[e].bends; b++)
            assert_true(drawing.bend[edge[e].bend + b] > 0 &&
                        drawing.bend[edge[e].bend + b] < drawing.width);
    }
    for (int i = 0; i < NODES; i++) {
        assert_true(node[i].x - node[i].width / 2 > -1e-6 &&
                    node[i].x + node[i].width / 2 < drawing.width + 1e-6);
        for (int k = 0; k < i; k++)
            assert_true(node[i].row != node[k].row ||
                        fabs(node[i].x - node[k].x) >
                            (node[i].width + node[k].width) / 2 + 12 - 1e-6);
    }
    ls_layered_free(&drawing);
}

/* A long net with edges past its layers, and one from the first to the last: nothing drifts, and
 * the passing edges are straight. */
static void test_straight_drawing(void **state)
{
    (void)state;
    enum { BLOCKS = 40, NODES = 1 + 3 * BLOCKS, EDGES = 4 * BLOCKS + 1 };
    struct ls_layered_node node[NODES] = {{0}};
    struct ls_layered_edge edge[EDGES] = {{0}};
    size_t edges = 0;
    for (size_t i = 0; i < NODES; i++)
        node[i].width = i % 3 == 0 ? 60 : 100;
    for (size_t b = 0; b < BLOCKS; b++) {
        for (size_t i = 0; i < 3; i++)
            edge[edges++] = (struct ls_layered_edge){.from = 3 * b + i, .to = 3 * b + i + 1};
        edge[edges++] = (struct ls_layered_edge){.from = 3 * b, .to = 3 * b + 3};
    }
    edge[edges++] = (struct ls_layered_edge){.from = 0, .to = NODES - 1};
    struct ls_layered drawing = {
        .node = node, .nodes = NODES, .edge = edge, .edges = edges, .gap = 12};
    assert_true(ls_layered_run(&drawing));
    for (size_t i = 1; i < NODES; i++)
        assert_true(fabs(node[i].x - node[0].x) < 1e-6);
    for (size_t e = 0; e < EDGES; e++)
        for (size_t b = 1; b < edge[e].bends; b++)
            assert_true(fabs(drawing.bend[edge[e].bend + b] - drawing.bend[edge[e].bend]) < 1e-6);
    assert_true(drawing.width < 200);
    ls_layered_free(&drawing);
}

/* Short branches on both sides of the net, in front of its next layer: it stays straight. */
static void test_straight_spine(void **state)
{
    (void)state;
    enum { BLOCKS = 30, NODES = 1 + 4 * BLOCKS, EDGES = 4 * BLOCKS };
    struct ls_layered_node node[NODES] = {{0}};
    struct ls_layered_edge edge[EDGES] = {{0}};
    for (size_t i = 0; i < NODES; i++)
        node[i].width = 80;
    for (size_t b = 0; b < BLOCKS; b++)
        for (size_t i = 0; i < 4; i++) /* three heads, and what goes on */
            edge[4 * b + i] = (struct ls_layered_edge){.from = 4 * b, .to = 4 * b + 1 + i};
    struct ls_layered drawing = {
        .node = node, .nodes = NODES, .edge = edge, .edges = EDGES, .gap = 12};
    assert_true(ls_layered_run(&drawing));
    for (size_t b = 0; b <= BLOCKS; b++)
        assert_true(fabs(node[4 * b].x - node[0].x) < 1e-6 || b == BLOCKS);
    assert_true(drawing.width < 700);
    ls_layered_free(&drawing);
}

/* Copies of a block are one, those inside of a copy as well; the layer behind them is not theirs,
 * and what differs stays. */
static void test_repeated_layers(void **state)
{
    (void)state;
    enum { MOST = 32 };
    static char names[MOST][2][24];
    struct lockstep_net_layer layers[MOST] = {{.name = NULL}};
    struct lockstep_blob tops[MOST] = {{.name = NULL}};
    const char *bottoms[MOST];
    size_t count = 0;
    const char *before = "data";
    for (int b = 0; b < 4; b++)
        for (int l = 0; l < 5; l++) { /* h.B.in, h.B.s.0.c, h.B.s.1.c, h.B.s.2.c, h.B.out */
            if (l > 0 && l < 4)
                snprintf(names[count][0], 24, "h.%d.s.%d.c", b, l - 1);
            else
                snprintf(names[count][0], 24, "h.%d.%s", b, l == 0 ? "in" : "out");
            tops[count] = (struct lockstep_blob){
                .name = names[count][0], .rank = 1, .extent = {b == 3 ? 9 : 8}};
            bottoms[count] = before;
            layers[count] = (struct lockstep_net_layer){.name = names[count][0],
                                                        .type = l == 4 ? "Eltwise" : "Convolution",
                                                        .bottoms = &bottoms[count],
                                                        .bottom_count = 1,
                                                        .tops = &tops[count],
                                                        .top_count = 1};
            before = tops[count].name;
            count++;
        }
    bottoms[count] = before;
    tops[count] = (struct lockstep_blob){.name = "end"};
    layers[count] = (struct lockstep_net_layer){.name = "end",
                                                .type = "ReLU",
                                                .bottoms = &bottoms[count],
                                                .bottom_count = 1,
                                                .tops = &tops[count],
                                                .top_count = 1};
    count++;
    struct ls_net_boxes boxes;
    assert_true(ls_net_boxes_make(layers, count, &boxes));
    /* Three copies of h with three of s, then a copy that has other shapes with the same. */
    assert_int_equal(boxes.repeats.count, 3);
    assert_int_equal(boxes.repeats.copies[0].times, 3);
    assert_int_equal(boxes.repeats.copies[0].length, 5);
    assert_int_equal(boxes.repeats.copies[0].name, 1);
    assert_int_equal(boxes.repeats.copies[1].first, 1);
    assert_int_equal(boxes.repeats.copies[1].times, 3);
    assert_int_equal(boxes.repeats.copies[2].first, 16);
    assert_int_equal(boxes.boxes, 3 + 3);
    assert_int_equal(boxes.edges, 5);
    for (size_t e = 0; e < boxes.edges; e++)
        assert_int_equal(boxes.edge[e][1], boxes.edge[e][0] + 1);
    ls_net_boxes_free(&boxes);
}

static void test_caffe_tools(void **state)
{
    (void)state;
    assert_int_equal(RUN("upgrade_net_proto_text", "a", "b"), 0);
    assert_string_equal(fake.calls, "upgrade net(a|b|0) ");
    assert_int_equal(RUN("upgrade_net_proto_binary", "-logtostderr=1", "a", "b"), 0);
    assert_non_null(strstr(fake.calls, "upgrade net(a|b|1) "));
    assert_int_equal(RUN("upgrade_solver_proto_text", "a", "b"), 0);
    assert_non_null(strstr(fake.calls, "upgrade solver(a|b) "));
    assert_int_equal(RUN("upgrade_net_proto_text", "a"), LOCKSTEP_USAGE);
    fake.convert_status = LOCKSTEP_DEFINITION;
    fake.message = "a:1:2: wrong";
    assert_int_equal(RUN("upgrade_net_proto_text", "a", "b"), LOCKSTEP_DEFINITION);
    assert_string_equal(messages, "lockstep: a:1:2: wrong\n");
    fake_reset();
    assert_int_equal(RUN("extract_features", "w", "n", "fc7,fc8", "a,b", "3", "lmdb", "GPU"), 0);
    assert_non_null(strstr(fake.calls, "extract(3|a) "));
    assert_non_null(strstr(fake.calls, "extract(3|b) "));
    assert_non_null(strstr(messages, "Extracted features of 30 query images for feature blob fc8"));
    assert_int_equal(RUN("extract_features", "w", "n", "fc7,fc8", "a", "3", "lmdb"),
                     LOCKSTEP_USAGE);
    assert_int_equal(RUN("extract_features", "w", "n", "fc7", "a,b", "3", "lmdb"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("extract_features", "w", "n", "fc7", "a", "x", "lmdb"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("extract_features", "w", "n", "fc7", "a", "3", "leveldb"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("device_query"), 0);
    assert_non_null(strstr(out, "Measured, fp32:                200.0 GFLOP/s\n"));
    assert_null(strstr(fake.calls, "plugin("));
    assert_int_equal(RUN("device_query", "--plugin", "a.so"), 0);
    assert_int_equal(RUN("caffe", "device_query", "-plugin=b.so"), 0);
    assert_non_null(strstr(fake.calls, "plugin(a.so) plugin(b.so) "));
    assert_int_equal(RUN("help", "caffe"), 0);
    assert_non_null(strstr(out, "usage: caffe <command> <flags>"));
}

static void test_time_of_a_net(void **state)
{
    (void)state;
    assert_int_equal(
        RUN("time", "--model", "n", "--level", "2", "--stage", "deep", "--input", "data=1,3,4,4"),
        0);
    assert_non_null(strstr(fake.calls, "net solver(n|2|deep) dummy(0|data=1,3,4,4) "));
    assert_int_equal(RUN("time"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--model", "n", "--solver", "s"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--model", "n", "--set", "base_lr=1"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--solver", "s", "--stage", "deep"), LOCKSTEP_USAGE);
}

/* Only where that is said; notes go to stderr. */
static void test_dummy_data(void **state)
{
    (void)state;
    assert_int_equal(RUN("train", "--solver", "s"), 0);
    assert_null(strstr(fake.calls, "dummy"));
    assert_int_equal(RUN("train", "--solver", "s", "--dummy-data"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(1) "));
    assert_non_null(strstr(messages, "lockstep: note: layer 'data': random data\n"));
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s", "--input", "a=1,2", "--input", "b=1"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(0|a=1,2|b=1) "));
    fake_reset();
    assert_int_equal(RUN("time", "--solver", "s", "--dummy-data"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(1) "));
    fake_reset();
    assert_int_equal(RUN("plan", "--solver", "s", "--input", "a=1"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(0|a=1) "));
    fake_reset();
    assert_int_equal(RUN("plan", "--model", "n", "--input", "a=1"), 0);
    assert_non_null(strstr(fake.calls, "dummy(0|a=1) plan(n|"));
    fake_reset();
    assert_int_equal(RUN("plan", "--solver", "s", "--input", "a=1", "--ranks", "2"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(0|a=1) "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shapes, reset),
        cmocka_unit_test_setup(test_draw, reset),
        cmocka_unit_test(test_rows_of_a_drawing),
        cmocka_unit_test(test_straight_drawing),
        cmocka_unit_test(test_straight_spine),
        cmocka_unit_test(test_repeated_layers),
        cmocka_unit_test_setup(test_caffe_tools, reset),
        cmocka_unit_test_setup(test_time_of_a_net, reset),
        cmocka_unit_test_setup(test_dummy_data, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
