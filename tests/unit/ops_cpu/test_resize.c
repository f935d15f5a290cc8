/* Resizing and its gradient against the reference device; the same bits in every layout and on
 * every instruction set, and for every sample whatever comes with it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

struct resize_case {
    const char *name;
    int n, c, h, w, out_h, out_w, begin, end;
};

static const struct resize_case named_cases[] = {
    {"twice, corners aligned", 2, 20, 5, 7, 9, 13, 0, 0},
    {"eight times", 1, 21, 5, 6, 33, 41, 0, 0},
    {"any factor", 2, 33, 6, 5, 13, 11, 0, 0},
    {"smaller", 2, 16, 13, 11, 5, 4, 0, 0},
    {"every third", 1, 3, 13, 10, 5, 4, 0, 0},
    {"higher and narrower", 2, 8, 4, 9, 9, 4, 0, 0},
    {"the same size", 2, 5, 6, 7, 6, 7, 0, 0},
    {"from one position", 2, 17, 1, 1, 6, 7, 0, 0},
    {"to one position", 2, 17, 6, 7, 1, 1, 0, 0},
    {"from a row", 1, 9, 1, 7, 5, 13, 0, 0},
    {"to a column", 1, 9, 7, 7, 13, 1, 0, 0},
    {"cut at the beginning", 2, 20, 8, 9, 13, 15, 1, 0},
    {"cut at the end", 2, 20, 8, 9, 13, 15, 0, 2},
    {"cut at both", 2, 6, 8, 9, 5, 3, 3, 1},
    {"cut to one position", 1, 6, 4, 4, 3, 3, 2, 1},
    {"one channel", 3, 1, 20, 20, 39, 30, 0, 0},
};
enum { NAMED = sizeof named_cases / sizeof *named_cases };

static struct ls_shape shape_of(const struct resize_case *r, bool outer)
{
    return outer ? (struct ls_shape){4, {r->n, r->c, r->out_h, r->out_w}}
                 : (struct ls_shape){4, {r->n, r->c, r->h, r->w}};
}

static struct own *make(const struct ls_kernel *kernel, const struct resize_case *r)
{
    bool backward = kernel->kind == LS_OP_RESIZE_BACKWARD;
    struct ls_shape in = shape_of(r, backward), out = shape_of(r, !backward);
    struct own *own = own_new(kernel);
    own_in(own, &in, 1, 1);
    own_out(own, &out);
    own->op.attr.resize = (struct ls_resize_attr){.begin = r->begin, .end = r->end};
    return own;
}

static void check(const struct resize_case *r, const struct ls_kernel *kernel)
{
    float *kept = NULL;
    for (int layout = 0; layout < OWN_LAYOUTS; layout++) {
        struct own *own = make(kernel, r);
        own_run(own, own_layouts[layout]);
        own_near_reference(own, 3e-6);
        own_keep_or_compare(&kept, own, own->out[0]);
        own_free(own);
    }
    free(kept);
}

static void named_sizes_give_what_the_reference_gives(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMED; i++) {
        check(&named_cases[i], &ls_kernel_resize);
        check(&named_cases[i], &ls_kernel_resize_backward);
    }
}

static int draw(uint64_t round, uint64_t number, int from, int to)
{
    return from + (int)ls_random_below(93, round, number, (uint32_t)(to - from + 1));
}

static void random_sizes_give_what_the_reference_gives(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 20, 8, 16, 33};
    for (uint64_t round = 0; round < 60; round++) {
        struct resize_case r = {"random",
                                draw(round, 0, 1, 3),
                                channels[draw(round, 1, 0, 5)],
                                draw(round, 2, 1, 9),
                                draw(round, 3, 1, 9),
                                draw(round, 4, 1, 20),
                                draw(round, 5, 1, 20),
                                0,
                                0};
        int room = (r.h < r.w ? r.h : r.w) - 1;
        r.begin = draw(round, 6, 0, room);
        r.end = draw(round, 7, 0, room - r.begin);
        check(&r, &ls_kernel_resize);
        check(&r, &ls_kernel_resize_backward);
    }
}

/* A sample's bytes are the same by itself as among others. */
static void a_sample_has_the_same_bytes_among_others(void **state)
{
    (void)state;
    static const struct ls_kernel *const kernels[] = {&ls_kernel_resize,
                                                      &ls_kernel_resize_backward};
    for (size_t i = 0; i < 2 * NAMED; i++) {
        struct resize_case many = named_cases[i / 2], one;
        many.n = 5;
        one = many;
        one.n = 1;
        struct own *all = make(kernels[i % 2], &many), *single = make(kernels[i % 2], &one);
        size_t in = (size_t)ls_shape_size(&single->in[0]->shape);
        size_t out = (size_t)ls_shape_size(&single->out[0]->shape);
        own_run(all, own_layouts[i % OWN_LAYOUTS]);
        memcpy(single->plain[single->in[0]->index], all->plain[all->in[0]->index] + 3 * in,
               in * sizeof(float));
        own_run(single, own_layouts[i % OWN_LAYOUTS]);
        assert_memory_equal(own_plain(single, single->out[0]),
                            own_plain(all, all->out[0]) + 3 * out, out * sizeof(float));
        own_free(all);
        own_free(single);
    }
}

/* Corners stay, and numbers along a line stay on it. */
static void corners_stay_and_lines_stay_straight(void **state)
{
    (void)state;
    static const struct resize_case r = {"", 1, 1, 3, 5, 5, 9, 0, 0};
    struct own *own = make(&ls_kernel_resize, &r);
    for (int i = 0; i < 15; i++)
        own->plain[own->in[0]->index][i] = (float)(6 * (i / 5) + 4 * (i % 5));
    own_run(own, &ls_layout_plain);
    for (int i = 0; i < 45; i++)
        assert_true(own_plain(own, own->out[0])[i] == (float)(3 * (i / 9) + 2 * (i % 9)));
    own_free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_sizes_give_what_the_reference_gives),
        cmocka_unit_test(random_sizes_give_what_the_reference_gives),
        cmocka_unit_test(a_sample_has_the_same_bytes_among_others),
        cmocka_unit_test(corners_stay_and_lines_stay_straight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
