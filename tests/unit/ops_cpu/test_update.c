/* The update rules against double precision; slices, instruction sets and what was seen.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/thread.h"
#include "device/plain.h"
#include "ops/cpu/exact.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/update.h"

enum { COUNT = 2500, STEPS = 5, EXPONENT = 38 };

/* Everything that an update changes. */
struct training {
    float weight[COUNT], history[2][COUNT], average[COUNT];
};

struct reference {
    double w, h, k, average;
};

static double sign(double x)
{
    return (x > 0) - (x < 0);
}

/* One element, one step, as the rules are written in textbooks. */
static void reference_step(const struct ls_update_rule *rule, int64_t t, double total,
                           struct reference *r)
{
    double g = total * rule->gradient_scale, rate = rule->rate;
    double mu = rule->momentum, b2 = rule->momentum2, delta = rule->delta;
    if (!ls_update_decouples(rule->kind))
        g += rule->decay * (rule->l1 ? sign(r->w) : r->w);
    double previous = r->h;
    switch (rule->kind) {
    case LS_UPDATE_SGD:
        r->h = mu * r->h + rate * g;
        r->w -= r->h;
        break;
    case LS_UPDATE_NESTEROV:
        r->h = mu * r->h + rate * g;
        r->w -= (1 + mu) * r->h - mu * previous;
        break;
    case LS_UPDATE_ADAGRAD:
        r->h += g * g;
        r->w -= rate * g / (sqrt(r->h) + delta);
        break;
    case LS_UPDATE_RMSPROP:
        r->h = rule->rms_decay * r->h + (1 - rule->rms_decay) * g * g;
        r->w -= rate * g / (sqrt(r->h) + delta);
        break;
    case LS_UPDATE_ADADELTA: {
        r->h = mu * r->h + (1 - mu) * g * g;
        double u = g * sqrt((r->k + delta) / (r->h + delta));
        r->k = mu * r->k + (1 - mu) * u * u;
        r->w -= rate * u;
        break;
    }
    case LS_UPDATE_LION:
        r->w -= rate * (sign(mu * r->h + (1 - mu) * g) + rule->decay * r->w);
        r->h = b2 * r->h + (1 - b2) * g;
        break;
    case LS_UPDATE_LAMB: {
        r->h = mu * r->h + (1 - mu) * g;
        r->k = b2 * r->k + (1 - b2) * g * g;
        double first = 1 - pow(mu, (double)t), second = 1 - pow(b2, (double)t);
        double d = r->h / first / (sqrt(r->k / second) + delta) + rule->decay * r->w;
        r->w -= rate * rule->trust * d;
        break;
    }
    case LS_UPDATE_MUON: /* with u in place of what is made of all of it */
        r->h = mu * r->h + (1 - mu) * g;
        r->w -= rate * ((rule->nesterov ? mu * r->h + (1 - mu) * g : r->h) + rule->decay * r->w);
        break;
    case LS_UPDATE_ADAFACTOR: { /* the same */
        const double fresh = rule->fresh;
        r->k = (1 - fresh) * r->k + fresh * (g * g + rule->square_min);
        r->h = mu * r->h + (1 - mu) * rule->trust * g / sqrt(r->k);
        r->w -= r->h + rate * rule->decay * r->w;
        break;
    }
    default: {
        r->h = mu * r->h + (1 - mu) * g;
        r->k = b2 * r->k + (1 - b2) * g * g;
        double step = rate * sqrt(1 - pow(b2, (double)t)) / (1 - pow(mu, (double)t)) * r->h /
                      (sqrt(r->k) + delta);
        r->w -= step + (rule->kind == LS_UPDATE_ADAMW ? rate * rule->decay * r->w : 0);
        break;
    }
    }
    r->average = rule->average_decay * r->average + (1 - (double)rule->average_decay) * r->w;
}

