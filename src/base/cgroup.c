/* CPU quotas and limits on memory of control groups.
 *
 * /proc/self/cgroup names the group of each hierarchy ("0::/a/b" in version 2, "4:cpu,cpuacct:/a/b"
 * in version 1), /proc/self/mountinfo where the hierarchies are mounted, and which part of them (a
 * container often sees its own group as the root). The quota is in cpu.max ("150000 100000" or
 * "max 100000") or in cpu.cfs_quota_us and cpu.cfs_period_us; the limits are in memory.max and
 * memory.high, or in memory.limit_in_bytes. A group's parents bind as well.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, LINE_SIZE = 2 * PATH_SIZE };

/* The first line of <folder>/<name>; false when there is none. */
static bool read_line(const char *folder, const char *name, char *line, int size)
{
    char path[PATH_SIZE];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return false;
    FILE *stream = fopen(path, "re");
    if (stream == NULL)
        return false;
    bool got = fgets(line, size, stream) != NULL;
    fclose(stream);
    return got;
}

/* The quota that one folder sets, in cores; 0: none. */
static double folder_quota(const char *folder, bool version2)
{
    char line[128], second[128];
    double quota, period;
    if (version2) {
        /* "max" is no number and leaves the quota unset. */
        if (!read_line(folder, "cpu.max", line, sizeof line) ||
            sscanf(line, "%lf %lf", &quota, &period) != 2)
            return 0;
    } else {
        if (!read_line(folder, "cpu.cfs_quota_us", line, sizeof line) ||
            !read_line(folder, "cpu.cfs_period_us", second, sizeof second))
            return 0;
        quota = strtod(line, NULL); /* -1: none */
        period = strtod(second, NULL);
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double smaller(double a, double b)
{
    if (a <= 0)
        return b;
    return b > 0 && b < a ? b : a;
}

/* The number in a file; 0: none. ("max" is no number.) */
static double read_number(const char *folder, const char *name)
{
    char line[128];
    return read_line(folder, name, line, sizeof line) ? strtod(line, NULL) : 0;
}

/* The limit on memory that one folder sets, in bytes; 0: none. Above memory.high a group is made so
 * slow that it hardly goes on. Version 1 has a number near 2^63 for none. */
static double folder_memory(const char *folder, bool version2)
{
    if (version2)
        return smaller(read_number(folder, "memory.max"), read_number(folder, "memory.high"));
    double limit = read_number(folder, "memory.limit_in_bytes");
    return limit > 0 && limit < 0x1p60 ? limit : 0;
}

/* What a group limits, and the name of its controller in version 1. */
struct limited {
    const char *controller;
    double (*of_folder)(const char *folder, bool version2); /* 0: no limit */
};

/* Whether a list like "rw,cpu,cpuacct" has the item. */
static bool lists(const char *list, const char *item)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ",\n");
        if (length == strlen(item) && strncmp(list, item, length) == 0)
            return true;
        list += length + (list[length] != '\0');
    }
    return false;
}

/* Finds this process's group in the hierarchy; false: it is in none. */
static bool find_group(const char *file, const char *controller, bool version2, char *group)
{
    FILE *stream = fopen(file, "re");
    if (stream == NULL)
        return false;
    char line[LINE_SIZE];
    bool found = false;
    while (!found && fgets(line, sizeof line, stream) != NULL) {
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL || strlen(path) >= PATH_SIZE)
            continue;
        *path++ = '\0';
        controllers++;
        path[strcspn(path, "\n")] = '\0';
        if (version2 ? *controllers == '\0' && strncmp(line, "0:", 2) == 0
                     : lists(controllers, controller)) {
            memcpy(group, path, strlen(path) + 1);
            found = true;
        }
    }
    fclose(stream);
    return found;
}

/* One line of mountinfo: "36 35 98:0 /root /mount/point options ... - type source options". */
static bool parse_mount(char *line, const char *controller, bool version2, char **root,
                        char **point)
{
    char *separator = strstr(line, " - ");
    if (separator == NULL)
        return false;
    *separator = '\0';
    char *rest = NULL, *type = strtok_r(separator + 3, " \n", &rest);
    char *source = type != NULL ? strtok_r(NULL, " \n", &rest) : NULL;
    char *options = source != NULL ? strtok_r(NULL, " \n", &rest) : NULL;
    if (options == NULL || strcmp(type, version2 ? "cgroup2" : "cgroup") != 0 ||
        (!version2 && !lists(options, controller)))
        return false;
    char *field = strtok_r(line, " ", &rest);
    for (int i = 0; i < 3 && field != NULL; i++)
        field = strtok_r(NULL, " ", &rest);
    *root = field;
    *point = field != NULL ? strtok_r(NULL, " ", &rest) : NULL;
    return *point != NULL;
}

/* The folder of `group` under a mount that shows `root`; its length below `folder` that belongs to
 * the mount itself goes to *top. */
static bool group_folder(const char *group, const char *root, const char *point, char *folder,
                         size_t *top)
{
    size_t skip = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(group, root, skip) != 0 || (group[skip] != '/' && group[skip] != '\0'))
        group = ""; /* outside of what is mounted here: only the mount's own top is known */
    else
        group += skip;
    int length = snprintf(folder, PATH_SIZE, "%s%s", point, group);
    *top = strlen(point);
    return length > 0 && length < PATH_SIZE;
}

/* The smallest limit from `folder` up to its first `top` characters. */
static double walk_up(char *folder, size_t top, const struct limited *limited, bool version2)
{
    double limit = 0;
    for (size_t length = strlen(folder); length >= top; length--) {
        if (folder[length] != '/' && folder[length] != '\0')
            continue;
        folder[length] = '\0';
        limit = smaller(limit, limited->of_folder(folder, version2));
        if (length == 0)
            break;
    }
    return limit;
}

static double hierarchy_limit(const char *cgroup_file, const char *mountinfo_file,
                              const struct limited *limited, bool version2)
{
    char group[PATH_SIZE], folder[PATH_SIZE], line[LINE_SIZE];
    if (!find_group(cgroup_file, limited->controller, version2, group))
        return 0;
    FILE *stream = fopen(mountinfo_file, "re");
    if (stream == NULL)
        return 0;
    double limit = 0;
    while (fgets(line, sizeof line, stream) != NULL) {
        char *root, *point;
        size_t top;
        if (parse_mount(line, limited->controller, version2, &root, &point) &&
            group_folder(group, root, point, folder, &top))
            limit = smaller(limit, walk_up(folder, top, limited, version2));
    }
    fclose(stream);
    return limit;
}

static double find_limit(const char *cgroup_file, const char *mountinfo_file,
                         const struct limited *limited)
{
    return smaller(hierarchy_limit(cgroup_file, mountinfo_file, limited, false),
                   hierarchy_limit(cgroup_file, mountinfo_file, limited, true));
}

double ls_cgroup_quota(const char *cgroup_file, const char *mountinfo_file)
{
    static const struct limited cores = {"cpu", folder_quota};
    return find_limit(cgroup_file, mountinfo_file, &cores);
}

double ls_cgroup_memory(const char *cgroup_file, const char *mountinfo_file)
{
    static const struct limited memory = {"memory", folder_memory};
    return find_limit(cgroup_file, mountinfo_file, &memory);
}

double ls_memory_limit(void)
{
    return ls_cgroup_memory("/proc/self/cgroup", "/proc/self/mountinfo");
}
