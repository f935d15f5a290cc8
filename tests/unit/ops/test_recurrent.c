/* The gradients of recurrent cells on the reference device against finite differences of what it
 * computes: of LSTM, RNN and GRU, with and without what is optional.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"
#include "kernels/op_slopes.h"

enum { ROUNDS = 250, HIDDEN_MAX = 8 };
enum { Z, CONT, STILL, W, B, H0, C0 };           /* inputs of the op */
enum { H, GATES, BEFORE, C, H_LAST, C_LAST };    /* its outputs */
enum { DZ, DU, DSTILL, DH0, DC0, BACK_OUTPUTS }; /* those of its backward op */

static bool has(struct ls_value *const *values, int k)
{
    return values[k] != NULL;
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
    scene_copy_in(back, out[H], weights[0]);
    scene_copy_in(back, out[H_LAST], weights[1]);
    scene_copy_in(back, out[C_LAST], weights[2]);
    scene_copy_in(back, out[GATES], result->out[GATES]);
    scene_copy_in(back, rnn ? out[H] : NULL, result->out[H]);
    scene_copy_in(back, gru ? out[BEFORE] : NULL, result->out[BEFORE]);
    scene_copy_in(back, out[C], result->out[C]);
    scene_copy_in(back, in[C0], scene_given(scene, C0));
    scene_copy_in(back, in[CONT], scene_given(scene, CONT));
    scene_copy_in(back, in[W], scene_given(scene, W));
    const struct ls_value *like[BACK_OUTPUTS] = {in[Z], gru ? in[Z] : NULL, in[STILL], in[H0],
                                                 in[C0]};
    for (int k = 0; k < BACK_OUTPUTS; k++)
        if (like[k] != NULL)
            scene_out(back, like[k]->shape);
        else
            back->out[back->op.outputs++] = NULL;
}

/* What a layer makes of them: dw = du^T before, db = the sum of du. */
static int64_t check_products(const struct op_slopes *slopes, const float *before, const float *du)
{
    const struct op_scene *scene = slopes->scene;
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
        compared += slopes_check(slopes, W, dw);
    if (has(scene->in, B))
        compared += slopes_check(slopes, B, db);
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
        struct op_slopes slopes;
        slopes_begin(&slopes, &scene, (const int[]){H, H_LAST, C_LAST}, 3, 5e-3);
        scene_run(&scene, reference_device(), &ls_layout_plain, &result);
        make_backward(&scene, &result, slopes.weight, &back);
        scene_run(&back, reference_device(), &ls_layout_plain, &gradients);
        const int inputs[BACK_OUTPUTS] = {Z, -1, STILL, H0, C0};
        for (int k = 0; k < BACK_OUTPUTS; k++)
            if (back.out[k] != NULL && inputs[k] >= 0)
                compared += slopes_check(&slopes, inputs[k], gradients.out[k]);
        compared += check_products(&slopes, result.out[BEFORE],
                                   gradients.out[back.out[DU] != NULL ? DU : DZ]);
        result_free(&result);
        result_free(&gradients);
        scene_free(&back);
        slopes_end(&slopes);
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
