/* The gradients of recurrent cells on the reference device against finite differences of what it
 * computes: of LSTM, RNN and GRU, with and without what is optional.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"

enum { ROUNDS = 250, HIDDEN_MAX = 8 };
enum { Z, CONT, STILL, W, B, H0, C0 };           /* inputs of the op */
enum { H, GATES, BEFORE, C, H_LAST, C_LAST };    /* its outputs */
enum { DZ, DU, DSTILL, DH0, DC0, BACK_OUTPUTS }; /* those of its backward op */

static bool has(struct ls_value *const *values, int k)
{
    return values[k] != NULL;
}

/* What is differentiated: the sum of all outputs that layers read, each times a number. */
static double value_of(struct op_scene *scene, float *const weights[])
{
    static const int outputs[] = {H, H_LAST, C_LAST};
    struct op_result result;
    double sum = 0;
    scene_run(scene, reference_device(), &ls_layout_plain, &result);
    for (int o = 0; o < 3; o++)
        for (int64_t i = 0;
             has(scene->out, outputs[o]) && i < ls_shape_size(&scene->out[outputs[o]]->shape); i++)
            sum += (double)weights[o][i] * (double)result.out[outputs[o]][i];
    result_free(&result);
    return sum;
}

static int64_t check_slopes(struct op_scene *scene, int input, float *const weights[],
                            const float *gradient)
{
    const float step = 0x1p-6F;
    float *x = scene->plain[scene->in[input]->index];
    const int64_t n = ls_shape_size(&scene->in[input]->shape);
    int64_t compared = 0;
    for (int64_t i = 0; i < n; i += 1 + n / 12, compared++) {
        const float kept = x[i];
        x[i] = kept + step;
        const double up = value_of(scene, weights);
        x[i] = kept - step;
        const double down = value_of(scene, weights);
        x[i] = kept;
        const double slope = (up - down) / (2 * (double)step);
        if (!(fabs(slope - (double)gradient[i]) <= 5e-3 * (1 + fabs(slope))))
            fail_msg("cell %d, round %d: the gradient by element %lld of input %d is %.6g, the "
                     "slope %.6g",
                     (int)scene->op.attr.recurrent.cell, (int)scene->round, (long long)i, input,
                     (double)gradient[i], slope);
    }
    return compared;
}

static void copy_in(struct op_scene *back, const struct ls_value *like, const float *numbers)
{
    if (like == NULL) {
        scene_no_in(back);
        return;
    }
    float *to = scene_in(back, like->shape, 0, 1);
    memcpy(to, numbers, (size_t)ls_shape_size(&like->shape) * sizeof *to);
}

static const float *given(const struct op_scene *scene, int k)
{
    return scene->in[k] != NULL ? scene->plain[scene->in[k]->index] : NULL;
}

static void make_backward(const struct op_scene *scene, const struct op_result *result,
                          float *const weights[], struct op_scene *back)
{
    const enum ls_cell cell = scene->op.attr.recurrent.cell;
    const bool rnn = cell == LS_CELL_RNN, gru = cell == LS_CELL_GRU;
    struct ls_value *const *in = scene->in, *const *out = scene->out;
    *back = (struct op_scene){.round = scene->round};
    back->op.kind = LS_OP_RECURRENT_BACKWARD;
    back->op.attr = scene->op.attr;
    back->op.backward = true;
    copy_in(back, out[H], weights[0]);
    copy_in(back, out[H_LAST], weights[1]);
    copy_in(back, out[C_LAST], weights[2]);
    copy_in(back, out[GATES], result->out[GATES]);
    copy_in(back, rnn ? out[H] : NULL, result->out[H]);
    copy_in(back, gru ? out[BEFORE] : NULL, result->out[BEFORE]);
    copy_in(back, out[C], result->out[C]);
    copy_in(back, in[C0], given(scene, C0));
    copy_in(back, in[CONT], given(scene, CONT));
    copy_in(back, in[W], given(scene, W));
    const struct ls_value *like[BACK_OUTPUTS] = {in[Z], gru ? in[Z] : NULL, in[STILL], in[H0],
                                                 in[C0]};
    for (int k = 0; k < BACK_OUTPUTS; k++)
        if (like[k] != NULL)
            scene_out(back, like[k]->shape);
        else
            back->out[back->op.outputs++] = NULL;
}

