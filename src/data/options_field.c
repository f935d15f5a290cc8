/* The fields that options name, in a definition; see data/options_inner.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/options_inner.h"

static struct ls_option_field find_in(const ProtobufCMessage *message,
                                      const ProtobufCMessageDescriptor *type, const char *name)
{
    return (struct ls_option_field){message, ls_field_named(type, name)};
}

/* The field of an option's name, "a" or "a.b"; `outer`: of "a.b" the field a. */
struct ls_option_field ls_option_field(const Lockstep__LayerParameter *layer, const char *name,
                                       bool outer)
{
    const ProtobufCMessageDescriptor *type = &lockstep__data_parameter__descriptor;
    const ProtobufCMessage *data = layer->data_param != NULL ? &layer->data_param->base : NULL;
    char first[64];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(name, "."), name);
    struct ls_option_field field = find_in(data, type, first);
    if (field.descriptor == NULL)
        field = find_in(&layer->base, layer->base.descriptor, first);
    const char *rest = strchr(name, '.');
    if (rest == NULL || outer)
        return field;
    type = field.descriptor->descriptor;
    const ProtobufCMessage *inner = NULL;
    if (field.message != NULL && ls_field_count(field.message, field.descriptor) > 0)
        inner = *(const ProtobufCMessage *const *)ls_field_at(field.message, field.descriptor, 0);
    return find_in(inner, type, rest + 1);
}

/* A number or flag; of one that is not given the schema's default. */
double ls_option_number(struct ls_option_field field)
{
    const void *value = ls_field_at(field.message, field.descriptor, 0);
    switch (field.descriptor->type) {
    case PROTOBUF_C_TYPE_UINT32:
        return *(const uint32_t *)value;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        return *(const int32_t *)value;
    case PROTOBUF_C_TYPE_UINT64:
        return (double)*(const uint64_t *)value;
    case PROTOBUF_C_TYPE_FLOAT:
        return (double)*(const float *)value;
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)value ? 1 : 0;
    default:
        return 0; /* texts and messages; no option has another type */
    }
}

const char *ls_option_choice(const ProtobufCFieldDescriptor *descriptor, double value)
{
    const ProtobufCEnumValue *found =
        protobuf_c_enum_descriptor_get_value(descriptor->descriptor, (int)value);
    return found != NULL ? found->name : "";
}

/* Whether a field says something: what is given as zero, false or "", and is that anyway, does not.
 */
bool ls_option_is_said(struct ls_option_field field)
{
    if (field.message == NULL || ls_field_count(field.message, field.descriptor) == 0)
        return false;
    const ProtobufCFieldDescriptor *d = field.descriptor;
    if (d->type == PROTOBUF_C_TYPE_MESSAGE || ls_field_is_repeated(d))
        return true;
    if (d->type == PROTOBUF_C_TYPE_STRING)
        return (*(const char *const *)ls_field_at(field.message, d, 0))[0] != '\0';
    static const uint64_t zero;
    bool default_is_zero =
        d->default_value == NULL || memcmp(d->default_value, &zero, ls_field_size(d)) == 0;
    return ls_option_number(field) != 0 || !default_is_zero;
}

int ls_option_fail(const struct ls_source_options *options, const char *field, const char *hint,
                   struct ls_error *error, const char *format, ...)
{
    char place[LS_PLACE_MAX] = "", message[500], layer[128] = "";
    const Lockstep__LayerParameter *of = options->layer;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (of != NULL) {
        const ProtobufCMessage *at = of->data_param != NULL ? &of->data_param->base : &of->base;
        struct ls_option_field found = {0};
        if (field != NULL)
            found = ls_option_field(of, field, false);
        if (found.message != NULL)
            at = found.message;
        ls_place(options->definition, at, found.message != NULL ? found.descriptor->name : NULL,
                 place, sizeof place);
        snprintf(layer, sizeof layer, "layer '%.100s': ", of->name != NULL ? of->name : "");
    }
    return ls_fail(error, LOCKSTEP_DEFINITION, place, hint, "%s%s", layer, message);
}