static bool next_isa(int *isa)
{
    for (++*isa; *isa < LS_ISAS; ++*isa)
        if (ls_cpu_isa_supported((enum ls_isa) * isa))
            return ls_cpu_isa_select(ls_cpu_isa_name((enum ls_isa) * isa), NULL) == 0;
    return false;
}

static int64_t total(int step, uint32_t i)
{
    return llrint(ldexp(2.0 * ls_random_uniform(11, (uint64_t)step, i) - 1, EXPONENT));
}

static void begin(struct training *training)
{
    memset(training, 0, sizeof *training);
    for (uint32_t i = 0; i < COUNT; i++)
        training->weight[i] = i % 10 == 0 ? 0 : 2 * ls_random_uniform(12, 0, i) - 1;
    memcpy(training->average, training->weight, sizeof training->average);
}

/* Slices of `cut` elements. */
static void step(const struct ls_update_rule *rule, struct training *training, int number,
                 size_t cut)
{
    static int64_t sum[COUNT];
    static float gradient[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        sum[i] = total(number, i);
    ls_exact_to_float(sum, EXPONENT, gradient, COUNT);
    struct ls_update_seen merged = {0};
    for (size_t from = 0; from < COUNT; from += cut) {
        struct ls_update_slice slice = {
            .n = from + cut < COUNT ? cut : COUNT - from,
            .gradient = gradient + from,
            .weight = training->weight + from,
            .average = training->average + from,
        };
        for (int h = 0; h < ls_update_histories(rule->kind); h++)
            slice.history[h] = training->history[h] + from;
        struct ls_update_seen seen;
        assert_int_equal(ls_update_apply(rule, &slice, &seen, NULL), 0);
        merged.gradient = seen.gradient > merged.gradient ? seen.gradient : merged.gradient;
        merged.weight = seen.weight > merged.weight ? seen.weight : merged.weight;
    }
    assert_int_equal(merged.gradient, ls_largest(gradient, COUNT));
    assert_int_equal(merged.weight, ls_largest(training->weight, COUNT));
}

static void check_rule(struct ls_update_rule rule)
{
    static struct training training, first;
    static const size_t cuts[] = {COUNT, 1024, 333, 7};
    for (int isa = -1; next_isa(&isa);)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            begin(&training);
            for (int s = 1; s <= STEPS; s++) {
                rule.correction = ls_adam_correction(rule.momentum, rule.momentum2, s);
                step(&rule, &training, s, cuts[c]);
            }
            if (isa == 0 && c == 0)
                first = training;
            assert_memory_equal(&first, &training, sizeof first);
        }
    begin(&training);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct reference r = {.w = training.weight[i], .average = training.weight[i]};
        for (int s = 1; s <= STEPS; s++)
            reference_step(&rule, s, ldexp((double)total(s, i), -EXPONENT), &r);
        assert_true(fabs(first.weight[i] - r.w) < 2e-6 * fmax(1, fabs(r.w)));
        assert_true(fabs(first.history[0][i] - r.h) < 2e-6 * fmax(1, fabs(r.h)));
        assert_true(fabs(first.history[1][i] - r.k) < 2e-6 * fmax(1, fabs(r.k)));
        assert_true(fabs(first.average[i] - r.average) < 2e-6 * fmax(1, fabs(r.average)));
    }
}

static void test_rules(void **state)
{
    (void)state;
    for (int kind = 0; kind < LS_UPDATE_LAMB; kind++)
        for (int decay = 0; decay < 3; decay++)
            check_rule((struct ls_update_rule){
                .kind = (enum ls_update_kind)kind,
                .rate = kind == LS_UPDATE_ADADELTA ? 1.0F : 0.05F,
                .momentum = kind == LS_UPDATE_ADADELTA ? 0.95F : 0.9F,
                .momentum2 = 0.999F,
                .delta = kind == LS_UPDATE_ADADELTA ? 1e-3F : 1e-2F,
                .rms_decay = 0.98F,
                .decay = decay == 0 ? 0 : 0.004F,
                .l1 = decay == 2,
                .gradient_scale = decay == 0 ? 1 : 0.37F,
                .average_decay = 0.9F,
            });
}

