/* The table of golden bits as text, and what differs. SPDX-License-Identifier: BSD-2-Clause */
#include "golden/golden.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static const char heading[] =
    "# Golden bits: what the networks of tests/golden/nets become. Written by ./run golden; see\n"
    "# docs/numerics.md, section 13, before you write it anew.\n"
    "#\n"
    "# net NAME numerics N isa ISA onednn VERSION cache L1,L2   (any - -: own kernels alone)\n"
    "# sha256 HASH of all tensors of the last snapshot\n"
    "# tests HASH of the outputs of all test nets; short hashes from here on\n"
    "# parameters NAMES\n"
    "# update N LOSS WEIGHTS of each parameter, 0: before the first\n";

static void damaged(int line, const char *what)
{
    fprintf(stderr, "tests/golden/table.txt:%d: %s\n", line, what);
    exit(1);
}

static uint32_t take_hash(char *word, int line)
{
    char *end = word;
    unsigned long value = word != NULL ? strtoul(word, &end, 16) : 0;
    if (word == NULL || end != word + 8 || *end != '\0')
        damaged(line, "a hash of 8 digits is expected");
    return (uint32_t)value;
}

static void take_parameters(struct golden_bits *bits, int line)
{
    for (char *word = strtok(NULL, " "); word != NULL; word = strtok(NULL, " ")) {
        if (bits->parameters == GOLDEN_PARAMETERS_MAX)
            damaged(line, "too many parameters");
        snprintf(bits->name[bits->parameters++], GOLDEN_NAME_MAX, "%s", word);
    }
}

static void take_update(struct golden_bits *bits, int line)
{
    const char *number = strtok(NULL, " ");
    if (bits->updates == GOLDEN_UPDATES_MAX || number == NULL || atoi(number) != bits->updates)
        damaged(line, "another update is expected");
    bits->loss[bits->updates] = take_hash(strtok(NULL, " "), line);
    for (int i = 0; i < bits->parameters; i++)
        bits->weights[bits->updates][i] = take_hash(strtok(NULL, " "), line);
    bits->updates++;
}

static void take_line(struct golden_table *table, char *text, int line)
{
    if (strncmp(text, "net ", 4) == 0) {
        struct golden_key *key = &golden_table_add(table)->key;
        if (sscanf(text, "net %63s numerics %d isa %15s onednn %31s cache %31s", key->net,
                   &key->numerics, key->isa, key->onednn, key->cache) != 5)
            damaged(line, "a key is expected");
        return;
    }
    const char *word = strtok(text, " ");
    if (word == NULL || word[0] == '#')
        return;
    if (table->count == 0)
        damaged(line, "a line \"net ...\" is expected");
    struct golden_bits *bits = &table->entries[table->count - 1].bits;
    if (strcmp(word, "sha256") == 0) {
        const char *hash = strtok(NULL, " ");
        snprintf(bits->sha256, sizeof bits->sha256, "%s", hash != NULL ? hash : "");
    } else if (strcmp(word, "tests") == 0) {
        bits->tests = take_hash(strtok(NULL, " "), line);
    } else if (strcmp(word, "parameters") == 0) {
        take_parameters(bits, line);
    } else if (strcmp(word, "update") == 0) {
        take_update(bits, line);
    } else {
        damaged(line, "what is this?");
    }
}