/* What a layer makes of them: dw = du^T before, db = the sum of du. */
static int64_t check_products(struct op_scene *scene, float *const weights[], const float *before,
                              const float *du)
{
    const struct ls_recurrent_attr *attr = &scene->op.attr.recurrent;
    const int64_t rows = attr->steps * attr->rows, hidden = attr->hidden;
    const int64_t width = ls_cell_parts(attr->cell) * hidden;
    float dw[4 * HIDDEN_MAX * HIDDEN_MAX] = {0}, db[4 * HIDDEN_MAX] = {0};
    int64_t compared = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++) {
            db[j] += du[r * width + j];
            for (int64_t k = 0; k < hidden; k++)
                dw[j * hidden + k] += du[r * width + j] * before[r * hidden + k];
        }
    if (has(scene->in, W))
        compared += check_slopes(scene, W, weights, dw);
    if (has(scene->in, B))
        compared += check_slopes(scene, B, weights, db);
    return compared;
}

static int64_t check_round(enum ls_cell cell, uint64_t round)
{
    struct op_scene scene = {.round = round}, back;
    struct op_result result, gradients;
    int64_t compared = 0;
    scene.op.kind = LS_OP_RECURRENT;
    op_makers[LS_OP_RECURRENT](&scene);
    const struct ls_recurrent_attr *attr = &scene.op.attr.recurrent;
    if (attr->cell == cell && !attr->bf16 && attr->hidden <= HIDDEN_MAX && has(scene.out, BEFORE)) {
        const int outputs[] = {H, H_LAST, C_LAST};
        float *weights[3] = {NULL};
        for (int o = 0; o < 3; o++) {
            const struct ls_value *out = scene.out[outputs[o]];
            const int64_t n = out != NULL ? ls_shape_size(&out->shape) : 0;
            weights[o] = ls_alloc((size_t)n + 1, sizeof(float));
            for (int64_t i = 0; i < n; i++)
                weights[o][i] = 2 * ls_random_uniform(94 + (uint64_t)o, round, (uint64_t)i) - 1;
        }
        scene_run(&scene, reference_device(), &ls_layout_plain, &result);
        make_backward(&scene, &result, weights, &back);
        scene_run(&back, reference_device(), &ls_layout_plain, &gradients);
        const int inputs[BACK_OUTPUTS] = {Z, -1, STILL, H0, C0};
        for (int k = 0; k < BACK_OUTPUTS; k++)
            if (back.out[k] != NULL && inputs[k] >= 0)
                compared += check_slopes(&scene, inputs[k], weights, gradients.out[k]);
        compared += check_products(&scene, weights, result.out[BEFORE],
                                   gradients.out[back.out[DU] != NULL ? DU : DZ]);
        result_free(&result);
        result_free(&gradients);
        scene_free(&back);
        for (int o = 0; o < 3; o++)
            ls_free(weights[o]);
    }
    scene_free(&scene);
    return compared;
}

static void gradients_are_slopes(void **state)
{
    const enum ls_cell cell = *(const enum ls_cell *)*state;
    int64_t compared = 0;
    for (uint64_t round = 0; round < ROUNDS; round++)
        compared += check_round(cell, round);
    assert_true(compared >= 300);
}

int main(void)
{
    static const enum ls_cell cells[] = {LS_CELL_RNN, LS_CELL_LSTM, LS_CELL_GRU};
    static const char *const names[] = {"rnn", "lstm", "gru"};
    static struct CMUnitTest tests[3];
    for (int i = 0; i < 3; i++)
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = gradients_are_slopes,
                                       .initial_state = (void *)(uintptr_t)&cells[i]};
    reference_device()->enter_thread();
    return _cmocka_run_group_tests("recurrent", tests, 3, NULL, NULL);
}
