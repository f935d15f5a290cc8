/* Errors, versions, what the library is built on.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/cards.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "ops/devices.h"
#include "text/characters.h"

int ls_api_require(const void *argument, const char *what, struct ls_error *error)
{
    if (argument != NULL)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "the argument '%s' is NULL", what);
}

struct lockstep_error *lockstep_error_new(void)
{
    return ls_alloc(1, sizeof(struct lockstep_error));
}

void lockstep_error_free(struct lockstep_error *error)
{
    if (error == NULL)
        return;
    ls_free(error->text);
    ls_free(error);
}

int lockstep_error_status(const struct lockstep_error *error)
{
    return error != NULL ? error->inner.status : 0;
}

const char *lockstep_error_text(struct lockstep_error *error)
{
    if (error == NULL || error->inner.count == 0)
        return "";
    size_t length = ls_error_format(&error->inner, NULL, 0);
    ls_free(error->text);
    error->text = ls_alloc(length + 1, 1);
    if (error->text == NULL)
        return error->inner.problems[0].message;
    ls_error_format(&error->inner, error->text, length + 1);
    return error->text;
}

size_t lockstep_error_count(const struct lockstep_error *error)
{
    return error != NULL ? (size_t)error->inner.count : 0;
}

void lockstep_error_problem(const struct lockstep_error *error, size_t index,
                            struct lockstep_problem *problem)
{
    *problem = (struct lockstep_problem){.place = "", .message = "", .hint = ""};
    if (index >= lockstep_error_count(error))
        return;
    const struct ls_problem *inner = &error->inner.problems[index];
    *problem = (struct lockstep_problem){inner->status, inner->place, inner->message, inner->hint};
}

struct ls_error *ls_api_error(struct lockstep_error *error)
{
    if (error == NULL)
        return NULL;
    ls_error_clear(&error->inner);
    return &error->inner;
}

const char *lockstep_version(void)
{
    return LOCKSTEP_VERSION;
}

int lockstep_numerics(void)
{
    return LOCKSTEP_NUMERICS;
}

int lockstep_default_workers(void)
{
    return ls_cpu_count();
}

/* The kernel library takes its instruction set once; so do we. One device has a choice. */
static pthread_mutex_t isa_lock = PTHREAD_MUTEX_INITIALIZER;
static bool isa_chosen;

static int select_isa(const struct ls_device *device, const char *isa, struct ls_error *error)
{
    int status = 0;
    const char *current = device->environment->isa();
    pthread_mutex_lock(&isa_lock);
    if (!isa_chosen)
        status = isa != NULL ? device->select_isa(isa, error) : 0;
    else if (isa != NULL && !device->computes_with(isa))
        status =
            ls_fail(error, LOCKSTEP_USAGE, NULL, "start another process for it",
                    "this process computes with %s already; it cannot change to %s", current, isa);
    isa_chosen |= status == 0;
    pthread_mutex_unlock(&isa_lock);
    return status;
}

int ls_api_select(const char *name, const char *isa, struct ls_error *error)
{
    struct ls_api_cards cards;
    LS_TRY(ls_api_cards(name, &cards, error));
    const struct ls_device *device = cards.device;
    if (device->select_isa != NULL)
        return select_isa(device, isa, error);
    if (isa != NULL)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "leave the instruction set out",
                       "the device %s has no instruction sets to choose from, such as '%s'",
                       device->name, isa);
    return 0;
}

bool ls_api_offer_isa(const char *name, const char *isa)
{
    const struct ls_device *device;
    bool taken = false;
    if (ls_device_find(name, &device, NULL) != 0 || device->select_isa == NULL)
        return false;
    pthread_mutex_lock(&isa_lock);
    if (!isa_chosen && strcmp(isa, device->environment->isa()) != 0)
        taken = isa_chosen = device->select_isa(isa, NULL) == 0;
    pthread_mutex_unlock(&isa_lock);
    return taken;
}

static char *build_info;
static pthread_once_t build_info_once = PTHREAD_ONCE_INIT;

/* The module of the cards is loaded for it, where it is there. */
static void describe_cards(struct ls_text *text)
{
    const struct ls_device *device;
    struct ls_error *error = ls_alloc(1, sizeof *error);
    if (error == NULL || ls_device_find("cuda", &device, error) != 0) {
        ls_text_format(text, "cuda=none (%s)\n",
                       error != NULL && error->count > 0 ? error->problems[0].message
                                                         : "out of memory");
    } else {
        ls_text_format(text, "cuda=a module (%s)\n", device->cards->tested);
        device->cards->libraries(text);
    }
    ls_free(error);
}

static void make_build_info(void)
{
    struct ls_text text = {0};
    ls_text_format(&text, "Lockstep %s\nnumerics=%d (the version of the numerical contract)\n",
                   LOCKSTEP_VERSION, LOCKSTEP_NUMERICS);
#if defined(__clang__)
    ls_text_format(&text, "compiler=clang %s\n", __clang_version__);
#elif defined(__GNUC__)
    ls_text_format(&text, "compiler=gcc %s\n", __VERSION__);
#endif
    ls_text_format(&text, "workers=%d (the cores that this process may use)\n", ls_cpu_count());
    ls_text_add(&text, "devices=");
    for (int i = 0; i < ls_device_count; i++)
        ls_text_format(&text, "%s%s", ls_devices[i]->name, i + 1 < ls_device_count ? ", " : "\n");
    describe_cards(&text);
    for (int i = 0; i < ls_device_count; i++)
        if (ls_devices[i]->describe != NULL && ls_devices[i]->describe(&text, NULL) != 0)
            ls_text_add(&text, "kernels=unknown: out of memory\n");
    ls_text_describe(&text);
    build_info = text.data;
}

const char *lockstep_build_info(void)
{
    pthread_once(&build_info_once, make_build_info);
    return build_info != NULL ? build_info : "";
}