void golden_table_read(struct golden_table *table)
{
    static char text[4096];
    int line = 0;
    *table = (struct golden_table){.entries = calloc(GOLDEN_ENTRIES_MAX, sizeof *table->entries)};
    FILE *file = fopen(ls_test_source("tests/golden/table.txt"), "r");
    if (table->entries == NULL)
        damaged(0, "out of memory");
    while (file != NULL && fgets(text, sizeof text, file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
        take_line(table, text, ++line);
    }
    if (file != NULL)
        fclose(file);
}

static int compare_entries(const void *a, const void *b)
{
    const struct golden_key *x = &((const struct golden_entry *)a)->key;
    const struct golden_key *y = &((const struct golden_entry *)b)->key;
    int order = strcmp(x->net, y->net);
    order = order != 0 ? order : strcmp(x->onednn, y->onednn);
    order = order != 0 ? order : strcmp(x->cache, y->cache);
    return order != 0 ? order : strcmp(x->isa, y->isa);
}

void golden_table_write(const struct golden_table *table)
{
    const char *path = ls_test_source("tests/golden/table.txt");
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    qsort(table->entries, table->count, sizeof *table->entries, compare_entries);
    fputs(heading, file);
    for (size_t e = 0; e < table->count; e++) {
        const struct golden_key *key = &table->entries[e].key;
        const struct golden_bits *bits = &table->entries[e].bits;
        fprintf(file, "\nnet %s numerics %d isa %s onednn %s cache %s\nsha256 %s\n", key->net,
                key->numerics, key->isa, key->onednn, key->cache, bits->sha256);
        fprintf(file, "tests %08" PRIx32 "\nparameters", bits->tests);
        for (int i = 0; i < bits->parameters; i++)
            fprintf(file, " %s", bits->name[i]);
        for (int u = 0; u < bits->updates; u++) {
            fprintf(file, "\nupdate %d %08" PRIx32, u, bits->loss[u]);
            for (int i = 0; i < bits->parameters; i++)
                fprintf(file, " %08" PRIx32, bits->weights[u][i]);
        }
        fputs("\n", file);
    }
    if (fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

void golden_table_free(struct golden_table *table)
{
    free(table->entries);
}

struct golden_entry *golden_table_find(const struct golden_table *table,
                                       const struct golden_key *key)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct golden_key *other = &table->entries[i].key;
        if (other->numerics == key->numerics && strcmp(other->net, key->net) == 0 &&
            strcmp(other->isa, key->isa) == 0 && strcmp(other->onednn, key->onednn) == 0 &&
            strcmp(other->cache, key->cache) == 0)
            return &table->entries[i];
    }
    return NULL;
}

struct golden_entry *golden_table_add(struct golden_table *table)
{
    if (table->count == GOLDEN_ENTRIES_MAX)
        damaged(0, "too many entries");
    return &table->entries[table->count++];
}

/* ---- What differs ---------------------------------------------------------------------------- */

static bool difference_of_shape(const struct golden_bits *got, const struct golden_bits *want,
                                char *text, size_t size)
{
    if (got->updates != want->updates || got->parameters != want->parameters) {
        snprintf(text, size, "%d updates of %d parameters instead of %d of %d", got->updates - 1,
                 got->parameters, want->updates - 1, want->parameters);
        return true;
    }
    for (int i = 0; i < got->parameters; i++)
        if (strcmp(got->name[i], want->name[i]) != 0) {
            snprintf(text, size, "parameter %d is %s instead of %s", i + 1, got->name[i],
                     want->name[i]);
            return true;
        }
    return false;
}

static bool difference_of_update(const struct golden_bits *got, const struct golden_bits *want,
                                 int u, char *text, size_t size)
{
    int first = -1, count = 0;
    for (int i = 0; i < got->parameters; i++) {
        bool differs = got->weights[u][i] != want->weights[u][i];
        first = differs && first < 0 ? i : first;
        count += differs;
    }
    bool loss = got->loss[u] != want->loss[u];
    if (first >= 0)
        snprintf(text, size,
                 "update %d is the first that differs, parameter %s the first there (%d of %d "
                 "differ), %s",
                 u, got->name[first], count, got->parameters,
                 u == 0 ? "which is what fillers made"
                 : loss ? "and its loss differs: look at the forward pass"
                        : "its loss agrees: look at the backward pass and the update");
    else if (loss)
        snprintf(text, size, "the loss of update %d differs, all weights agree", u);
    return first >= 0 || loss;
}

bool golden_difference(const struct golden_bits *got, const struct golden_bits *want, char *text,
                       size_t size)
{
    if (difference_of_shape(got, want, text, size))
        return true;
    for (int u = 0; u < got->updates; u++)
        if (difference_of_update(got, want, u, text, size))
            return true;
    if (got->tests != want->tests) {
        snprintf(text, size, "all weights agree; outputs of a test net differ");
        return true;
    }
    if (strcmp(got->sha256, want->sha256) != 0) {
        snprintf(text, size,
                 "all weights agree; what the optimizer keeps, averages or exponents differ "
                 "(SHA-256 %.16s..., not %.16s...)",
                 got->sha256, want->sha256);
        return true;
    }
    return false;
}
