/* See kernels/convolution_trial.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/convolution_trial.h"

void set_windows(struct convolution_size *c, const struct shape_case *shape, int size[3])
{
    for (int a = 0; a < 3; a++) {
        bool used = a < shape->axes;
        size[a] = used ? shape->size : 1;
        c->kernel[a] = used ? shape->kernel : 1;
        c->stride[a] = used ? shape->stride : 1;
        c->pad[a] = used ? shape->pad : 0;
        c->dilation[a] = used ? shape->dilation : 1;
    }
}

struct ls_shape tensor_shape(int n, int channels, const int size[3], int axes)
{
    struct ls_shape shape = {.rank = axes + 2, .dim = {n, channels}};
    for (int a = 0; a < axes; a++)
        shape.dim[a + 2] = size[a];
    return shape;
}

double product(const int size[3])
{
    return (double)size[0] * size[1] * size[2];
}

void set_attributes(struct ls_convolution_attr *attr, const struct convolution_size *c, int axes,
                    bool bias)
{
    *attr = (struct ls_convolution_attr){.group = c->group, .bias = bias};
    attr->window.axes = axes;
    for (int a = 0; a < 3; a++) {
        attr->window.kernel[a] = c->kernel[a];
        attr->window.stride[a] = c->stride[a];
        attr->window.pad[a] = c->pad[a];
        attr->window.dilation[a] = c->dilation[a];
    }
}

void add_tensors(struct trial *trial, enum trial_pass pass, const struct ls_shape *x,
                 const struct ls_shape *y, const struct ls_shape *w, const struct ls_shape *bias)
{
    if (pass == TRIAL_FORWARD) {
        trial_in(trial, x, 1);
        trial_in(trial, w, 2);
        if (bias != NULL)
            trial_in(trial, bias, 3);
        else
            trial->in[trial->op.inputs++] = NULL;
        trial_out(trial, y);
    } else if (pass == TRIAL_DATA) {
        trial_in(trial, y, 4);
        trial_in(trial, w, 2);
        trial_out(trial, x);
    } else {
        trial_in(trial, x, 1);
        trial_in(trial, y, 4);
        trial_out(trial, w);
        if (bias != NULL)
            trial_out(trial, bias);
        else
            trial->out[trial->op.outputs++] = NULL;
    }
}

void compare_samples(const struct trial *all, const struct trial *some, int n, const char *name)
{
    const struct ls_value *output = some->out[0];
    size_t bytes = (size_t)ls_shape_size(&output->shape) * sizeof(float);
    assert_ptr_equal(some->in[0]->layout, all->in[0]->layout);
    assert_ptr_equal(some->in[1]->layout, all->in[1]->layout);
    assert_ptr_equal(output->layout, all->out[0]->layout);
    if (memcmp(some->plain[output->index], all->plain[all->out[0]->index], bytes) != 0)
        fail_msg("%s: %s (%s, %s): %d samples give other bits than %lld", name, some->kernel->name,
                 some->prepared.implementation, all->prepared.implementation, n,
                 (long long)all->out[0]->shape.dim[0]);
}
