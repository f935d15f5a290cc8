/* Nets of tests: placeholders are replaced, all of them and nothing else; and every file of
 * tests/nets is a net of some test. SPDX-License-Identifier: BSD-2-Clause */
#include "support/nets.h"

#include <dirent.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

/* `text` with the values becomes `expected`; NULL: it is refused with `problem`. */
static void check(const char *text, const struct ls_test_value *values, const char *expected,
                  const char *problem)
{
    char found[256];
    char *filled = ls_test_fill(text, values, found, sizeof found);
    assert_string_equal(found, problem);
    if (expected == NULL)
        assert_null(filled);
    else
        assert_string_equal(filled, expected);
    free(filled);
}

static void placeholders_are_replaced_wherever_they_stand(void **state)
{
    (void)state;
    check("batch_size: @batch@ group: @group@ stride: @batch@",
          LS_TEST_VALUES({"group", "3"}, {"batch", "32"}), "batch_size: 32 group: 3 stride: 32",
          "");
    check("@more@@less@", LS_TEST_VALUES({"more", ""}, {"less", NULL}), "", "");
    check("no placeholder", NULL, "no placeholder", "");
    check("@a@@b_2@", LS_TEST_VALUES({"a", "@b_2@"}, {"b_2", "x"}), "@b_2@x", "");
}

static void what_is_no_placeholder_stays(void **state)
{
    (void)state;
    check("a@b.org @ @@ @Batch@ @batch size@ @", NULL, "a@b.org @ @@ @Batch@ @batch size@ @", "");
}

static void lines_of_comments_stay(void **state)
{
    (void)state;
    check("# @a@ is a\n @a@ # @a@\n  # @b@\n", LS_TEST_VALUES({"a", "1"}),
          "# @a@ is a\n 1 # 1\n  # @b@\n", "");
    check("# @a@", LS_TEST_VALUES({"a", "1"}), NULL, "there is no placeholder @a@");
}

static void the_directory_is_that_of_the_test(void **state)
{
    (void)state;
    char expected[4200];
    snprintf(expected, sizeof expected, "source: \"%s/images\"", ls_test_directory());
    check("source: \"@directory@/images\"", NULL, expected, "");
}

static void a_placeholder_without_a_value_is_refused(void **state)
{
    (void)state;
    check("batch_size: @batch@", NULL, NULL, "the placeholder @batch@ has no value");
    check("batch_size: @batch@", LS_TEST_VALUES({"batc", "1"}), NULL,
          "the placeholder @batch@ has no value");
}

static void a_text_without_a_placeholder_is_refused(void **state)
{
    (void)state;
    check("batch_size: @batch@", LS_TEST_VALUES({"batch", "1"}, {"group", "2"}), NULL,
          "there is no placeholder @group@");
    check("batch_size: 1", LS_TEST_VALUES({"group", NULL}), "batch_size: 1", "");
}

/* ---- Files ----------------------------------------------------------------------------------- */

enum { FILES_MAX = 256 };

static struct {
    char in_c[FILES_MAX][128], in_scripts[FILES_MAX][128]; /* how tests name them */
    bool used[FILES_MAX];
    size_t count;
} files;

/* Marks the files that a source file of a test names. */
static int look_into(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)place;
    const char *ending = strrchr(path, '.');
    bool script = ending != NULL && strcmp(ending, ".sh") == 0;
    bool source = ending != NULL && (strcmp(ending, ".c") == 0 || strcmp(ending, ".h") == 0);
    if (kind != FTW_F || (!script && !source))
        return 0;
    size_t size;
    char *text = ls_test_read(path, &size);
    for (size_t i = 0; i < files.count; i++)
        if (strstr(text, script ? files.in_scripts[i] : files.in_c[i]) != NULL)
            files.used[i] = true;
    free(text);
    return 0;
}

static void every_file_is_a_net_of_some_test(void **state)
{
    (void)state;
    DIR *folder = opendir(ls_test_source("tests/nets"));
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *ending = strstr(entry->d_name, ".prototxt");
        if (ending == NULL)
            continue;
        assert_true(files.count < FILES_MAX);
        int length = (int)(ending - entry->d_name);
        snprintf(files.in_c[files.count], sizeof files.in_c[0], "\"%.*s\"", length, entry->d_name);
        snprintf(files.in_scripts[files.count++], sizeof files.in_scripts[0], "test_net %.*s ",
                 length, entry->d_name);
    }
    closedir(folder);
    assert_true(files.count > 0);
    assert_int_equal(nftw(ls_test_source("tests"), look_into, 16, FTW_PHYS), 0);
    for (size_t i = 0; i < files.count; i++)
        if (!files.used[i])
            fail_msg("tests/nets: no test names %s", files.in_c[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders_are_replaced_wherever_they_stand),
        cmocka_unit_test(what_is_no_placeholder_stays),
        cmocka_unit_test(lines_of_comments_stay),
        cmocka_unit_test(the_directory_is_that_of_the_test),
        cmocka_unit_test(a_placeholder_without_a_value_is_refused),
        cmocka_unit_test(a_text_without_a_placeholder_is_refused),
        cmocka_unit_test(every_file_is_a_net_of_some_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
