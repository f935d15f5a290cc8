/* What plans of cuDNN compute, in plain loops. See cudnn.cc. SPDX-License-Identifier: BSD-2-Clause
 */
#include "cuda/fake/inner.h"

#if LS_CUDA_HAS_CUDNN

#include <cstring>

#include "cuda/fake/cudnn_inner.h"

namespace fake_cudnn
{

namespace
{

/* Places along samples (or channels of weights), channels, and three spatial axes. */
struct place {
    int64_t at[5];
};

float cut(float x, int digits)
{
    uint32_t bits, unit = 1u << (23 - digits);
    std::memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + (unit / 2 - 1) + (bits / unit & 1)) / unit * unit;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

/* An array with the rounding that an engine does of its operands. */
struct array {
    const tensor &of;
    void *data;
    int digits; /* 23: nothing is rounded */

    int64_t find(const place &p) const
    {
        int64_t at = 0;
        for (int a = 0; a < 5; a++)
            at += p.at[a] * of.step(a);
        return at;
    }

    float get(const place &p) const
    {
        float x;
        if (of.type == CUDNN_DATA_BFLOAT16) {
            const uint32_t bits = (uint32_t)((const uint16_t *)data)[find(p)] << 16;
            std::memcpy(&x, &bits, sizeof x);
        } else {
            x = ((const float *)data)[find(p)];
        }
        return digits < 23 ? cut(x, digits) : x;
    }

    void put(const place &p, float x) const
    {
        if (of.type != CUDNN_DATA_BFLOAT16) {
            ((float *)data)[find(p)] = x;
            return;
        }
        const float rounded = cut(x, 7);
        uint32_t bits;
        std::memcpy(&bits, &rounded, sizeof bits);
        ((uint16_t *)data)[find(p)] = (uint16_t)(bits >> 16);
    }
};

/* Calls f with each place of three axes. */
template <class F> void each(const int64_t size[3], F f)
{
    int64_t at[3];
    for (at[0] = 0; at[0] < size[0]; at[0]++)
        for (at[1] = 0; at[1] < size[1]; at[1]++)
            for (at[2] = 0; at[2] < size[2]; at[2]++)
                f(at);
}

struct spatial {
    int64_t x[3], w[3], y[3];
};

/* Where weight t of the window at y lies in x; false: outside. */
bool find_x(const problem &of, const spatial &size, const int64_t *y, const int64_t *t, int64_t *x)
{
    for (int a = 0; a < 3; a++) {
        x[a] = y[a] * of.stride[a] + t[a] * of.dilation[a] - of.pad[a];
        if (x[a] < 0 || x[a] >= size.x[a])
            return false;
    }
    return true;
}

/* The window that meets x with weight t. */
bool find_y(const problem &of, const spatial &size, const int64_t *x, const int64_t *t, int64_t *y)
{
    for (int a = 0; a < 3; a++) {
        const int64_t from = x[a] + of.pad[a] - t[a] * of.dilation[a];
        y[a] = from / of.stride[a];
        if (from < 0 || from % of.stride[a] != 0 || y[a] >= size.y[a])
            return false;
    }
    return true;
}

place at(int64_t n, int64_t c, const int64_t *p)
{
    return {{n, c, p[0], p[1], p[2]}};
}

struct operands {
    array x, w, y;
    spatial size;
    int64_t x_channels, y_channels; /* of a group */
};

float sum_to_y(const problem &of, const operands &o, int64_t n, int64_t k, const int64_t *y)
{
    const int64_t group = k / o.y_channels;
    float sum = 0;
    for (int64_t c = 0; c < o.x_channels; c++)
        each(o.size.w, [&](const int64_t *t) {
            int64_t x[3];
            if (find_x(of, o.size, y, t, x))
                sum += o.x.get(at(n, group * o.x_channels + c, x)) * o.w.get(at(k, c, t));
        });
    return sum;
}

float sum_to_x(const problem &of, const operands &o, int64_t n, int64_t c, const int64_t *x)
{
    const int64_t group = c / o.x_channels;
    float sum = 0;
    for (int64_t k = group * o.y_channels; k < (group + 1) * o.y_channels; k++)
        each(o.size.w, [&](const int64_t *t) {
            int64_t y[3];
            if (find_y(of, o.size, x, t, y))
                sum += o.y.get(at(n, k, y)) * o.w.get(at(k, c % o.x_channels, t));
        });
    return sum;
}

float sum_to_w(const problem &of, const operands &o, int64_t k, int64_t c, const int64_t *t)
{
    const int64_t group = k / o.y_channels;
    float sum = 0;
    for (int64_t n = 0; n < of.x.dim[0]; n++)
        each(o.size.y, [&](const int64_t *y) {
            int64_t x[3];
            if (find_x(of, o.size, y, t, x))
                sum += o.x.get(at(n, group * o.x_channels + c, x)) * o.y.get(at(n, k, y));
        });
    return sum;
}

/* Digits that an engine leaves of its operands: TF32 has 10. */
int digits_of(const problem &of, const engine &by)
{
    const bool down = (by.notes & 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) != 0;
    const bool cores = (by.notes & 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != 0;
    return of.is_bf16() || !cores ? 23 : down ? 7 : 10;
}

} // namespace

void compute(const problem &of, const engine &by, const std::map<int64_t, void *> &address)
{
    const int digits = digits_of(of, by);
    const bool reduced = (by.notes & 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) != 0;
    const auto find = [&](const tensor &one) {
        const auto found = address.find(one.number);
        return array{one, found == address.end() ? nullptr : found->second, digits};
    };
    operands o = {find(of.x), find(of.w), find(of.y), {}, of.w.dim[1], of.w.dim[0] / of.groups};
    int64_t size[3];
    for (int a = 0; a < 3; a++) {
        o.size.x[a] = of.x.size(2 + a);
        o.size.w[a] = of.w.size(2 + a);
        o.size.y[a] = of.y.size(2 + a);
        size[a] = of.out.size(2 + a);
    }
    const array out = find(of.out);
    for (int64_t n = 0; n < of.out.dim[0]; n++)
        for (int64_t c = 0; c < of.out.dim[1]; c++)
            each(size, [&](const int64_t *p) {
                float sum = of.what == TO_Y   ? sum_to_y(of, o, n, c, p)
                            : of.what == TO_X ? sum_to_x(of, o, n, c, p)
                                              : sum_to_w(of, o, n, c, p);
                sum = reduced ? cut(sum, 7) : sum;
                if (of.has_bias)
                    sum += ((const float *)address.at(of.bias.number))[c * of.bias.stride[1]];
                if (of.has_relu && sum < 0)
                    sum *= (float)of.slope;
                out.put(at(n, c, p), sum);
            });
}

} // namespace fake_cudnn

#endif
