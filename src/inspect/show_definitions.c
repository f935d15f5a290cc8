/* Definitions: the layers of a net, the fields of a solver. See inspect/show.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "inspect/show_inner.h"
#include "schema/definition.h"
#include "schema/fields.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"

/* Every field of a message that is set, but for messages of nets and layers. */
static void show_fields(const struct ls_showing *showing, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        struct ls_text value = {0};
        if (ls_field_count(message, field) == 0 || strcmp(field->name, "layer") == 0)
            continue;
        ls_text_write_value(message, field, &value);
        if (value.data != NULL)
            ls_show_text(showing, field->name, value.data);
        ls_text_free(&value);
    }
}

/* "Convolution data -> conv1, TRAIN": bottoms, tops, and where it is included. */
static void describe_layer(const Lockstep__LayerParameter *layer, struct ls_text *text)
{
    ls_text_add(text, layer->type != NULL ? layer->type : "?");
    for (size_t b = 0; b < layer->n_bottom; b++)
        ls_text_format(text, "%s%s", b > 0 ? ", " : "  ", layer->bottom[b]);
    for (size_t t = 0; t < layer->n_top; t++)
        ls_text_format(text, "%s%s", t > 0 ? ", " : " -> ", layer->top[t]);
    for (size_t r = 0; r < layer->n_include; r++)
        if (layer->include[r]->has_phase)
            ls_text_format(text, "  (%s)",
                           layer->include[r]->phase == LOCKSTEP__PHASE__TRAIN ? "train" : "test");
}

/* "2 Convolution, 1 Pooling", in the order in which they come. */
static void show_types(const struct ls_showing *showing, const Lockstep__NetParameter *net)
{
    struct ls_text types = {0};
    struct ls_names known = {0}; /* each type: its place in the two lists */
    const char **type = ls_alloc(net->n_layer + 1, sizeof *type);
    size_t *count = ls_alloc(net->n_layer + 1, sizeof *count), kinds = 0;
    for (size_t i = 0; i < net->n_layer && type != NULL && count != NULL; i++) {
        const char *name = net->layer[i]->type != NULL ? net->layer[i]->type : "?";
        size_t k = kinds;
        if (!ls_names_find(&known, name, &k)) {
            (void)ls_names_set(&known, name, kinds);
            type[kinds++] = name;
        }
        count[k]++;
    }
    for (size_t k = 0; k < kinds; k++)
        ls_text_format(&types, "%s%zu %s", k > 0 ? ", " : "", count[k], type[k]);
    ls_show_fact(showing, "layers", "%zu", net->n_layer);
    if (types.data != NULL)
        ls_show_text(showing, "types", types.data);
    ls_text_free(&types);
    ls_names_free(&known);
    ls_free(type);
    ls_free(count);
}

int ls_show_net(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_definition *definition;
    LS_TRY(ls_definition_read_file(showing->path, &lockstep__net_parameter__descriptor,
                                   LOCKSTEP_DEFINITION, &definition, error));
    Lockstep__NetParameter *net = (Lockstep__NetParameter *)definition->message;
    int status = ls_net_upgrade(definition, net, error);
    if (status == 0) {
        show_fields(showing, &net->base);
        show_types(showing, net);
    }
    for (size_t i = 0; i < net->n_layer && status == 0; i++) {
        struct ls_text text = {0};
        describe_layer(net->layer[i], &text);
        if (text.data != NULL)
            ls_show_record(showing, (int64_t)i,
                           net->layer[i]->name != NULL ? net->layer[i]->name : "", text.data);
        ls_text_free(&text);
    }
    ls_definition_free(definition);
    return status;
}

int ls_show_solver(const struct ls_showing *showing, struct ls_error *error)
{
    struct ls_definition *definition;
    LS_TRY(ls_definition_read_file(showing->path, &lockstep__solver_parameter__descriptor,
                                   LOCKSTEP_DEFINITION, &definition, error));
    show_fields(showing, definition->message);
    ls_definition_free(definition);
    return 0;
}
