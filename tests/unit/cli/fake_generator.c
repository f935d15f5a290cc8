/* The fake library's generators: texts of 'a' to 'e', each time the next letter.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"
#include "fake_library.h"

enum { LETTERS = 5, MOST = 1000 };

struct lockstep_generator {
    int samples, ends; /* with a tokenizer 'e' ends texts */
    int32_t last, ids[MOST];
};

void lockstep_generator_options_init(struct lockstep_generator_options *options)
{
    *options = (struct lockstep_generator_options){
        .struct_size = sizeof *options, .temperature = 1, .top_p = 1};
}

int lockstep_generator_load(const char *path, const char *weights,
                            const struct lockstep_generator_options *options,
                            struct lockstep_generator **generator, struct lockstep_error *error)
{
    fake_note("generator(%s|%s|%d|%g|%lld|%g|%llu|%d) ", path, weights, options->samples,
              options->temperature, (long long)options->top_k, options->top_p,
              (unsigned long long)options->seed, options->whole);
    fake_note_device(options->device);
    *generator = fake.load_status == 0 ? fake_make(sizeof **generator) : NULL;
    if (*generator != NULL)
        **generator = (struct lockstep_generator){.samples = options->samples,
                                                  .ends = options->tokenizer != NULL};
    return fake_answer(fake.load_status, error);
}

void lockstep_generator_free(struct lockstep_generator *generator)
{
    fake_unmake(generator);
}

size_t lockstep_generator_vocabulary(const struct lockstep_generator *generator)
{
    (void)generator;
    return LETTERS;
}

int64_t lockstep_generator_window(const struct lockstep_generator *generator)
{
    (void)generator;
    return 0;
}

int lockstep_generator_encode(struct lockstep_generator *generator, const char *text, size_t length,
                              const int32_t **ids, size_t *count, struct lockstep_error *error)
{
    *count = length;
    *ids = generator->ids;
    for (size_t i = 0; i < length && i < MOST; i++)
        if (text[i] < 'a' || text[i] >= 'a' + LETTERS)
            return fake_answer(LOCKSTEP_USAGE, error);
        else
            generator->ids[i] = text[i] - 'a';
    return 0;
}

/* The first letter of a text is a capital one. */
const char *lockstep_generator_token(struct lockstep_generator *generator, int32_t id, int begins,
                                     size_t *length)
{
    (void)generator;
    *length = 1;
    return &(begins ? "ABCDE" : "abcde")[id];
}

int lockstep_generator_ends(const struct lockstep_generator *generator, int32_t id)
{
    return generator->ends && id == LETTERS - 1;
}

int32_t lockstep_generator_start(const struct lockstep_generator *generator)
{
    (void)generator;
    return LETTERS - 1;
}

int lockstep_generator_begin(struct lockstep_generator *generator, const int32_t *ids, size_t count,
                             struct lockstep_error *error)
{
    generator->last = ids[count - 1];
    return fake_answer(generator->last < LETTERS ? 0 : LOCKSTEP_USAGE, error);
}

int lockstep_generator_next(struct lockstep_generator *generator, int32_t *ids,
                            struct lockstep_error *error)
{
    generator->last = (generator->last + 1) % LETTERS;
    for (int i = 0; i < generator->samples; i++)
        ids[i] = (generator->last + i) % LETTERS;
    return fake_answer(fake.run_status, error);
}