/* LAMB's two passes over slices, or those of others, on a device. */
static void step_in_two_passes(const struct ls_update_rule *rule, struct training *training,
                               int number, size_t cut, bool plain)
{
    const bool lamb = rule->kind == LS_UPDATE_LAMB, muon = rule->kind == LS_UPDATE_MUON;
    static int64_t sum[COUNT];
    static float gradient[COUNT], direction[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        sum[i] = total(number, i);
    ls_exact_to_float(sum, EXPONENT, gradient, COUNT);
    for (int pass = 0; pass < 2; pass++)
        for (size_t from = 0; from < COUNT; from += cut) {
            struct ls_update_slice slice = {
                .n = from + cut < COUNT ? cut : COUNT - from,
                .gradient = pass == 0 ? gradient + from
                            : lamb    ? NULL
                                      : direction + from,
                .weight = training->weight + from,
                .history = {training->history[0] + from, muon ? NULL : training->history[1] + from},
                .direction = pass == 0 ? direction + from : NULL,
                .average = training->average + from,
            };
            struct ls_update_seen seen;
            assert_int_equal((plain ? ls_plain_update : ls_update_apply)(rule, &slice, &seen, NULL),
                             0);
            assert_int_equal(seen.gradient, pass == 0 ? ls_largest(gradient + from, slice.n) : 0);
            assert_int_equal(seen.weight,
                             pass == 0 ? 0 : ls_largest(training->weight + from, slice.n));
        }
}

static void check_two_passes(struct ls_update_rule rule)
{
    static struct training training, first;
    static const size_t cuts[] = {COUNT, 1024, 333, 7};
    const float delta = rule.delta;
    for (int isa = -1; next_isa(&isa);)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
            for (int plain = 0; plain < 2; plain++) {
                begin(&training);
                for (int s = 1; s <= STEPS; s++) {
                    rule.correction = ls_adam_correction(rule.momentum, rule.momentum2, s);
                    rule.delta = ls_adam_delta(delta, rule.momentum2, s);
                    step_in_two_passes(&rule, &training, s, cuts[c], plain == 1);
                }
                if (isa == 0 && c == 0 && plain == 0)
                    first = training;
                assert_memory_equal(&first, &training, sizeof first);
            }
    begin(&training);
    rule.delta = delta;
    for (uint32_t i = 0; i < COUNT; i++) {
        struct reference r = {.w = training.weight[i], .average = training.weight[i]};
        for (int s = 1; s <= STEPS; s++)
            reference_step(&rule, s, ldexp((double)total(s, i), -EXPONENT), &r);
        assert_true(fabs(first.weight[i] - r.w) < 2e-6 * fmax(1, fabs(r.w)));
        assert_true(fabs(first.average[i] - r.average) < 2e-6 * fmax(1, fabs(r.average)));
    }
}

static void test_two_passes(void **state)
{
    (void)state;
    struct ls_update_rule rule = {.kind = LS_UPDATE_LAMB,
                                  .rate = 0.05F,
                                  .momentum = 0.9F,
                                  .momentum2 = 0.99F,
                                  .delta = 1e-2F,
                                  .trust = 0.75F,
                                  .decay = 0.02F,
                                  .gradient_scale = 0.5F,
                                  .average_decay = 0.9F};
    check_two_passes(rule);
    rule.kind = LS_UPDATE_MUON;
    check_two_passes(rule);
    rule.nesterov = true;
    check_two_passes(rule);
    rule.kind = LS_UPDATE_ADAFACTOR;
    rule.fresh = 0.3F;
    rule.square_min = 1e-3F;
    check_two_passes(rule);
}

/* Adafactor where there is no gradient, and none to add to its squares; matrices have no second
 * history, and without momentum there is no first one. */
static void test_adafactor_edges(void **state)
{
    (void)state;
    float gradient[3] = {0, 2, -0.5F}, direction[3], weight[3] = {1, 1, 1}, moment[3] = {0};
    struct ls_update_rule rule = {
        .kind = LS_UPDATE_ADAFACTOR, .rate = 0.5F, .fresh = 1, .trust = 0.25F, .gradient_scale = 2};
    struct ls_update_slice slice = {.n = 3,
                                    .gradient = gradient,
                                    .weight = weight,
                                    .history = {NULL, moment},
                                    .direction = direction};
    struct ls_update_seen seen;
    assert_int_equal(ls_update_apply(&rule, &slice, &seen, NULL), 0);
    assert_true(direction[0] == 0 && direction[1] == 1 && direction[2] == -1);
    assert_true(moment[0] == 0 && moment[1] == 16 && moment[2] == 1);
    slice.history[1] = NULL;
    assert_int_equal(ls_update_apply(&rule, &slice, &seen, NULL), 0);
    assert_true(direction[0] == 0 && direction[1] == 4 && direction[2] == -1);
    slice.direction = NULL;
    slice.gradient = direction;
    assert_int_equal(ls_update_apply(&rule, &slice, &seen, NULL), 0);
    assert_true(weight[0] == 1 && weight[1] == 0 && weight[2] == 1.25F);
}

/* The exponent that maps a magnitude, given by its bits, to [2^37, 2^38) units. */
static int exponent_for(uint32_t largest)
{
    float x;
    memcpy(&x, &largest, sizeof x);
    return 37 - ilogbf(x);
}

/* Rows that few updates touch, by gradients that differ by 10^6, under Adam, which looks at a
 * gradient's sign more than at its size: as with sums in double. The exponent follows from the
 * total before, from which the next one may differ a lot. */
static void test_rare_rows(void **state)
{
    (void)state;
    enum { ROWS = 100, WIDTH = 8, PARTS = 6, UPDATES = 60 };
    static float weight[ROWS * WIDTH], h[ROWS * WIDTH], k[ROWS * WIDTH];
    static struct reference reference[ROWS * WIDTH];
    static float part[PARTS][ROWS * WIDTH];
    static int64_t sum[ROWS * WIDTH];
    struct ls_update_rule rule = {.kind = LS_UPDATE_ADAM,
                                  .rate = 0.01F,
                                  .momentum = 0.9F,
                                  .momentum2 = 0.999F,
                                  .delta = 1e-8F,
                                  .gradient_scale = 1};
    int exponent = 30;
    for (int t = 1; t <= UPDATES; t++) {
        memset(part, 0, sizeof part);
        for (uint32_t p = 0; p < PARTS; p++) {
            uint32_t row = ls_random_below(31, (uint64_t)t, p, ROWS);
            float size = powf(10, -(float)(row % 7));
            for (uint32_t i = 0; i < WIDTH; i++)
                part[p][row * WIDTH + i] =
                    size * (float)ls_random_normal(32, (uint64_t)t, p * WIDTH + i);
        }
        for (int p = 0; p < PARTS; p++) {
            uint32_t largest = ls_exact_add(sum, part[p], ROWS * WIDTH, exponent, p == 0);
            assert_true(exponent_for(largest) > exponent - (LS_EXACT_LIMIT - 38));
        }
        rule.correction = ls_adam_correction(rule.momentum, rule.momentum2, t);
        static float gradient[ROWS * WIDTH];
        ls_exact_to_float(sum, exponent, gradient, ROWS * WIDTH);
        struct ls_update_slice slice = {
            .n = ROWS * WIDTH, .gradient = gradient, .weight = weight, .history = {h, k}};
        struct ls_update_seen seen;
        assert_int_equal(ls_update_apply(&rule, &slice, &seen, NULL), 0);
        for (int i = 0; i < ROWS * WIDTH; i++) {
            double total_of = 0;
            for (int p = 0; p < PARTS; p++)
                total_of += part[p][i];
            reference_step(&rule, t, total_of, &reference[i]);
        }
        exponent = exponent_for(seen.gradient) < 36 ? exponent_for(seen.gradient) : 36;
    }
    for (int i = 0; i < ROWS * WIDTH; i++)
        assert_true(fabs(weight[i] - reference[i].w) < 1e-4); /* a hundredth of a step */
}

/* A slice without an average; weights that stop being finite are seen. */
static void test_seen(void **state)
{
    (void)state;
    const struct ls_update_rule rule = {.kind = LS_UPDATE_SGD, .rate = 1, .gradient_scale = 1};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int isa = -1; next_isa(&isa);)
        for (size_t at = 0; at < 37; at++)
            for (size_t b = 0; b < 3; b++) {
                float gradient[37] = {0}, weight[37] = {0}, history[37] = {0};
                gradient[at] = bad[b];
                struct ls_update_slice slice = {
                    .n = 37, .gradient = gradient, .weight = weight, .history = {history, NULL}};
                struct ls_update_seen seen;
                assert_int_equal(ls_update_apply(&rule, &slice, &seen, NULL), 0);
                assert_true(seen.gradient >= LS_NOT_FINITE && seen.weight >= LS_NOT_FINITE);
                gradient[at] = 0.5F;
                memset(weight, 0, sizeof weight);
                memset(history, 0, sizeof history);
                assert_int_equal(ls_update_apply(&rule, &slice, &seen, NULL), 0);
                assert_true(seen.gradient == 0x3f000000 && seen.weight == 0x3f000000);
                assert_true(weight[at] == -0.5F);
            }
}

