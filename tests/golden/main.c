/* Golden bits: golden ISA checks all networks on an instruction set, each with 1 and with 3
 * workers, and that they use everything there is; golden reference compares the reference device
 * with the CPU; golden ISA --write [--force] writes what the
 * table says of it. (A process computes with one instruction set.)
 * SPDX-License-Identifier: BSD-2-Clause */
#include "golden/golden.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lockstep/lockstep.h"
#include "ops/cpu/isa.h"
#include "support/support.h"

enum { SKIPPED = 77 };

static char names[GOLDEN_NETS_MAX][GOLDEN_NAME_MAX];
static size_t net_count;
static struct golden_table table;
static const char *isa;
static struct golden_entry first, other;
static size_t trained;

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

size_t golden_nets(char (*found)[GOLDEN_NAME_MAX])
{
    size_t count = 0;
    DIR *folder = opendir(ls_test_source("tests/golden/nets"));
    if (folder == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name), ending = strlen(".prototxt");
        if (length <= ending || strcmp(entry->d_name + length - ending, ".prototxt") != 0)
            continue;
        if (count == GOLDEN_NETS_MAX || length - ending >= GOLDEN_NAME_MAX)
            break;
        snprintf(found[count++], GOLDEN_NAME_MAX, "%.*s", (int)(length - ending), entry->d_name);
    }
    closedir(folder);
    qsort(found, count, sizeof *found, compare_names);
    return count;
}

static bool has_isa(const char *name)
{
    for (enum ls_bf16_unit unit = LS_UNIT_NONE + 1; unit < LS_UNITS; unit++)
        if (strcmp(ls_cpu_unit_name(unit), name) == 0)
            return ls_cpu_unit_state(unit) == LS_UNIT_THERE;
    for (int i = 0; i < LS_ISAS; i++)
        if (strcmp(ls_cpu_isa_name((enum ls_isa)i), name) == 0)
            return ls_cpu_isa_supported((enum ls_isa)i);
    return false;
}

static void describe(const struct golden_key *key, char *text, size_t size)
{
    if (strcmp(key->isa, "any") == 0)
        snprintf(text, size, "own kernels on any instruction set");
    else
        snprintf(text, size, "%s, oneDNN %s, caches %s", key->isa, key->onednn, key->cache);
}

/* ---- Checking -------------------------------------------------------------------------------- */

static void test_net(void **state)
{
    const char *net = *state;
    char what[512], where[128];
    golden_train(net, "cpu", isa, 1, &first);
    golden_train(net, "cpu", isa, 3, &other);
    trained++;
    if (golden_difference(&other.bits, &first.bits, what, sizeof what))
        fail_msg("%s on %s: 3 workers do not give what 1 gives: %s", net, isa, what);
    const struct golden_entry *entry = golden_table_find(&table, &first.key);
    describe(&first.key, where, sizeof where);
    if (entry == NULL && strcmp(first.key.isa, "any") == 0)
        fail_msg("%s is not in tests/golden/table.txt for %s, numerics %d: see ./run golden", net,
                 where, first.key.numerics);
    if (entry == NULL)
        ls_test_skip("tests/golden/table.txt does not know %s", where);
    if (golden_difference(&first.bits, &entry->bits, what, sizeof what))
        fail_msg("golden bits of %s on %s are others (%s): %s", net, isa, where, what);
}

/* Narrower instruction sets leave to oneDNN what wider ones have kernels for. */
static void test_coverage(void **state)
{
    (void)state;
    if (strcmp(isa, "avx2") != 0 && strncmp(isa, "avx512", 6) != 0 && strcmp(isa, "amx") != 0)
        ls_test_skip("there are kernels that need AVX2");
    assert_int_equal(trained, net_count);
    golden_check_coverage(isa);
}

/* The reference device gives the same bits with 1 and with 3 workers, and what the CPU gives, in
 * portable networks to the bit, else but for rounding, which a training makes larger from update to
 * update. */
