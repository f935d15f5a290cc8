/* CPU quotas and limits on memory, on trees like those under /sys/fs/cgroup.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "support/support.h"

/* Writes <test directory>/<path>, making its folders. */
static void put(const char *path, const char *text)
{
    char full[4096];
    snprintf(full, sizeof full, "%s", ls_test_path(path));
    for (char *p = full + strlen(ls_test_directory()) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(full, 0755);
        *p = '/';
    }
    ls_test_write_text(full, text);
}

/* The quota of a process whose two files hold this; "@" in mounts stands for the directory. */
static double quota(const char *groups, const char *mounts)
{
    put("cgroup", groups);
    struct ls_text text = {0};
    ls_text_add(&text, ""); /* never NULL */
    for (const char *p = mounts; *p != '\0'; p++) {
        if (*p == '@')
            ls_text_add(&text, ls_test_directory());
        else
            ls_text_add_bytes(&text, p, 1);
    }
    put("mountinfo", text.data);
    ls_text_free(&text);
    return ls_cgroup_quota(ls_test_path("cgroup"), ls_test_path("mountinfo"));
}

static const char two[] = "25 20 0:22 / /proc rw - proc proc rw\n"
                          "30 25 0:27 / @/two rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char one[] = "31 25 0:28 / @/groups rw - cgroup cgroup rw,memory\n"
                          "32 25 0:29 /docker/abc @/one rw - cgroup cgroup rw,cpu,cpuacct\n";

static void quotas_of_version_2_are_read(void **state)
{
    (void)state;
    put("two/a/b/cpu.max", "150000 100000\n");
    put("two/a/cpu.max", "max 100000\n");
    assert_true(quota("0::/a/b\n", two) == 1.5);
    put("two/a/cpu.max", "50000 100000\n"); /* a parent binds too */
    assert_true(quota("0::/a/b\n", two) == 0.5);
    put("two/c/cpu.max", "max 100000\n");
    assert_true(quota("0::/c\n", two) == 0);
    assert_true(quota("0::/\n", two) == 0);
    put("two/cpu.max", "400000 100000\n"); /* a container's root has one */
    assert_true(quota("0::/\n", two) == 4);
    assert_true(quota("0::/c\n", two) == 4);
    assert_true(quota("0::/missing/group\n", two) == 4);
    assert_int_equal(remove(ls_test_path("two/cpu.max")), 0);
}

static void quotas_of_version_1_are_read(void **state)
{
    (void)state;
    const char *groups = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc/job\n0::/\n";
    put("one/job/cpu.cfs_quota_us", "-1\n");
    put("one/job/cpu.cfs_period_us", "100000\n");
    assert_true(quota(groups, one) == 0);
    put("one/job/cpu.cfs_quota_us", "300000\n");
    assert_true(quota(groups, one) == 3);
    put("one/cpu.cfs_quota_us", "25000\n");
    put("one/cpu.cfs_period_us", "10000\n");
    assert_true(quota(groups, one) == 2.5);
    /* A group outside of what is mounted: the top of the mount still binds. */
    assert_true(quota("4:cpu,cpuacct:/other\n", one) == 2.5);
    /* "cpuset" is another controller. */
    assert_true(quota("4:cpuset:/docker/abc\n", one) == 0);
}

static double memory(const char *groups, const char *mounts)
{
    (void)quota(groups, mounts); /* writes the files */
    return ls_cgroup_memory(ls_test_path("cgroup"), ls_test_path("mountinfo"));
}

static void limits_on_memory_of_version_2_are_read(void **state)
{
    (void)state;
    put("two/m/n/memory.max", "max\n");
    put("two/m/n/memory.high", "max\n");
    assert_true(memory("0::/m/n\n", two) == 0);
    put("two/m/n/memory.max", "8388608\n");
    assert_true(memory("0::/m/n\n", two) == 8388608);
    put("two/m/n/memory.high", "4194304\n"); /* above this a group hardly goes on */
    assert_true(memory("0::/m/n\n", two) == 4194304);
    put("two/m/memory.max", "1048576\n"); /* a parent binds too */
    assert_true(memory("0::/m/n\n", two) == 1048576);
    put("two/memory.max", "65536\n");
    assert_true(memory("0::/m/n\n", two) == 65536);
    assert_int_equal(remove(ls_test_path("two/memory.max")), 0);
}

static void limits_on_memory_of_version_1_are_read(void **state)
{
    (void)state;
    put("groups/docker/job/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    assert_true(memory("5:memory:/docker/job\n0::/\n", one) == 0);
    put("groups/docker/memory.limit_in_bytes", "41943040\n");
    assert_true(memory("5:memory:/docker/job\n0::/\n", one) == 41943040);
    assert_true(memory("5:cpuset:/docker/job\n0::/\n", one) == 0);
}

static void strange_files_are_no_quota(void **state)
{
    (void)state;
    assert_true(ls_cgroup_quota("/no/such/file", "/no/such/file") == 0);
    assert_true(quota("", "") == 0);
    assert_true(quota("no colons\n:\n::\n0:\n", "a b c - cgroup2\n - \n- cgroup2 a b\n") == 0);
    put("two/d/cpu.max", "rubbish\n");
    assert_true(quota("0::/d\n", two) == 0);
    put("two/d/cpu.max", "100000 0\n");
    assert_true(quota("0::/d\n", two) == 0);
    put("two/d/cpu.max", "");
    assert_true(quota("0::/d\n", two) == 0);
    char *deep = malloc(20000);
    assert_non_null(deep);
    memset(deep, '/', 19999);
    memcpy(deep, "0::/", 4);
    deep[19999] = '\0';
    assert_true(quota(deep, two) == 0);
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas_of_version_2_are_read),
        cmocka_unit_test(quotas_of_version_1_are_read),
        cmocka_unit_test(limits_on_memory_of_version_2_are_read),
        cmocka_unit_test(limits_on_memory_of_version_1_are_read),
        cmocka_unit_test(strange_files_are_no_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