/* On every instruction set, from any element on, any number of them: what is masked becomes +0,
 * everything else keeps its bits. */
static void test_masks(void **state)
{
    (void)state;
    enum { SIZE = 400 };
    static uint32_t mask[(SIZE + 31) / 32], bits[SIZE], after[SIZE];
    static float numbers[SIZE];
    for (int isa = -1; next_isa(&isa);)
        for (uint64_t trial = 0; trial < 400; trial++) {
            uint32_t first = ls_random_below(trial, 1, 0, trial % 2 == 0 ? 40 : SIZE);
            uint32_t count = ls_random_below(trial, 2, 0, SIZE - first + 1);
            for (uint64_t i = 0; i < (SIZE + 31) / 32; i++)
                mask[i] = i % 4 == 0 ? 0 : ls_random_u32(trial, 3, i) | (i % 4 == 1 ? ~0U : 0);
            for (uint64_t i = 0; i < SIZE; i++)
                bits[i] = i % 7 == 0 ? 0x80000000 : ls_random_u32(trial, 4, i);
            memcpy(numbers, bits, sizeof bits);
            assert_int_equal(ls_update_clear_masked(mask, first, numbers + first, count, NULL), 0);
            memcpy(after, numbers, sizeof after);
            for (uint32_t i = 0; i < SIZE; i++) {
                bool cleared = i >= first && i < first + count && (mask[i / 32] >> i % 32 & 1) != 0;
                assert_int_equal(after[i], cleared ? 0 : bits[i]);
            }
        }
}

static void test_correction(void **state)
{
    (void)state;
    for (int64_t t = 1; t < 100000; t = t * 3 + 1) {
        double expected =
            sqrt(1 - pow((double)0.999F, (double)t)) / (1 - pow((double)0.9F, (double)t));
        assert_true(fabs(ls_adam_correction(0.9F, 0.999F, t) - expected) < 1e-6 * expected);
    }
    assert_true(ls_adam_correction(0.9F, 0.999F, INT64_MAX) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rare_rows),
        cmocka_unit_test(test_seen),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_correction),
        cmocka_unit_test(test_two_passes),
        cmocka_unit_test(test_adafactor_edges),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
