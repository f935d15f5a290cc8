/* Loading plugins. See layers/plugins.h.
 *
 * Plugins are never unloaded: layer types, and threads that run their code, may be anywhere.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/plugins.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/text.h"
#include "layers/layers.h"

enum { TYPES_MAX = 256, PLUGINS_MAX = 64, TYPES_OF_PLUGIN_MAX = 64 };

/* Written under the lock, read without: a type is there before the count says so. */
static struct ls_plugin_type *types[TYPES_MAX];
static atomic_size_t type_count;
static struct ls_plugin *plugins[PLUGINS_MAX];
static size_t plugin_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct ls_layer_type *ls_layer_type_of_plugin(size_t index)
{
    return index < atomic_load(&type_count) ? &types[index]->type : NULL;
}

const Lockstep__FillerParameter *ls_plugin_keep_filler(const Lockstep__FillerParameter *filler)
{
    static Lockstep__FillerParameter **kept;
    static size_t count, capacity;
    Lockstep__FillerParameter *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && found == NULL; i++)
        if (memcmp(kept[i], filler, sizeof *filler) == 0)
            found = kept[i];
    if (found == NULL && (found = ls_alloc(1, sizeof *found)) != NULL) {
        *found = *filler;
        if (LS_GROW(kept, count, capacity)) {
            kept[count++] = found;
        } else {
            ls_free(found);
            found = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- What a plugin says ---------------------------------------------------------------------- */

static int refuse(struct ls_error *error, const char *path, const char *what)
{
    return ls_fail(error, LOCKSTEP_USAGE, path,
                   "build it with the lockstep/plugin.h of this version",
                   "this plugin cannot be used: %s", what);
}

static bool is_name(const char *name)
{
    if (name == NULL || !isalpha((unsigned char)name[0]) || strlen(name) > 60)
        return false;
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static bool is_range(int min, int max, int least)
{
    return min >= least && min <= max && max <= LOCKSTEP_PLUGIN_VALUES;
}

static int check_layer(const struct lockstep_plugin_layer *layer, const char *path,
                       struct ls_error *error)
{
    char text[200];
    if (layer->struct_size < sizeof *layer)
        return refuse(error, path, "the struct_size of a layer type is too small");
    if (!is_name(layer->type))
        return refuse(error, path, "the name of a layer type must be letters, digits and _");
    if (ls_layer_type_find(layer->type) != NULL) {
        snprintf(text, sizeof text, "there is a layer type '%s' already", layer->type);
        return refuse(error, path, text);
    }
    snprintf(text, sizeof text,
             "its layer type '%s' lacks setup or forward, or has numbers of bottoms or tops that "
             "cannot be",
             layer->type);
    if (layer->setup == NULL || layer->forward == NULL || layer->state_size > (size_t)1 << 30 ||
        !is_range(layer->bottoms_min, layer->bottoms_max, 1) ||
        !is_range(layer->tops_min, layer->tops_max, 1))
        return refuse(error, path, text);
    return 0;
}

static int check_plugin(const struct lockstep_plugin *plugin, const char *path,
                        struct ls_error *error)
{
    char text[120];
    snprintf(text, sizeof text, "it was built for version %u of the interface, and this is %d",
             (unsigned)plugin->abi, LOCKSTEP_PLUGIN_ABI);
    if (plugin->abi != LOCKSTEP_PLUGIN_ABI)
        return refuse(error, path, text);
    if (plugin->struct_size < sizeof *plugin || plugin->layers == NULL)
        return refuse(error, path, "it lists no layer types");
    size_t count = 0;
    for (; plugin->layers[count] != NULL; count++) {
        if (count == TYPES_OF_PLUGIN_MAX)
            return refuse(error, path, "it has too many layer types");
        LS_TRY(check_layer(plugin->layers[count], path, error));
        for (size_t i = 0; i < count; i++)
            if (strcmp(plugin->layers[i]->type, plugin->layers[count]->type) == 0)
                return refuse(error, path, "two of its layer types have one name");
    }
    return count > 0 ? 0 : refuse(error, path, "it lists no layer types");
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* Takes over the types of a plugin; the lock is held. */
static int add_types(const struct lockstep_plugin *from, const struct ls_plugin *plugin,
                     struct ls_error *error)
{
    size_t count = atomic_load(&type_count), added = 0;
    for (; from->layers[added] != NULL; added++) {
        struct ls_plugin_type *type = ls_alloc(1, sizeof *type);
        if (type == NULL || count + added == TYPES_MAX) {
            ls_free(type);
            while (added > 0)
                ls_free(types[count + --added]);
            return ls_fail_memory(error, "the layer types of a plugin");
        }
        type->layer = from->layers[added];
        type->type.plugin = plugin;
        ls_plugin_fill_type(type);
        types[count + added] = type;
    }
    atomic_store(&type_count, count + added);
    return 0;
}

static int hash_file(const char *path, char hash[LS_SHA256_TEXT], struct ls_error *error)
{
    struct ls_sha256 state;
    char *bytes;
    size_t length;
    LS_TRY(ls_file_read(path, (size_t)1 << 30, LOCKSTEP_USAGE, &bytes, &length, error));
    ls_sha256_begin(&state);
    ls_sha256_add(&state, bytes, length);
    ls_sha256_end(&state, hash);
    ls_free(bytes);
    return 0;
}

/* A record of a plugin with copies of what it is called, in one piece. */
static struct ls_plugin *new_plugin(const struct lockstep_plugin *from, const char *path,
                                    const char *hash)
{
    const char *texts[] = {path, from->name != NULL ? from->name : "",
                           from->version != NULL ? from->version : "", hash};
    struct ls_plugin *plugin = ls_alloc(1, sizeof *plugin);
    const char *copy[4] = {NULL};
    bool failed = plugin == NULL;
    for (size_t i = 0; i < 4 && !failed; i++)
        failed = (copy[i] = ls_copy_string(texts[i])) == NULL;
    if (!failed) {
        *plugin = (struct ls_plugin){copy[0], copy[1], copy[2], copy[3]};
        return plugin;
    }
    for (size_t i = 0; i < 4; i++)
        ls_free((char *)copy[i]);
    ls_free(plugin);
    return NULL;
}

static void free_plugin(struct ls_plugin *plugin)
{
    ls_free((char *)plugin->file);
    ls_free((char *)plugin->name);
    ls_free((char *)plugin->version);
    ls_free((char *)plugin->hash);
    ls_free(plugin);
}

/* Opens a file as a shared object; a name without a slash would be looked for in other folders. */
static void *open_object(const char *path, struct ls_error *error)
{
    struct ls_text full = {0};
    ls_text_format(&full, "%s%s", strchr(path, '/') != NULL ? "" : "./", path);
    if (full.failed) {
        ls_fail_memory(error, "a path");
        return NULL;
    }
    void *object = dlopen(full.data, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        ls_fail(error, LOCKSTEP_USAGE, path, "cc -shared -fPIC makes one", "%s", dlerror());
    ls_text_free(&full);
    return object;
}

static int load(const char *path, const char *hash, struct ls_error *error)
{
    void *object = open_object(path, error);
    if (object == NULL)
        return error != NULL && error->status == LOCKSTEP_RESOURCE ? LOCKSTEP_RESOURCE
                                                                   : LOCKSTEP_USAGE;
    const struct lockstep_plugin *from = dlsym(object, "lockstep_plugin");
    int status = from != NULL ? check_plugin(from, path, error)
                              : refuse(error, path, "it does not export lockstep_plugin");
    struct ls_plugin *plugin = status == 0 ? new_plugin(from, path, hash) : NULL;
    if (status == 0 && plugin == NULL)
        status = ls_fail_memory(error, "a plugin");
    if (status == 0 && (status = add_types(from, plugin, error)) == 0) {
        plugins[plugin_count++] = plugin;
        return 0;
    }
    if (plugin != NULL)
        free_plugin(plugin);
    dlclose(object);
    return status;
}

int ls_plugin_load(const char *path, const struct ls_plugin **out, struct ls_error *error)
{
    char hash[LS_SHA256_TEXT];
    LS_TRY(hash_file(path, hash, error));
    pthread_mutex_lock(&lock);
    int status = 0;
    size_t found = 0;
    while (found < plugin_count && strcmp(plugins[found]->hash, hash) != 0)
        found++;
    if (found == PLUGINS_MAX)
        status = refuse(error, path, "too many plugins are loaded");
    else if (found == plugin_count)
        status = load(path, hash, error);
    if (status == 0 && out != NULL)
        *out = plugins[found];
    pthread_mutex_unlock(&lock);
    return status;
}