static void test_reference(void **state)
{
    static const double tolerance = 2e-3;
    const char *net = *state;
    char what[512];
    golden_train(net, "reference", NULL, 1, &first);
    golden_train(net, "reference", NULL, 3, &other);
    if (golden_difference(&other.bits, &first.bits, what, sizeof what))
        fail_msg("%s on the reference device: 3 workers do not give what 1 gives: %s", net, what);
    golden_train(net, "cpu", NULL, 1, &other);
    const bool equal = !golden_difference(&other.bits, &first.bits, what, sizeof what);
    if (golden_is_portable(net) && !equal)
        fail_msg("%s: the CPU does not give what the reference device gives: %s", net, what);
    if (!golden_is_portable(net) && equal)
        fail_msg("%s: both devices give the same bits, which golden_is_portable should know", net);
    assert_true(first.bits.updates > 1 && first.bits.updates <= other.bits.updates);
    for (int u = 0; u < first.bits.updates; u++) {
        const double a = first.bits.figure[u], b = other.bits.figure[u];
        const double c = first.bits.norm[u], d = other.bits.norm[u];
        if (!(fabs(a - b) <= tolerance * (1 + fabs(b)) && fabs(c - d) <= tolerance * (1 + d)))
            fail_msg("%s, update %d: the loss is %.9g on the reference device, %.9g on the CPU; "
                     "squared weights are %.9g and %.9g",
                     net, u, a, b, c, d);
    }
}

static int check_reference(void)
{
    static struct CMUnitTest tests[GOLDEN_NETS_MAX];
    for (size_t i = 0; i < net_count; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = test_reference, .initial_state = names[i]};
    return _cmocka_run_group_tests("reference", tests, net_count, NULL, NULL);
}

static int check(void)
{
    static struct CMUnitTest tests[GOLDEN_NETS_MAX + 1];
    if (!has_isa(isa)) {
        printf("skipped: this processor does not have %s\n", isa);
        return SKIPPED;
    }
    for (size_t i = 0; i < net_count; i++)
        tests[i] =
            (struct CMUnitTest){.name = names[i], .test_func = test_net, .initial_state = names[i]};
    tests[net_count] =
        (struct CMUnitTest){.name = "everything_is_used", .test_func = test_coverage};
    return _cmocka_run_group_tests("golden", tests, net_count + 1, NULL, NULL);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool force;
static int refused, added, changed;

/* Entries of earlier numerics say nothing any more. */
static void drop_old(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < table.count; i++)
        if (table.entries[i].key.numerics == LOCKSTEP_NUMERICS)
            table.entries[kept++] = table.entries[i];
    memset(table.entries + kept, 0, (table.count - kept) * sizeof *table.entries);
    table.count = kept;
}

static void write_net(void **state)
{
    const char *net = *state;
    char what[512], where[128];
    golden_train(net, "cpu", isa, 1, &first);
    describe(&first.key, where, sizeof where);
    struct golden_entry *entry = golden_table_find(&table, &first.key);
    if (entry == NULL) {
        *golden_table_add(&table) = first;
        printf("added: %s, %s\n", net, where);
        added++;
    } else if (golden_difference(&first.bits, &entry->bits, what, sizeof what)) {
        printf("%s: %s, %s: %s\n", force ? "changed" : "differs", net, where, what);
        if (force)
            *entry = first;
        changed += force;
        refused += !force;
    }
}

static int write_table(void)
{
    static struct CMUnitTest tests[GOLDEN_NETS_MAX];
    for (size_t i = 0; i < net_count; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = write_net, .initial_state = names[i]};
    if (!has_isa(isa)) {
        printf("this processor does not have %s\n", isa);
        return 0;
    }
    drop_old();
    int failed = _cmocka_run_group_tests("golden", tests, net_count, NULL, NULL);
    if (failed != 0 || refused > 0) {
        if (refused > 0)
            printf("%d networks have other bits than tests/golden/table.txt says for numerics %d. "
                   "Where that is\nmeant, raise LOCKSTEP_NUMERICS (docs/numerics.md, section 13); "
                   "where a network's file was\nchanged, --force writes them. The table is as it "
                   "was.\n",
                   refused, LOCKSTEP_NUMERICS);
        return 1;
    }
    golden_table_write(&table);
    printf("tests/golden/table.txt: %d added, %d changed, %zu in all, numerics %d\n", added,
           changed, table.count, LOCKSTEP_NUMERICS);
    return 0;
}

int main(int count, char **arguments)
{
    bool writing = count > 2 && strcmp(arguments[2], "--write") == 0;
    force = count > 3 && strcmp(arguments[3], "--force") == 0;
    if (count < 2 || count > 2 + writing + force) {
        fprintf(stderr, "usage: %s ISA [--write [--force]]\n", arguments[0]);
        return 2;
    }
    isa = arguments[1];
    net_count = golden_nets(names);
    golden_table_read(&table);
    int status = writing                         ? write_table()
                 : strcmp(isa, "reference") == 0 ? check_reference()
                                                 : check();
    golden_table_free(&table);
    return status;
}
