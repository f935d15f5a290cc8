/* Outputs of a net as text.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/outputs.h"

#include "monitor/terminal.h"

void ls_put_outputs(FILE *out, const char *what, const struct lockstep_output *outputs,
                    size_t count)
{
    size_t number = 0;
    for (size_t i = 0; i < count; i++) {
        double weight = outputs[i].loss_weight;
        for (size_t v = 0; v < outputs[i].count; v++) {
            double value = outputs[i].values[v];
            const char *const *classes = outputs[i].classes;
            if (classes != NULL && classes[v] == NULL)
                continue;
            fprintf(out, "    %s output #%zu: ", what, number++);
            ls_put_clean(out, outputs[i].name);
            if (outputs[i].count > 1)
                fprintf(out, "[%zu]", v);
            fprintf(out, " = %.6g", value);
            if (weight != 0)
                fprintf(out, " (* %.6g = %.6g loss)", weight, weight * value);
            if (classes != NULL && classes[v][0] != '\0') {
                fputs(" (", out);
                ls_put_clean(out, classes[v]);
                putc(')', out);
            }
            putc('\n', out);
        }
    }
}

void ls_put_outputs_in_line(FILE *out, const struct lockstep_output *outputs, size_t count)
{
    enum { SHOWN = 5 }; /* of an output: figures per class can be a thousand */
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : " ", out);
        ls_put_clean(out, outputs[i].name);
        fputs(" =", out);
        for (size_t v = 0; v < outputs[i].count && v < SHOWN; v++)
            fprintf(out, " %.4g", outputs[i].values[v]);
        if (outputs[i].count > SHOWN)
            fprintf(out, " ... (%zu values)", outputs[i].count);
    }
}
