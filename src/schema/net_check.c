/* What a definition to train from says in vain: fields of a net that change nothing (a warning),
 * and learned values, which belong into a file of weights (refused).
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schema/fields.h"
#include "schema/solver_parts.h"

/* The fields that a filler reads besides `type`; what it must not have is refused where the blob is
 * known. */
static const struct {
    const char *type;
    const char *fields[3];
} fillers[] = {
    {"constant", {"value"}},
    {"uniform", {"min", "max"}},
    {"integer", {"min", "max"}},
    {"boxes", {"min", "max"}},
    {"gaussian", {"mean", "std", "sparse"}},
    {"xavier", {"variance_norm"}},
    {"msra", {"variance_norm"}},
    {"positive_unitball", {NULL}},
    {"bilinear", {NULL}},
};

/* Whether the fillers of a type read a field; of an unknown type, too, which is another problem. */
static bool filler_reads(const char *type, const char *field)
{
    for (size_t i = 0; i < sizeof fillers / sizeof fillers[0]; i++) {
        if (strcmp(fillers[i].type, type) != 0)
            continue;
        for (size_t k = 0; k < 3 && fillers[i].fields[k] != NULL; k++)
            if (strcmp(fillers[i].fields[k], field) == 0)
                return true;
        return false;
    }
    return true;
}

/* Fields that fillers of a type do not read, found in one net: told once, with their number. */
struct vain {
    const char *type, *field;
    const struct ls_definition *definition;
    const Lockstep__LayerParameter *layer; /* the first one */
    const Lockstep__FillerParameter *filler;
    size_t net, count;
};

struct vain_list {
    struct vain item[64]; /* types that are known, times fields of fillers */
    size_t count;
};

/* Counts one; in a later net only what the nets before it did not have. */
static void note(struct vain_list *list, const struct vain *found)
{
    for (size_t i = 0; i < list->count; i++) {
        struct vain *item = &list->item[i];
        if (strcmp(item->type, found->type) != 0 || strcmp(item->field, found->field) != 0)
            continue;
        item->count += item->net == found->net;
        return;
    }
    if (list->count < sizeof list->item / sizeof list->item[0])
        list->item[list->count++] = *found;
}

static void check_filler(struct vain_list *list, struct vain found)
{
    const ProtobufCMessageDescriptor *descriptor = found.filler->base.descriptor;
    found.type = found.filler->type != NULL ? found.filler->type : "constant";
    found.count = 1;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        found.field = field->name;
        if (strcmp(field->name, "type") != 0 && ls_field_count(&found.filler->base, field) > 0 &&
            !filler_reads(found.type, field->name))
            note(list, &found);
    }
}

/* Looks for fillers in a message of a layer and those inside it. */
static void check_fillers(struct vain_list *list, struct vain where,
                          const ProtobufCMessage *message)
{
    if (message->descriptor == &lockstep__filler_parameter__descriptor) {
        where.filler = (const Lockstep__FillerParameter *)message;
        check_filler(list, where);
        return;
    }
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        for (size_t k = 0; k < ls_field_count(message, field); k++) {
            const ProtobufCMessage *const *inner = ls_field_at(message, field, k);
            check_fillers(list, where, *inner);
        }
    }
}

static void tell(struct ls_solver_reading *reading, const struct vain_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct vain *item = &list->item[i];
        char more[64] = "";
        if (item->count > 1)
            snprintf(more, sizeof more, " (%zu fillers)", item->count);
        ls_solver_warn_at(reading, item->definition, item->filler, item->field,
                          "layer '%s': %s does nothing in a filler of type '%s'%s",
                          item->layer->name != NULL ? item->layer->name : "", item->field,
                          item->type, more);
    }
}

static int check_blobs(struct ls_solver_reading *reading, const struct ls_definition *definition,
                       const Lockstep__LayerParameter *layer)
{
    char place[LS_PLACE_MAX];
    if (layer->n_blobs == 0)
        return 0;
    ls_place(definition, layer, "blobs", place, sizeof place);
    return ls_fail(reading->error, LOCKSTEP_DEFINITION, place,
                   "name the file that has them in weights: \"file\"",
                   "layer '%s' comes with learned values, which a definition cannot bring",
                   layer->name != NULL ? layer->name : "");
}

/* Data of the working directory, where those beside the definition may be meant. */
static void check_sources(struct ls_solver_reading *reading, const struct ls_definition *definition,
                          const Lockstep__LayerParameter *layer)
{
    const Lockstep__DataParameter *param = layer->data_param;
    for (size_t i = 0; param != NULL && i < param->n_source; i++) {
        char *other = ls_solver_passed_over(param->source[i], definition->file);
        if (other == NULL)
            continue;
        ls_solver_warn_at(reading, definition, param, "source",
                          "layer '%.100s': its data are '%s' of the working directory, not '%s', "
                          "which is there, too",
                          layer->name != NULL ? layer->name : "", param->source[i], other);
        ls_free(other);
        break;
    }
}

int ls_solver_check_nets(struct ls_solver_reading *reading)
{
    const struct ls_solver_definition *out = reading->out;
    struct vain_list vain = {.count = 0};
    int status = 0;
    for (size_t i = 0; i <= out->test_count; i++) {
        const struct ls_net_definition *net = i == 0 ? &out->train : &out->test[i - 1];
        if (net->net->force_backward)
            ls_solver_warn_at(reading, net->definition, net->net, "force_backward",
                              "force_backward does nothing: gradients are computed where something "
                              "learns from them");
        for (size_t k = 0; k < net->net->n_layer; k++) {
            const Lockstep__LayerParameter *layer = net->net->layer[k];
            int found = check_blobs(reading, net->definition, layer);
            status = status != 0 ? status : found;
            check_sources(reading, net->definition, layer);
            check_fillers(&vain,
                          (struct vain){.definition = net->definition, .layer = layer, .net = i},
                          &layer->base);
        }
    }
    tell(reading, &vain);
    return status;
}
